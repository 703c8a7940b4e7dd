// Rows as aligned columns. Nothing in them can act upon the terminal, and what
// wraps on one is cut short where that loses no more than prose.
import { printable } from "../printable.js";
import { displayWidth, padded, truncated } from "./width.js";

const GAP = "  ";
/** How short prose is cut at most, in columns of the terminal. */
const MIN_PROSE = 12;

/** A column of a table. */
export interface TableColumn {
  readonly title: string;
  /** Prose may be cut to fit a terminal; names and uids never are, as they are there to be copied. */
  readonly prose?: boolean;
}

/** What the table is shown on. */
export interface Terminal {
  /** Whether the header stands out. */
  readonly colour: boolean;
  /** How wide it is, in columns; undefined when it is a file or a pipe, where nothing is cut. */
  readonly width: number | undefined;
}

/** A table that grows. */
export interface Table {
  /** The lines of more rows, the header before the first. Columns never get narrower from one call to the next. */
  lines(rows: readonly (readonly string[])[]): string[];
}

/** Begins a table. */
export function tableOf(columns: readonly TableColumn[], terminal: Terminal): Table {
  let widths = columns.map(({ title }) => displayWidth(title));
  let begun = false;
  return {
    lines(rows) {
      const cells = rows.map((row) => columns.map((_, i) => printable(row[i] || "-")));
      const needed = widths.map((width, i) => Math.max(width, ...cells.map((row) => displayWidth(row[i] ?? ""))));
      widths = fitted(needed, columns, terminal.width);
      const lines = cells.map((row) => lineOf(row, widths));
      if (begun) return lines;
      begun = true;
      const titles = columns.map(({ title }) => title);
      return [emphasised(lineOf(titles, widths), terminal), ...lines];
    },
  };
}

/** `text` in bold where `terminal` takes colour. */
function emphasised(text: string, { colour }: Terminal): string {
  return colour ? `\u001b[1m${text}\u001b[22m` : text;
}

function lineOf(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, i) => padded(truncated(cell, widths[i] ?? 0), widths[i] ?? 0))
    .join(GAP)
    .trimEnd();
}

// Prose gives way, the columns of it one after another, until the line fits or none can be cut further.
function fitted(widths: readonly number[], columns: readonly TableColumn[], available = Number.POSITIVE_INFINITY) {
  let excess = widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length) - available;
  return widths.map((width, i) => {
    const cut = columns[i]?.prose ? Math.max(0, Math.min(excess, width - MIN_PROSE)) : 0;
    excess -= cut;
    return width - cut;
  });
}
