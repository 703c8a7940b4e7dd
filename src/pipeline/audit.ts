import type { Message } from "@bufbuild/protobuf";
import { rootOf } from "../kernel/uidp.js";
import type { AuditRow } from "../store/port.js";
import type { Call } from "./call.js";
import type { UnaryEntry } from "./method-table.js";

/**
 * The audit row of a successful write: who did what to which thing, and how it can be traced. The
 * thing is the resource the answer describes, by its `uid` or as `id` in version 1, else the one the
 * request names.
 */
export function auditRowOf(
  method: UnaryEntry,
  call: Call,
  request: Message,
  response: object,
  nowMs: number,
): AuditRow {
  const scope = method.auth.mode === "guarded" ? method.auth.scope?.of(request) : undefined;
  const subjectUid = call.subjectUid ?? uidIn(response) ?? scope ?? "";
  const caller = method.auth.mode === "guarded" ? call.caller : undefined;
  return {
    rootUid: rootOf(subjectUid),
    timeMs: nowMs,
    type: method.auditType,
    method: method.path,
    subjectUid,
    actorUid: caller?.uid ?? call.actorUid ?? "",
    tokenId: caller?.principal.tokenId ?? "",
    requestId: call.requestId,
    remoteAddress: call.inbound.remoteAddress ?? "",
  };
}

function uidIn(response: object): string | undefined {
  const { uid, id = uid } = response as { uid?: unknown; id?: unknown };
  return typeof id === "string" && id !== "" ? id : undefined;
}
