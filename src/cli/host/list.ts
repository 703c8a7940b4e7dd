// Prints the lists of commands on the host, in the formats of those over the API.
import type { JsonObject } from "@bufbuild/protobuf";
import { createListFormatter, type ListColumn } from "../output/format.js";
import { detectTerminal } from "../output/terminal.js";
import type { Format } from "../remote/flags.js";

/** The flags of a list on the host. */
export interface HostListFlags {
  readonly output: Format;
}

/** Prints a list that has no other members than its rows. */
export function printRows(rows: readonly object[], columns: readonly ListColumn[], { output }: HostListFlags): void {
  const list = createListFormatter(output, "rows", columns, detectTerminal(process.stdout, process.env));
  process.stdout.write(list.page(rows as readonly JsonObject[]) + list.end({}));
}
