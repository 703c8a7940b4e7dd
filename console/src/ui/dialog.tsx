import { Dialog as Base } from "@base-ui/react/dialog";
import { type ReactNode, useRef } from "react";
import { Button } from "./button.js";
import { CloseIcon } from "./icons.js";

interface DialogProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly onClose: () => void;
  readonly className?: string;
}

/** A dialog that is open for as long as it is rendered. Its first field has the focus. Escape and a click beside it close it. */
export function Dialog({ title, children, onClose, className = "" }: DialogProps) {
  const popup = useRef<HTMLDivElement>(null);
  const findFirstField = () => popup.current?.querySelector<HTMLElement>("input, select, textarea") ?? true;
  return (
    <Base.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Popup className={`dialog ${className}`} ref={popup} initialFocus={findFirstField}>
          <div className="title-row">
            <Base.Title>{title}</Base.Title>
            <div className="actions">
              <Base.Close render={<Button look="quiet" isSmall aria-label="Close" />}>
                <CloseIcon />
              </Base.Close>
            </div>
          </div>
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
