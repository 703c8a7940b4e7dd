// Prints the pages of a list as they arrive.
import type { DescField, DescMethodUnary, JsonObject, Message } from "@bufbuild/protobuf";
import { getField, getFieldsByName, setField } from "../../../codec/fields.js";
import { createListFormatter, type ListColumn } from "../../output/format.js";
import { createProgress, escapeControls } from "../../output/terminal.js";
import { type CommonFlags, hasColumns, isTable } from "../flags.js";
import type { Session } from "../session.js";
import type { FlagValues } from "./request.js";
import { getRowsField } from "./resource-commands.js";
import type { ColumnFlags } from "./select-columns.js";

/** The largest page of the service, and a page without a size (docs/api-rules.md#lists). */
const MAX_PAGE_SIZE = 200;
const PAGE_SIZE = 50;

/** The flags of a list. */
export type ListFlags = CommonFlags & FlagValues & ColumnFlags & PageFlags;

interface PageFlags {
  readonly pageAll?: boolean;
  readonly progress?: boolean;
}

/** A list of a response: the field with its rows, and their columns. */
export interface ListView {
  readonly method: DescMethodUnary;
  readonly columns: readonly ListColumn[];
  /** Whether pages of the service may have fewer rows than were asked for although more follow: they are joined then. */
  readonly mayBeShort?: true;
  /** Adds to rows what the API does not have in them. JSON and YAML have the rows of the API. */
  readonly complete?: (rows: readonly JsonObject[]) => Promise<readonly JsonObject[]>;
  /** What the members of a page beside its rows say, a line each. JSON and YAML have the members themselves. */
  readonly notes?: (rest: JsonObject) => readonly string[];
}

/**
 * Prints one page of a list, or all with `--page-all`, which have the largest size unless another one is given.
 *
 * @param request the request of the first page, in which later page tokens are set
 */
export async function printPages(
  { method, columns, mayBeShort, complete, notes }: ListView,
  request: Message,
  given: ListFlags,
  { call, output }: Session,
): Promise<void> {
  const { output: format, pageAll = false } = given;
  if (pageAll && given.pageSize === undefined) setListField(request, method, "page_size", MAX_PAGE_SIZE);
  const size = mayBeShort ? readPageSize(request, method) : 0;
  const progress = createProgress(process.stderr, given.progress === true);
  const key = getRowsField(method).jsonName;
  const list = createListFormatter(format, key, columns, output.terminal);
  let done = 0;
  let rest: JsonObject = {};
  let token = "";
  let hasPage = false;
  do {
    if (token !== "") setListField(request, method, "page_token", token);
    if (hasPage && !pageAll) setListField(request, method, "page_size", size - done);
    let response: JsonObject;
    try {
      response = await call(method, request);
    } catch (error) {
      progress.clear();
      // Completes the document, with the page token of the remaining rows.
      if (done > 0) await output.write(list.end({ ...rest, nextPageToken: token }));
      throw error;
    }
    const { [key]: rows = [], ...envelope } = response as JsonObject & Record<typeof key, JsonObject[]>;
    rest = envelope;
    hasPage = true;
    done += rows.length;
    progress.clear();
    await output.write(list.page(complete === undefined || !hasColumns(format) ? rows : await complete(rows)));
    if (pageAll) progress.show(done, Number(envelope.totalCount ?? done));
    token = String(envelope.nextPageToken ?? "");
  } while (token !== "" && (pageAll || done < size));
  progress.clear();
  await output.write(list.end(rest));
  const lines = format === "json" || format === "yaml" ? [] : [...(notes?.(rest) ?? [])];
  if (token !== "" && isTable(format)) lines.push(`there are more: --page-all, or --page-token ${token}`);
  for (const line of lines) process.stderr.write(`arbor: ${escapeControls(line)}\n`);
}

function readPageSize(request: Message, method: DescMethodUnary): number {
  const given = Number(getField(request, getListField(method, "page_size")));
  return Math.min(given > 0 ? given : PAGE_SIZE, MAX_PAGE_SIZE);
}

function setListField(request: Message, method: DescMethodUnary, name: string, value: string | number): void {
  setField(request, getListField(method, name), value);
}

function getListField({ input }: DescMethodUnary, name: string): DescField {
  const field = getFieldsByName(input).get(name);
  if (field === undefined) throw new TypeError(`${input} has no ${name}`);
  return field;
}
