// What an action has done, said in a corner for some seconds.
import { useSyncExternalStore } from "react";
import { Button } from "./button.js";
import { CloseIcon } from "./icons.js";

interface Toast {
  readonly id: number;
  readonly text: string;
}

/** How long a toast is shown, in milliseconds. */
const SHOWN_MS = 8_000;

let toasts: readonly Toast[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

export function say(text: string): void {
  const toast = { id: nextId++, text };
  change([...toasts, toast]);
  setTimeout(() => dismiss(toast.id), SHOWN_MS);
}

function dismiss(id: number): void {
  change(toasts.filter((toast) => toast.id !== id));
}

function change(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div className="toasts" role="status">
      {shown.map(({ id, text }) => (
        <div className="note good" key={id}>
          <div className="title-row">
            <span>{text}</span>
            <div className="actions">
              <Button look="quiet" isSmall aria-label="Close" onClick={() => dismiss(id)}>
                <CloseIcon />
              </Button>
            </div>
          </div>
        </div>
      ))}
    </div>
  );
}
