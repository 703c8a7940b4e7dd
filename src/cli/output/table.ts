// Formats rows as aligned columns, with control characters escaped. On a terminal, prose is cut so that lines do not
// wrap.
import stringWidth from "string-width";
import type { Terminal } from "./terminal.js";
import { escapeControls } from "./terminal.js";

const GAP = "  ";
/** The least width of prose, in columns of the terminal. */
const MIN_PROSE = 12;

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

export interface TableColumn {
  readonly title: string;
  /** Prose may be cut to fit a terminal. Names and uids are never cut, because people copy them. */
  readonly prose?: boolean;
}

export function createTable(columns: readonly TableColumn[], terminal: Terminal) {
  let widths = columns.map(({ title }) => stringWidth(title));
  let hasHeader = false;
  return {
    /** Formats more rows, with the header before the first ones. Columns never get narrower. */
    lines(rows: readonly (readonly string[])[]): string[] {
      const cells = rows.map((row) => columns.map((_, i) => escapeControls(row[i] || "-")));
      const needed = widths.map((width, i) => Math.max(width, ...cells.map((row) => stringWidth(row[i] ?? ""))));
      widths = fitWidths(needed, columns, terminal.width);
      const lines = cells.map((row) => formatLine(row, widths));
      if (hasHeader) return lines;
      hasHeader = true;
      const titles = columns.map(({ title }) => title);
      return [emphasize(formatLine(titles, widths), terminal), ...lines];
    },
  };
}

function emphasize(text: string, { colour }: Terminal): string {
  return colour ? `\u001b[1m${text}\u001b[22m` : text;
}

function formatLine(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, i) => pad(truncate(cell, widths[i] ?? 0), widths[i] ?? 0))
    .join(GAP)
    .trimEnd();
}

// Cuts columns with prose, one after another, until the line fits or none can be cut further.
function fitWidths(widths: readonly number[], columns: readonly TableColumn[], available = Number.POSITIVE_INFINITY) {
  let excess = widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length) - available;
  return widths.map((width, i) => {
    const cut = columns[i]?.prose ? Math.max(0, Math.min(excess, width - MIN_PROSE)) : 0;
    excess -= cut;
    return width - cut;
  });
}

/** Cuts `text` to `width` columns, with an ellipsis at the end. */
export function truncate(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let kept = "";
  let taken = 1;
  for (const { segment } of graphemes.segment(text)) {
    taken += stringWidth(segment);
    if (taken > width) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** Pads `text` with spaces to `width` columns. */
export function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - stringWidth(text)));
}
