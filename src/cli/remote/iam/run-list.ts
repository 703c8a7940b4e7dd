// `arbor iam RESOURCE list`
import type { JsonObject, Message } from "@bufbuild/protobuf";
import { setField } from "../../../codec/fields.js";
import { buildCallbackPath } from "../../../kernel/web.js";
import { createListFormatter } from "../../output/format.js";
import { createProgress, escapeControls, type Progress } from "../../output/terminal.js";
import type { CommonFlags } from "../flags.js";
import { type ApiFlags, fetchIssuer, resolveApi } from "../service.js";
import { type Session, withSession } from "../session.js";
import type { FieldFlag } from "./field-flags.js";
import { buildRequest, type FlagValues } from "./request.js";
import { getRowsField, type ResourceCommand } from "./resource-commands.js";

/** The largest page of the service (docs/api-rules.md#lists). */
const MAX_PAGE_SIZE = 200;

/** The flags of a list. */
export type ListFlags = CommonFlags & FlagValues & { readonly pageAll?: boolean; readonly progress?: boolean };

/** Prints a page of a list, or all pages. */
export async function runList(resource: ResourceCommand, flags: readonly FieldFlag[], given: ListFlags): Promise<void> {
  const { request } = await buildRequest(resource.methods.list.input, flags, given, undefined);
  if (given.pageAll && given.pageSize === undefined) setListField(request, resource, "page_size", MAX_PAGE_SIZE);
  await withSession(given, async (session) => {
    const progress = createProgress(process.stderr, given.progress === true);
    await printPages(resource, request, given, { session, progress });
  });
}

async function printPages(
  resource: ResourceCommand,
  request: Message,
  given: ListFlags,
  { session, progress }: { session: Session; progress: Progress },
): Promise<void> {
  const { output: format, pageAll = false } = given;
  const { call, output } = session;
  const key = getRowsField(resource).jsonName;
  const redirectUri = resource.hasRedirectUri && format === "table" ? await fetchRedirectUri(given) : undefined;
  const columns = redirectUri ? [...resource.columns, { title: "REDIRECT URI", cell: redirectUri }] : resource.columns;
  const list = createListFormatter(format, key, columns, output.terminal);
  let done = 0;
  let rest: JsonObject = {};
  let token = "";
  do {
    if (token !== "") setListField(request, resource, "page_token", token);
    let answer: JsonObject;
    try {
      answer = await call(resource.methods.list, request);
    } catch (error) {
      progress.clear();
      // Completes the document, with the page token of the remaining rows.
      if (done > 0) await output.write(list.end({ ...rest, nextPageToken: token }));
      throw error;
    }
    const { [key]: rows = [], ...envelope } = answer as JsonObject & Record<typeof key, JsonObject[]>;
    rest = envelope;
    done += rows.length;
    progress.clear();
    await output.write(list.page(rows));
    if (pageAll) progress.show(done, Number(envelope.totalCount ?? done));
    token = String(envelope.nextPageToken ?? "");
  } while (pageAll && token !== "");
  progress.clear();
  await output.write(list.end(rest));
  if (token !== "" && format === "table") {
    process.stderr.write(`arbor: there are more: --page-all, or --page-token ${escapeControls(token)}\n`);
  }
}

function setListField(request: Message, { methods }: ResourceCommand, name: string, value: string | number): void {
  const field = methods.list.input.fields.find((one) => one.name === name);
  if (field === undefined) throw new TypeError(`${methods.list} has no ${name}`);
  setField(request, field, value);
}

/** Builds the redirect URI to register at an identity provider, which is given as JSON; empty without a uid. */
export type RedirectUri = (provider: JsonObject) => string;

/**
 * Fetches the issuer of the service, which the redirect URIs of identity providers begin with.
 *
 * @returns undefined when the service does not answer. Tables then have no redirect URIs.
 */
export async function fetchRedirectUri(flags: ApiFlags): Promise<RedirectUri | undefined> {
  try {
    const issuer = await fetchIssuer(resolveApi(flags));
    if (issuer === undefined) return undefined;
    return ({ uid }) => (typeof uid === "string" && uid !== "" ? `${issuer}${buildCallbackPath(uid)}` : "");
  } catch {
    return undefined;
  }
}
