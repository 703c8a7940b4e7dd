// Asks before an action that takes something away, does it, and says so.
import type { ReactNode } from "react";
import { useState } from "react";
import type { Action } from "../api/commands.js";
import { type Problem, readProblem } from "../api/errors.js";
import { refresh } from "../api/transport.js";
import { Commands } from "./commands.js";
import { Dialog } from "./dialog.js";
import { ProblemNote } from "./field.js";
import { FormActions } from "./form-actions.js";
import { say } from "./toasts.js";

interface ConfirmDialogProps {
  /** The question, such as "End this invite?". */
  readonly title: string;
  /** What is lost. */
  readonly children: ReactNode;
  /** What the button does. */
  readonly label: string;
  readonly run: () => Promise<unknown>;
  /** What is said when it is done; nothing unless given. */
  readonly done?: string;
  readonly action: Action;
  readonly onClose: () => void;
}

export function ConfirmDialog({ title, children, label, run, done, action, onClose }: ConfirmDialogProps) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();

  async function confirm(): Promise<void> {
    setBusy(true);
    try {
      await run();
    } catch (error) {
      setProblem(readProblem(error));
      return;
    } finally {
      setBusy(false);
    }
    if (done !== undefined) say(done);
    await refresh();
    onClose();
  }

  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <ProblemNote problem={problem} />
      <FormActions label={label} isDanger isBusy={isBusy} onConfirm={() => void confirm()} onCancel={onClose} />
      <Commands action={action} />
    </Dialog>
  );
}
