import { printable } from "../printable.js";

/** `text` with all that a terminal may act upon escaped, except the ends of its lines. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}
