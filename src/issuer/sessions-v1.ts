// The handlers of SessionsService: the logins of the caller that go on, with a refresh token or in the console.
import { create } from "@bufbuild/protobuf";
import {
  type ListSessionsRequest,
  type RevokeSessionRequest,
  type Session,
  SessionSchema,
  SessionsService,
} from "#gen/arbor/sessions/v1/sessions_pb.js";
import { listCapabilityNames } from "../iam/roles/capability-names.js";
import { invalidArgument, notFound, notPermitted, type ResourceKind } from "../kernel/errors.js";
import type { PageTokens } from "../kernel/page-token.js";
import { timestampOf } from "../kernel/time.js";
import type { UnaryCall } from "../pipeline/call.js";
import { withOutcome } from "../pipeline/handlers.js";
import { serve } from "../pipeline/method-table.js";
import { ListTokens, parsePageSize } from "../pipeline/resource/paging.js";
import { identityKind } from "../store/iam/identities.js";
import type { RefreshTokenRow } from "../store/tables/tokens.js";
import type { Tx } from "../store/transaction.js";
import type { StoredGrant } from "./tokens.js";

const sessionKind: ResourceKind = { displayName: "session", type: "arbor.dev/Session" };

/** Creates SessionsService. */
export function sessionsV1({ tokens }: { readonly tokens: PageTokens<Tx> }) {
  async function listSessions({ pageSize, pageToken }: ListSessionsRequest, call: UnaryCall) {
    const { tx, startMs } = call;
    const identityUid = requireUnlimitedCaller(call, "listing sessions");
    const limit = parsePageSize(pageSize);
    const pages = new ListTokens(tokens, ["ListSessions", identityUid], startMs);
    const cursor = await pages.read(tx, pageToken);
    const first = { createTimeMs: Number.MAX_SAFE_INTEGER, family: "" };
    const after = cursor ? { createTimeMs: Number(cursor.key), family: cursor.uid } : first;
    // Logins from before a revocation cannot go on.
    const sinceMs = ((await tx.table(identityKind).find(identityUid))?.notBefore ?? 0) * 1000;
    // One more than fits shows whether there is a next page.
    const found = await tx.refreshTokens.listLogins(identityUid, after, { sinceMs, nowMs: startMs, limit: limit + 1 });
    const rows = found.slice(0, limit);
    const last = found.length > limit ? rows.at(-1) : undefined;
    return {
      sessions: rows.map(sessionToProto),
      nextPageToken: pages.create(last && { key: last.createTimeMs, uid: last.family }),
    };
  }

  async function revokeSession({ id }: RevokeSessionRequest, call: UnaryCall) {
    const identityUid = requireUnlimitedCaller(call, "revoking a session");
    if (id === "") throw invalidArgument({ field: "id", rule: "is required" });
    const { refreshTokens } = call.tx;
    if (!(await refreshTokens.isFamilyOf(id, identityUid))) throw notFound(sessionKind, id);
    await refreshTokens.deleteFamily(id);
    return withOutcome({}, { subjectUid: identityUid });
  }

  return serve(SessionsService, { listSessions, revokeSession });
}

// A limited token neither shows nor ends what its bearer may do beyond it.
function requireUnlimitedCaller({ caller }: UnaryCall, action: string): string {
  if (!caller.unlimited) throw notPermitted(`${action} needs a token that is not limited`);
  return caller.uid;
}

function sessionToProto(row: Pick<RefreshTokenRow, "family" | "grant" | "createTimeMs" | "expireTimeMs">): Session {
  const { limit, client = "" } = row.grant as StoredGrant;
  return create(SessionSchema, {
    id: row.family,
    createTime: timestampOf(row.createTimeMs),
    expireTime: timestampOf(row.expireTimeMs),
    scopes: [...(limit?.scope ?? [])],
    capabilities: limit?.cap === undefined ? [] : listCapabilityNames(limit.cap),
    client,
  });
}
