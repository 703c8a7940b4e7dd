// Formats rows as aligned columns, with control characters escaped. On a terminal no line is wider than the terminal: what
// does not fit is shortened or, where that is not enough, left out. A pipe and `-o wide` get everything whole.
import stringWidth from "fast-string-width";
import type { Terminal } from "./terminal.js";
import { escapeControls } from "./terminal.js";

const GAP = "  ";

/** Splits a text into what is one character for a reader. Making the segmenter takes longer than printing a table. */
function splitGraphemes(text: string): Iterable<{ readonly segment: string }> {
  return new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text);
}

/**
 * What a column has, which says how it is shortened. Of a uid the end remains, because the beginning is that of all resources
 * of an organisation, and so it does of a name with a package before it (`path`). Times lose their seconds, then the time of
 * day. Other texts lose their end.
 */
export type ColumnKind = "uid" | "path" | "time" | "prose";

export interface TableColumn {
  readonly title: string;
  /** Unless given, a text such as a name. */
  readonly kind?: ColumnKind;
  /** Whether it is never left out, because the caller has asked for it. */
  readonly isKept?: boolean;
}

type Minimum = Readonly<Partial<Record<ColumnKind | "text" | "first", number>>>;

/** The widths of `2026-01-31T12:00Z` and of its day. */
const MINUTE_TIME = 17;
const DAY_TIME = 10;

/** The least widths of columns by what they have, one step after another until the line fits. */
const STEPS: readonly Minimum[] = [
  { uid: 13 },
  { time: MINUTE_TIME },
  { prose: 24, path: 32 },
  { prose: 12, text: 12, path: 20, first: 24 },
];
/** The steps when no more uids can be left out. */
const LAST_STEPS: readonly Minimum[] = [...STEPS, { time: DAY_TIME }, { text: 8, path: 12, first: 16 }];

/** The columns that fit, by their numbers, and their widths. */
interface Layout {
  readonly shown: readonly number[];
  readonly widths: number[];
}

export function createTable(columns: readonly TableColumn[], terminal: Terminal) {
  const available = terminal.width ?? Number.POSITIVE_INFINITY;
  let layout: Layout | undefined;
  return {
    /**
     * Formats more rows, with the header before the first ones. Columns never get narrower, and wider only where there is
     * room left.
     */
    lines(rows: readonly (readonly string[])[]): string[] {
      const cells = rows.map((row) => columns.map((_, i) => escapeControls(row[i] || "-")));
      const needed = columns.map(({ title }, i) =>
        cells.reduce((widest, row) => Math.max(widest, stringWidth(row[i] ?? "")), stringWidth(title)),
      );
      const isFirst = layout === undefined;
      layout = layout === undefined ? createLayout(columns, needed, available) : widen(layout, needed, available);
      const { shown, widths } = layout;
      const format = (texts: readonly string[]) =>
        shown
          .map((at, i) => pad(shorten(texts[at] ?? "", widths[i] ?? 0, columns[at]?.kind), widths[i] ?? 0))
          .join(GAP)
          .trimEnd();
      const lines = cells.map(format);
      if (!isFirst) return lines;
      const titles = shown.map((at, i) => pad(truncate(columns[at]?.title ?? "", widths[i] ?? 0), widths[i] ?? 0));
      return [emphasize(titles.join(GAP).trimEnd(), terminal), ...lines];
    },
  };
}

function createLayout(columns: readonly TableColumn[], needed: readonly number[], available: number): Layout {
  const shown = columns.map((_, i) => i);
  // The first column says what the row is, and the last one is its uid.
  const findOptional = (isOne: (column: TableColumn | undefined) => boolean) =>
    shown.findLastIndex((at, i) => i > 0 && i < shown.length - 1 && columns[at]?.isKept !== true && isOne(columns[at]));
  for (;;) {
    const widths = shown.map((at) => needed[at] ?? 0);
    // A shortened uid of something else says least.
    const otherUid = findOptional((column) => column?.kind === "uid");
    for (const step of otherUid < 0 ? LAST_STEPS : STEPS) {
      const least = shown.map((at, i) => leastWidth(columns[at], at, widths[i] ?? 0, step));
      shrink(widths, least, sumWidths(widths) - available);
    }
    if (sumWidths(widths) <= available) {
      const fitted = widths.map((width, i) => {
        const at = shown[i] ?? 0;
        return columns[at]?.kind === "time" ? fitTime(width, needed[at] ?? 0) : width;
      });
      // More of a uid or of a time would say no more.
      return widen(
        { shown, widths: fitted },
        needed,
        available,
        (at) => !/^(?:uid|time)$/.test(columns[at]?.kind ?? ""),
      );
    }
    const optional = otherUid < 0 ? findOptional(() => true) : otherUid;
    if (optional < 0) {
      shrink(
        widths,
        widths.map(() => 1),
        sumWidths(widths) - available,
      );
      return { shown, widths };
    }
    shown.splice(optional, 1);
  }
}

