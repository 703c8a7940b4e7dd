import { useId } from "react";
import { TextField } from "../../ui/field.js";

/** When a role ends, as it is chosen. */
export type EndChoice =
  | { readonly kind: "never" }
  | { readonly kind: "after"; readonly hours: number }
  /** A time of the viewer's zone, such as `2026-01-31T12:00`; empty until it is typed. */
  | { readonly kind: "at"; readonly local: string };

const SPANS = [
  ["in 1 hour", 1],
  ["in 8 hours", 8],
  ["in 1 day", 24],
  ["in 7 days", 7 * 24],
  ["in 30 days", 30 * 24],
] as const;

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const HOUR_MS = 3_600_000;

/** The time of a choice; undefined where the role does not end. */
export function endOf(choice: EndChoice): Date | undefined {
  if (choice.kind === "never") return undefined;
  if (choice.kind === "after") return new Date(Date.now() + choice.hours * HOUR_MS);
  const date = new Date(choice.local);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/** What is wrong with a choice; undefined where nothing is. */
export function checkEnd(choice: EndChoice): string | undefined {
  if (choice.kind !== "at") return undefined;
  const end = endOf(choice);
  if (end === undefined) return "A date and a time are needed";
  return end.getTime() <= Date.now() ? "It must be in the future" : undefined;
}

interface EndFieldProps {
  readonly choice: EndChoice;
  readonly onChange: (choice: EndChoice) => void;
  readonly wrong?: string | undefined;
}

export function EndField({ choice, onChange, wrong }: EndFieldProps) {
  const id = useId();
  const value = choice.kind === "after" ? String(choice.hours) : choice.kind;
  return (
    <>
      <div className="field">
        <label htmlFor={id}>Ends</label>
        <select
          id={id}
          className="input"
          value={value}
          onChange={({ target }) => {
            if (target.value === "never") onChange({ kind: "never" });
            else if (target.value === "at") onChange({ kind: "at", local: "" });
            else onChange({ kind: "after", hours: Number(target.value) });
          }}
        >
          <option value="never">It does not end</option>
          {SPANS.map(([text, hours]) => (
            <option key={hours} value={hours}>
              {text}
            </option>
          ))}
          <option value="at">At a time…</option>
        </select>
        {choice.kind === "after" && <span className="hint">At {LOCAL.format(endOf(choice))}</span>}
        {choice.kind !== "at" && (
          <span className="wrong" role="alert">
            {wrong}
          </span>
        )}
      </div>
      {choice.kind === "at" && (
        <TextField
          label="Date and time"
          hint="In your time zone"
          type="datetime-local"
          wrong={wrong}
          value={choice.local}
          onChange={({ target }) => onChange({ kind: "at", local: target.value })}
        />
      )}
    </>
  );
}
