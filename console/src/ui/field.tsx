import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, useId } from "react";
import type { Problem } from "../api/errors.js";

interface Described {
  readonly label: string;
  readonly hint?: ReactNode;
  /** The rule that the value breaks. */
  readonly wrong?: string | undefined;
}

interface TextFieldProps extends InputHTMLAttributes<HTMLInputElement>, Described {}

export function TextField({ label, hint, wrong, ...input }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} wrong={wrong}>
      {(control) => <input className="input" autoComplete="off" {...input} {...control} />}
    </Field>
  );
}

interface SelectFieldProps extends SelectHTMLAttributes<HTMLSelectElement>, Described {}

export function SelectField({ label, hint, wrong, children, ...select }: SelectFieldProps) {
  return (
    <Field label={label} hint={hint} wrong={wrong}>
      {(control) => (
        <select className="input" {...select} {...control}>
          {children}
        </select>
      )}
    </Field>
  );
}

interface FieldProps extends Described {
  /** Renders the control with what connects it to its label, its hint and its rule. */
  readonly children: (control: {
    readonly id: string;
    readonly "aria-invalid": boolean;
    readonly "aria-describedby": string | undefined;
  }) => ReactNode;
}

function Field({ label, hint, wrong, children }: FieldProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {hint !== undefined && (
        <span className="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {children({ id, "aria-invalid": wrong !== undefined, "aria-describedby": describedBy(id, hint, wrong) })}
      <span className="wrong" id={`${id}-wrong`} role="alert">
        {wrong}
      </span>
    </div>
  );
}

function describedBy(id: string, hint: ReactNode, wrong: string | undefined): string | undefined {
  const ids = [hint !== undefined && `${id}-hint`, wrong !== undefined && `${id}-wrong`].filter(Boolean);
  return ids.length > 0 ? ids.join(" ") : undefined;
}

interface ProblemNoteProps {
  readonly problem: Problem | undefined;
  /** The fields whose rules stand beside them. */
  readonly shown?: readonly string[];
}

/** Says why an action has failed, unless fields of the form say it. */
export function ProblemNote({ problem, shown = [] }: ProblemNoteProps) {
  if (problem === undefined) return null;
  const { fields, preconditions, text, requestId } = problem;
  if (fields.size > 0 && [...fields.keys()].every((field) => shown.includes(field))) return null;
  // The text names the first already.
  const reasons = preconditions.filter((one) => !text.includes(one));
  return (
    <div className="note wrong" role="alert">
      <p>{text}</p>
      {reasons.length > 0 && (
        <ul>
          {reasons.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      )}
      {requestId !== "" && <p className="soft">Request {requestId}</p>}
    </div>
  );
}
