// `arbor can` and `arbor access explain`: whether an identity may do something, and why.
import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  AccessService,
  CheckRequestSchema,
  ExplainRequestSchema,
  GrantSchema,
} from "#gen/arbor/access/v1/access_pb.js";
import { NegativeAnswer } from "../../errors.js";
import { createListFormatter, formatResponse } from "../../output/format.js";
import { escapeControls } from "../../output/terminal.js";
import { type CommonFlags, isTable } from "../flags.js";
import { type ColumnFlags, selectColumns } from "../iam/select-columns.js";
import { withSession } from "../session.js";
import { createGrantColumns } from "./grants.js";
import { printNotes } from "./notes.js";
import { checkPlace, findPlace, isMethod, type PlaceFlags, parseActions, toRequestedIdentity } from "./question.js";

/**
 * `arbor can`.
 *
 * @param named the identity
 * @param what a method or capabilities
 * @throws NegativeAnswer when it may not
 */
export async function printDecision(named: string, what: string, flags: CommonFlags & PlaceFlags): Promise<void> {
  const actions = parseActions(what);
  checkPlace(flags, !isMethod(what));
  let isAllowed = false;
  await withSession(flags, async (session) => {
    const { call, output } = session;
    const question = { identity: toRequestedIdentity(named), resource: await findPlace(session, flags), actions };
    const response = await call(AccessService.method.check, create(CheckRequestSchema, question));
    isAllowed = response.allowed === true;
    const { output: format } = flags;
    await output.write(
      isTable(format) ? formatDecision(response) : formatResponse(format, response, () => [], output.terminal),
    );
    printNotes(response, format);
  });
  if (!isAllowed) throw new NegativeAnswer("no");
}

/** `arbor access explain`. It has an answer either way, so it succeeds. */
export async function printExplanation(
  named: string,
  what: string,
  flags: CommonFlags & PlaceFlags & ColumnFlags,
): Promise<void> {
  const actions = parseActions(what);
  checkPlace(flags, !isMethod(what));
  const columns = selectColumns(GrantSchema, createGrantColumns("named"), flags);
  await withSession(flags, async (session) => {
    const { call, output } = session;
    const question = { identity: toRequestedIdentity(named), resource: await findPlace(session, flags), actions };
    const response = await call(AccessService.method.explain, create(ExplainRequestSchema, question));
    const { output: format } = flags;
    if (!isTable(format)) return output.write(formatResponse(format, response, () => [], output.terminal));
    const grants = (response.grants ?? []) as JsonObject[];
    const list = createListFormatter(format, "grants", columns, output.terminal);
    await output.write(formatDecision(response) + (grants.length > 0 ? list.page(grants) : ""));
    printNotes(response, format);
  });
}

function formatDecision({ allowed, missingCapabilities }: JsonObject): string {
  if (allowed === true) return "yes\n";
  const missing = (missingCapabilities ?? []) as string[];
  return missing.length === 0 ? "no\n" : `no: lacks ${escapeControls(missing.join(" and "))}\n`;
}