function leastWidth(column: TableColumn | undefined, at: number, width: number, step: Minimum): number {
  const { kind = at === 0 ? "first" : "text", title = "" } = column ?? {};
  const least = step[kind] ?? width;
  // A log begins with the time, of which the day alone says little.
  return Math.min(
    width,
    Math.max(at === 0 && kind === "time" ? Math.max(least, MINUTE_TIME) : least, stringWidth(title)),
  );
}

/** Takes `excess` from the widest of the columns that are not at their least widths yet. */
function shrink(widths: number[], least: readonly number[], excess: number): void {
  for (let left = excess; left > 0; left--) {
    let widest = -1;
    for (const [i, width] of widths.entries())
      if (width > (least[i] ?? 0) && (widest < 0 || width > (widths[widest] ?? 0))) widest = i;
    if (widest < 0) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

/** Gives the room that is left to columns that need more, from the left. */
function widen(
  { shown, widths }: Layout,
  needed: readonly number[],
  available: number,
  mayGrow: (at: number) => boolean = () => true,
): Layout {
  let room = available - sumWidths(widths);
  return {
    shown,
    widths: widths.map((width, i) => {
      const at = shown[i] ?? 0;
      const more = mayGrow(at) ? Math.max(0, Math.min(room, (needed[at] ?? 0) - width)) : 0;
      room -= more;
      return width + more;
    }),
  };
}

function sumWidths(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length);
}

function shorten(text: string, width: number, kind: ColumnKind | undefined): string {
  if (stringWidth(text) <= width) return text;
  if (kind === "uid" || kind === "path") return truncateStart(text, width);
  return kind === "time" ? shortenTime(text, width) : truncate(text, width);
}

/** The width of the form of a time that fits: the whole one, the one without seconds, or the day. */
function fitTime(width: number, whole: number): number {
  if (width >= whole) return whole;
  return width >= MINUTE_TIME ? MINUTE_TIME : Math.min(width, DAY_TIME);
}

// Times of the API are in UTC.
function shortenTime(text: string, width: number): string {
  const [, day, minute] = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d):[\d.]+Z$/.exec(text) ?? [];
  if (day === undefined) return truncate(text, width);
  const forms = [`${day}${minute}Z`, day];
  return forms.find((form) => form.length <= width) ?? truncate(day, width);
}

/**
 * Formats the fields of one thing, whose last cells have their values. They are whole, because nothing else shows them: on a
 * terminal they continue below at a blank, and a word without one, such as a uid, is left to the terminal, which copies it
 * in one piece.
 */
export function formatFields(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  terminal: Terminal,
): string[] {
  const last = titles.length - 1;
  const whole = { ...terminal, width: undefined };
  const cells = rows.map((row) => titles.map((_, i) => escapeControls(row[i] || "-")));
  const before = titles
    .slice(0, last)
    .map((title, i) => cells.reduce((widest, row) => Math.max(widest, stringWidth(row[i] ?? "")), stringWidth(title)));
  const indent = " ".repeat(before.reduce((sum, width) => sum + width + GAP.length, 0));
  const available = (terminal.width ?? Number.POSITIVE_INFINITY) - indent.length;
  const [header = "", ...lines] = createTable(
    titles.map((title) => ({ title })),
    whole,
  ).lines(cells.map((row) => row.map((cell, i) => (i === last ? (wrapWords(cell, available)[0] ?? "") : cell))));
  return [
    header,
    ...lines.flatMap((line, i) => {
      const [, ...more] = wrapWords(cells[i]?.[last] ?? "", available);
      return [line, ...more.map((text) => indent + text)];
    }),
  ];
}

function wrapWords(text: string, width: number): string[] {
  if (stringWidth(text) <= width) return [text];
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line !== undefined && stringWidth(line) + 1 + stringWidth(word) <= width) lines[lines.length - 1] += ` ${word}`;
    else lines.push(word);
  }
  return lines;
}

function emphasize(text: string, { colour }: Terminal): string {
  return colour ? `\u001b[1m${text}\u001b[22m` : text;
}

/** Cuts `text` to `width` columns, with an ellipsis at the end. */
export function truncate(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  return `${takeGraphemes(text, width - 1)}…`;
}

/** Cuts `text` to `width` columns, with an ellipsis at the beginning. */
function truncateStart(text: string, width: number): string {
  let kept = text;
  for (const { segment } of splitGraphemes(text)) {
    if (stringWidth(kept) < width) break;
    kept = kept.slice(segment.length);
  }
  return `…${kept}`;
}

function takeGraphemes(text: string, width: number): string {
  let kept = "";
  let taken = 0;
  for (const { segment } of splitGraphemes(text)) {
    taken += stringWidth(segment);
    if (taken > width) break;
    kept += segment;
  }
  return kept;
}

/** Pads `text` with spaces to `width` columns. */
export function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - stringWidth(text)));
}
