// `arbor auth sessions`: the logins of the caller that go on, on this machine and on others.
import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  ListSessionsRequestSchema,
  RevokeSessionRequestSchema,
  SessionSchema,
  SessionsService,
} from "#gen/arbor/sessions/v1/sessions_pb.js";
import { confirm } from "../../output/confirm.js";
import { formatNamed } from "../../output/describe.js";
import { createListFormatter, formatResponse, type ListColumn } from "../../output/format.js";
import { escapeControls } from "../../output/terminal.js";
import { type CommonFlags, isTable } from "../flags.js";
import { createColumn } from "../iam/columns.js";
import { type ColumnFlags, selectColumns } from "../iam/select-columns.js";
import { type MethodCall, readPages, readRows } from "../method-call.js";
import { resolveApi } from "../service.js";
import { withSession } from "../session.js";
import { parseRefreshExpiryMs } from "./credentials.js";
import { findCredentialsFile, readCredentials } from "./credentials-file.js";

const PAGE_SIZE = 200;
const { listSessions, revokeSession } = SessionsService.method;

/**
 * Creates the columns of the list.
 *
 * @param storedEnd when the login of this machine ends, in seconds
 */
export function createSessionColumns(storedEnd?: number): readonly ListColumn[] {
  return [
    createColumn("CLIENT", "client"),
    createColumn("LOGGED IN", "createTime"),
    createColumn("EXPIRES", "expireTime"),
    { title: "THIS MACHINE", cell: ({ expireTime }) => (toSeconds(expireTime) === storedEnd ? "yes" : "") },
    {
      title: "LIMITED TO",
      kind: "prose",
      cell: ({ scopes = [], capabilities = [] }) => [scopes, capabilities].flat().join(", "),
    },
    createColumn("ID", "id", "uid"),
  ];
}

/** `arbor auth sessions list`: all sessions of the caller, the newest first. */
export async function listOwnSessions(flags: CommonFlags & ColumnFlags): Promise<void> {
  const columns = createSessionColumns(await findStoredEnd(flags));
  const shown = selectColumns(SessionSchema, columns, flags);
  await withSession(flags, async ({ call, output }) => {
    const list = createListFormatter(flags.output, "sessions", shown, output.terminal);
    const request = create(ListSessionsRequestSchema, { pageSize: PAGE_SIZE });
    for await (const { sessions = [] } of readPages(call, listSessions, request))
      await output.write(list.page(sessions as JsonObject[]));
    await output.write(list.end({}));
  });
}

/** `arbor auth sessions revoke`. */
export async function revokeOwnSession(
  id: string,
  { yes = false, ...flags }: CommonFlags & { readonly yes?: boolean },
): Promise<void> {
  await withSession(flags, async ({ call, output }) => {
    if (!yes) {
      const login = formatNamed("login", await describeLogin(call, id), id);
      await confirm(`End the ${login}?`, undefined, "nothing was revoked");
    }
    const response = await call(revokeSession, create(RevokeSessionRequestSchema, { id }));
    const empty = formatResponse(flags.output, response, () => [], output.terminal);
    await output.write(isTable(flags.output) ? `revoked ${escapeControls(id)}\n` : empty);
  });
}

// No method gets one session, and a person has few.
async function describeLogin(call: MethodCall, id: string): Promise<string> {
  const request = create(ListSessionsRequestSchema, { pageSize: PAGE_SIZE });
  for await (const row of readRows(call, listSessions, request)) if (row.id === id) return `of ${text(row.createTime)}`;
  return "";
}

/** When the login of this machine ends, in seconds: its refresh token has that time, as the session has. */
async function findStoredEnd(flags: CommonFlags): Promise<number | undefined> {
  const { logins } = await readCredentials(findCredentialsFile());
  const endMs = parseRefreshExpiryMs(logins.get(resolveApi(flags))?.refreshToken ?? "");
  return endMs === undefined ? undefined : endMs / 1000;
}

function toSeconds(time: unknown): number {
  return Math.floor(Date.parse(text(time)) / 1000);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
