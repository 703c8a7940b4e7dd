import type { ReactNode } from "react";
import { Button } from "./button.js";

interface FormActionsProps {
  /** What the form does, such as "Grant". */
  readonly label: ReactNode;
  readonly isBusy: boolean;
  readonly onCancel: () => void;
  readonly isDanger?: boolean;
  /** Called by the first button; without it the button sends its form. */
  readonly onConfirm?: () => void;
}

/** The two buttons at the end of a dialog. */
export function FormActions({ label, isBusy, onCancel, isDanger = false, onConfirm }: FormActionsProps) {
  return (
    <div className="actions">
      <Button
        type={onConfirm === undefined ? "submit" : "button"}
        look={isDanger ? "danger" : "main"}
        isBusy={isBusy}
        onClick={onConfirm}
      >
        {label}
      </Button>
      <Button onClick={onCancel}>Cancel</Button>
    </div>
  );
}
