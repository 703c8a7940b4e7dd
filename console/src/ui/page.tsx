import { type ReactNode, useEffect, useRef } from "react";
import { readProblem } from "../api/errors.js";
import { Button } from "./button.js";
import { isolate } from "./isolate.js";

const HOME = "Arbor console";

interface PageProps {
  readonly title: string;
  readonly crumbs?: ReactNode;
  readonly badges?: ReactNode;
  readonly actions?: ReactNode;
  readonly lead?: ReactNode;
  readonly children: ReactNode;
}

/** A view with its heading, which gets the focus when the view changes, so that screen readers read it. */
export function Page({ title, crumbs, badges, actions, lead, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = title === HOME ? HOME : `${isolate(title)} - ${HOME}`;
    // A view that asks for input has the focus there already.
    if (document.activeElement === document.body || document.activeElement === null) heading.current?.focus();
  }, [title]);
  return (
    <div className="page">
      <header className="page-head">
        {crumbs}
        <div className="title-row">
          <h1 className="foreign" ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {badges}
          {actions !== undefined && <div className="actions">{actions}</div>}
        </div>
        {lead}
      </header>
      {children}
    </div>
  );
}

/** Says that a part of a page is being read. */
export function Loading({ what = "" }: { readonly what?: string }) {
  return (
    <p className="soft" role="status">
      Loading{what === "" ? "" : ` ${what}`}…
    </p>
  );
}

interface FailedProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
}

/** Says why a part of a page could not be read, and what can be done. */
export function Failed({ error, onRetry }: FailedProps) {
  const { text, requestId } = readProblem(error);
  return (
    <div className="note wrong" role="alert">
      <p>{text}</p>
      {requestId !== "" && <p className="soft">Request {requestId}</p>}
      {onRetry !== undefined && (
        <div className="actions">
          <Button isSmall onClick={onRetry}>
            Try again
          </Button>
        </div>
      )}
    </div>
  );
}

interface EmptyProps {
  readonly title: string;
  readonly children?: ReactNode;
}

/** Stands in place of an empty list, and says what to do. */
export function Empty({ title, children }: EmptyProps) {
  return (
    <div className="empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}
