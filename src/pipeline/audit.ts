import type { Message } from "@bufbuild/protobuf";
import { rootOf } from "../kernel/uidp.js";
import type { AuditRow } from "../store/port.js";
import type { UnaryCall } from "./call.js";
import { Outcome, type UnaryEntry } from "./method-table.js";

/**
 * The audit row of a successful write. Its subject is what the handler's outcome names, otherwise the resource of
 * the response, by its `uid` or in version 1 its `id`, otherwise the scope of the request.
 */
export function auditRowOf(
  method: UnaryEntry,
  call: UnaryCall,
  request: Message,
  result: object,
  nowMs: number,
): AuditRow {
  const scope = method.auth.mode === "guarded" ? method.auth.scope?.of(request) : undefined;
  const outcome = result instanceof Outcome ? result : undefined;
  const facts = outcome?.facts;
  const subjectUid =
    facts?.subjectUid ?? uidIn(outcome === undefined ? result : (outcome.response as object)) ?? scope ?? "";
  const caller = method.auth.mode === "guarded" ? call.caller : undefined;
  return {
    rootUid: rootOf(subjectUid),
    timeMs: nowMs,
    type: method.auditType,
    method: method.path,
    subjectUid,
    actorUid: caller?.uid ?? facts?.actorUid ?? "",
    tokenId: caller?.principal.tokenId ?? "",
    requestId: call.requestId,
    remoteAddress: call.inbound.remoteAddress ?? "",
  };
}

function uidIn(response: object): string | undefined {
  const { uid, id = uid } = response as { uid?: unknown; id?: unknown };
  return typeof id === "string" && id !== "" ? id : undefined;
}
