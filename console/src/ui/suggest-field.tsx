// A field that suggests what was found: arrow keys choose, Enter takes the choice. The WAI-ARIA pattern "combobox" with a list.
import { type KeyboardEvent, type ReactNode, useId, useState } from "react";
import { TextField } from "./field.js";

interface SuggestFieldProps<T> {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly wrong?: string | undefined;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly options: readonly T[];
  readonly keyOf: (option: T) => string;
  readonly render: (option: T) => ReactNode;
  readonly onTake: (option: T) => void;
  /** Called for Enter where there is no suggestion. */
  readonly onEnter?: () => void;
}

export function SuggestField<T>(props: SuggestFieldProps<T>) {
  const { label, hint, wrong, text, onText, options, keyOf, render, onTake, onEnter } = props;
  const id = useId();
  const [at, setAt] = useState(0);
  const isOpen = options.length > 0;
  const chosen = Math.min(at, options.length - 1);

  function take(option: T): void {
    setAt(0);
    onTake(option);
  }

  function onKey(event: KeyboardEvent): void {
    const option = options[chosen];
    if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, options.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (event.key === "Enter" && option !== undefined) take(option);
    else if (event.key === "Enter" && onEnter !== undefined) onEnter();
    // A form is not sent with what is only typed.
    else if (event.key !== "Enter" || text === "") return;
    event.preventDefault();
  }

  return (
    <>
      <TextField
        label={label}
        hint={hint}
        wrong={wrong}
        role="combobox"
        aria-expanded={isOpen}
        aria-autocomplete="list"
        aria-controls={id}
        aria-activedescendant={isOpen ? `${id}-${chosen}` : undefined}
        value={text}
        onChange={({ target }) => {
          setAt(0);
          onText(target.value);
        }}
        onKeyDown={onKey}
      />
      <div className={isOpen ? "results" : undefined} role="listbox" id={id} aria-label="What was found">
        {options.map((option, index) => (
          <div
            key={keyOf(option)}
            id={`${id}-${index}`}
            className="result"
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            // The focus stays in the field.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(option)}
            onKeyDown={(event) => event.key === "Enter" && take(option)}
          >
            {render(option)}
          </div>
        ))}
      </div>
    </>
  );
}
