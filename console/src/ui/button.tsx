import type { ButtonHTMLAttributes } from "react";
import { useEffect, useRef, useState } from "react";
import { CopyIcon } from "./icons.js";

type Look = "main" | "danger" | "quiet" | "plain";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly look?: Look;
  readonly isSmall?: boolean;
  /** While its action runs, a button does nothing and keeps the focus. */
  readonly isBusy?: boolean;
}

export function Button({ look = "plain", isSmall, isBusy, className, onClick, type, ...rest }: ButtonProps) {
  return (
    <button
      type={type ?? "button"}
      {...rest}
      className={["button", look, isSmall && "small", className].filter(Boolean).join(" ")}
      aria-disabled={isBusy || rest["aria-disabled"]}
      onClick={(event) => (isBusy ? event.preventDefault() : onClick?.(event))}
    />
  );
}

/** How long a button says that it has copied, in milliseconds. */
const SAID_MS = 2_000;

interface CopyButtonProps {
  readonly text: string;
  /** What is copied, such as "uid". */
  readonly what: string;
  readonly look?: Look;
}

export function CopyButton({ text, what, look = "quiet" }: CopyButtonProps) {
  const [said, setSaid] = useState("");
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    // Browsers have no clipboard for pages that came by plain HTTP from elsewhere than this machine.
    const outcome = await navigator.clipboard.writeText(text).then(
      () => "Copied",
      () => "Select it and copy",
    );
    setSaid(outcome);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setSaid(""), SAID_MS) as unknown as number;
  };
  return (
    <Button look={look} isSmall onClick={() => void copy()}>
      <CopyIcon />
      <span aria-live="polite">
        {said || "Copy"}
        <span className="visually-hidden"> {what}</span>
      </span>
    </Button>
  );
}
