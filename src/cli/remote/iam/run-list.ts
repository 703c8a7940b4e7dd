// `arbor iam NOUN list`
import type { JsonObject, Message } from "@bufbuild/protobuf";
import { setField } from "../../../codec/fields.js";
import { listText } from "../../output/format.js";
import { type Progress, progressOn } from "../../output/progress.js";
import { printable } from "../../printable.js";
import type { FieldFlag } from "./field-flags.js";
import { type ResourceCommand, rowsOf } from "./nouns.js";
import { redirectUrisAt } from "./redirect-uri.js";
import { type Given, requestOf } from "./request.js";
import { type CommonFlags, type Session, withSession } from "./session.js";

/** The most that the service puts on a page (spec section 8). */
const MAX_PAGE_SIZE = 200;

/** What a list takes besides its filters. */
export type ListFlags = CommonFlags & Given & { readonly pageAll?: boolean; readonly progress?: boolean };

/** Prints a page of a list, or all of them. */
export async function runList(noun: ResourceCommand, flags: readonly FieldFlag[], given: ListFlags): Promise<void> {
  const { request } = await requestOf(noun.methods.list.input, flags, given, undefined);
  if (given.pageAll && given.pageSize === undefined) setNamed(request, noun, "page_size", MAX_PAGE_SIZE);
  await withSession(given, async (session) => {
    const progress = progressOn(process.stderr, given.progress === true);
    await printPages(noun, request, given, { session, progress });
  });
}

async function printPages(
  noun: ResourceCommand,
  request: Message,
  given: ListFlags,
  { session, progress }: { session: Session; progress: Progress },
): Promise<void> {
  const { output: format, pageAll = false } = given;
  const { call, output } = session;
  const key = rowsOf(noun).jsonName;
  const redirectUris = noun.hasRedirectUri && format === "table" ? await redirectUrisAt(given) : undefined;
  const columns = redirectUris ? [...noun.columns, { title: "REDIRECT URI", cell: redirectUris }] : noun.columns;
  const text = listText(format, key, columns, output.terminal);
  let done = 0;
  let rest: JsonObject = {};
  let token = "";
  do {
    if (token !== "") setNamed(request, noun, "page_token", token);
    let answer: JsonObject;
    try {
      answer = await call(noun.methods.list, request);
    } catch (error) {
      progress.clear();
      // What is printed becomes a whole document, which says where to go on.
      if (done > 0) await output.write(text.end({ ...rest, nextPageToken: token }));
      throw error;
    }
    const { [key]: rows = [], ...envelope } = answer as JsonObject & Record<typeof key, JsonObject[]>;
    rest = envelope;
    done += rows.length;
    progress.clear();
    await output.write(text.page(rows));
    if (pageAll) progress.show(done, Number(envelope.totalCount ?? done));
    token = String(envelope.nextPageToken ?? "");
  } while (pageAll && token !== "");
  progress.clear();
  await output.write(text.end(rest));
  if (token !== "" && format === "table") {
    process.stderr.write(`arbor: there are more: --page-all, or --page-token ${printable(token)}\n`);
  }
}

function setNamed(request: Message, { methods }: ResourceCommand, name: string, value: string | number): void {
  const field = methods.list.input.fields.find((one) => one.name === name);
  if (field === undefined) throw new TypeError(`${methods.list} has no ${name}`);
  setField(request, field, value);
}
