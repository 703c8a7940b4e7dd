import { type Action, formatArbor, formatCurl } from "../api/commands.js";
import { CopyButton } from "./button.js";

/** The lines that do the same in a terminal. */
export function Commands({ action }: { readonly action: Action }) {
  const lines = [
    ["arbor", formatArbor(action)],
    ["curl", formatCurl(action)],
  ] as const;
  return (
    <details className="commands">
      <summary>The same in a terminal</summary>
      {lines.map(([program, line]) => (
        <div className="line" key={program}>
          <pre>{line}</pre>
          <CopyButton text={line} what={`the ${program} line`} />
        </div>
      ))}
    </details>
  );
}
