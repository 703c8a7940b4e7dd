// The pipeline of unary calls of every protocol. A REST call such as `GET /iam/v2beta1/groups/{uid}` takes these steps:
//
//   transport/dispatch.ts      chooses who answers by path and content type.
//   transport/rest/gateway.ts  finds the route of a request.
//   transport/serve.ts         does what every call does: it verifies the token (auth/authenticate.ts), and has the protocol
//                              (transport/protocol/rest.ts) read the message of the method.
//   invoke                     opens the transaction that the method declares: a read shares a snapshot, a write a commit.
//     auth/authorize.ts        reads the identity and its grants in it: capabilities at the scope of the request.
//     validate-request.ts      checks required fields.
//     the handler              of iam, registry and so on reads and writes through `call.tx`; resource/ has what the
//                              handlers of all kinds share.
//     change                   of a write: the audit row, in the same transaction.
//   commit                     and only then `call.finish`, and the response.
//   transport/protocol/rest.ts encodes the response, or the error (kernel/errors.ts).
//
// A unit of work may run again after a conflict, so a handler has no effect besides its transaction. What a handler needs
// from outside is prepared before (`prepare`), and so is the check of a quota (resource/quota.ts).
import type { Message } from "@bufbuild/protobuf";
import { formatBody } from "../kernel/audit-body.js";
import { deadlineExceeded } from "../kernel/errors.js";
import type { Principal } from "../kernel/principal.js";
import type { TraceSpan } from "../kernel/trace.js";
import { rootOf } from "../kernel/uidp.js";
import type { AuditRow } from "../store/tables/audit.js";
import type { Tx } from "../store/transaction.js";
import { authorize, type Guard, maskNotFound } from "./auth/authorize.js";
import type { Caller } from "./auth/caller.js";
import { showBody } from "./body.js";
import type { UnaryCall } from "./call.js";
import { Outcome } from "./handlers.js";
import { invokeMounted } from "./invoke-mounted.js";
import type { EntryBody, UnaryEntry } from "./method-table.js";
import { Reservation } from "./resource/reservation.js";
import { type InvokeDeps, readTraced, toCallError, UNIT_SPAN_NAMES } from "./unit-of-work.js";
import { assertNoNul, assertRequiredFields } from "./validate-request.js";

/**
 * Runs a unary method.
 *
 * @param principal the caller as the transport authenticated it; undefined for methods that need none
 * @param request a message of the method's input type, or a function that decodes one. A decoding error is thrown as
 * it is.
 * @returns the handler's response, an init object or a message of the output type
 * @throws ConnectError with ErrorInfo, whatever went wrong
 */
export type Invoke = (
  method: UnaryEntry,
  call: UnaryCall,
  principal: Principal | undefined,
  request: Message | (() => Message),
) => Promise<object>;

/** The event type of a deletion that has deleted a part of what is below a resource, and failed. */
const UNFINISHED = "arbor.deletion.unfinished.v1";

export function createInvoke(deps: InvokeDeps): Invoke {
  const { store, clock } = deps;

  return async function invoke(method, call, principal, given) {
    // Errors of decoding are left to the front end, which knows the format.
    const request = typeof given === "function" ? given() : given;
    if (method.mounted !== undefined) return invokeMounted(deps, method, call, principal, request);
    let trace: TraceSpan | undefined;
    try {
      assertNoNul(method.desc.input, request);
      const unit = (tx: Tx) => run(method, call, request, principal, tx);
      if (method.prepare ?? method.requireRoom) await prepare(method, call, request, principal);
      trace = call.trace?.startChild(UNIT_SPAN_NAMES[method.access]);
      const { turn } = call.inbound;
      const options = { key: turn?.key, maxWaitMs: turn?.maxWaitMs, deadlineMs: call.deadlineMs, trace };
      const result = method.access === "read" ? store.read(unit, options) : store.write(unit, options);
      const outcome = await result;
      call.hasChanged = false;
      trace?.end();
      await call.finish?.();
      const isOutcome = outcome instanceof Outcome;
      if (isOutcome && outcome.facts.error !== undefined) throw outcome.facts.error;
      if (call.pendingAt !== undefined) deps.onPendingUsed?.(call.caller.uid, rootOf(call.pendingAt));
      if (!isOutcome) return outcome;
      return typeof outcome.response === "function"
        ? ((await outcome.response()) as object)
        : (outcome.response as object);
    } catch (error) {
      trace?.fail(error);
      const cause = call.hasChanged ? await noteUnfinished(method, call, request, error) : error;
      throw toCallError(cause, method.desc, call, deps);
    } finally {
      call.reservation?.release();
    }
  };

  // A call that has deleted a part and failed would otherwise leave no trace: its audit row comes with the rest.
  async function noteUnfinished(method: UnaryEntry, call: UnaryCall, request: Message, error: unknown) {
    const row = { ...buildAuditRow(method, call, request, {}, clock()), type: UNFINISHED, body: undefined };
    try {
      await store.write((tx) => tx.audit.append(row));
      return error;
    } catch (fault) {
      return fault;
    }
  }

  // The quota and the preparation come after authorization, because their errors show what the organisation has.
  async function prepare(
    method: UnaryEntry,
    call: UnaryCall,
    request: Message,
    principal: Principal | undefined,
  ): Promise<void> {
    const { auth } = method;
    const authorizeFirst = async (tx: Tx, guard: Guard) => {
      const caller = await authorize(guard, principal, request, tx, method.access);
      if (method.requireRoom === undefined) return caller;
      // The read may run again.
      call.reservation?.release();
      call.reservation = new Reservation();
      await method.requireRoom(request, caller, tx, call.reservation);
      return caller;
    };
    const caller =
      auth.mode === "guarded"
        ? await readTraced(store, call, call.deadlineMs, (tx) => authorizeFirst(tx, auth))
        : undefined;
    call.setCaller(caller);
    assertRequiredFields(method.desc.input, request);
    try {
      call.prepared = await method.prepare?.(request, call);
    } catch (error) {
      throw maskError(caller, error, method, request);
    }
  }

  // A call that has changed nothing leaves no audit row, whatever its response.
  async function run(
    method: UnaryEntry,
    call: UnaryCall,
    request: Message,
    principal: Principal | undefined,
    tx: Tx,
  ): Promise<object> {
    if (clock() >= call.deadlineMs) throw deadlineExceeded();
    const { auth } = method;
    const caller = auth.mode === "guarded" ? await authorize(auth, principal, request, tx, method.access) : undefined;
    call.setTransaction(tx, caller);
    recordOrganisation(method, call, request, caller);
    assertRequiredFields(method.desc.input, request);
    let before: object | undefined;
    let result: object;
    try {
      if (call.reservation?.mustRecount && caller) await method.requireRoom?.(request, caller, tx);
      if (method.body?.findBefore)
        before = await method.body.findBefore(scopeOf(method, request), call, request as never);
      result = await method.handler(request, call);
    } catch (error) {
      throw maskError(caller, error, method, request);
    }
    if (method.access === "write" && (tx.changedRows > 0 || call.hasChanged)) {
      const row = buildAuditRow(method, call, request, result, clock(), before);
      const { record } = call.inbound;
      if (record !== undefined && row.rootUid !== "") record.rootUid = row.rootUid;
      await tx.audit.append(row);
    }
    return result;
  }
}

// Only after authorization: before it the scope is any text that a caller sends.
function recordOrganisation({ auth }: UnaryEntry, call: UnaryCall, request: Message, caller: Caller | undefined): void {
  const { record } = call.inbound;
  if (record === undefined || caller === undefined || auth.mode !== "guarded" || auth.scope === undefined) return;
  record.rootUid = rootOf(auth.scope.of(request));
}

function maskError(caller: Caller | undefined, error: unknown, { auth }: UnaryEntry, request: Message): unknown {
  return auth.mode === "guarded" && caller ? maskNotFound(caller, error, auth, request) : error;
}

/**
 * The audit row of a successful write. Its subject is what the handler's outcome names, otherwise the resource of
 * the response, by its `uid` or in version 1 its `id`, otherwise the scope of the request.
 */
function buildAuditRow(
  method: UnaryEntry,
  call: UnaryCall,
  request: Message,
  result: object,
  nowMs: number,
  before?: object,
): AuditRow {
  const outcome = result instanceof Outcome ? result : undefined;
  const facts = outcome?.facts;
  const response = outcome === undefined ? result : (outcome.response as object);
  const subjectUid = facts?.subjectUid ?? findUid(response) ?? scopeOf(method, request);
  const caller = method.auth.mode === "guarded" ? call.caller : undefined;
  return {
    rootUid: rootOf(subjectUid),
    timeMs: nowMs,
    type: method.auditType,
    method: method.path,
    subjectUid,
    actorUid: caller?.uid ?? facts?.actorUid ?? "",
    actorName: call.actorName,
    tokenId: caller?.principal.tokenId ?? "",
    requestId: call.requestId,
    traceId: call.traceId,
    remoteAddress: call.inbound.remoteAddress ?? "",
    body: method.body && buildBody(method.body, method.auditType, response, before),
  };
}

function scopeOf({ auth }: UnaryEntry, request: Message): string {
  return (auth.mode === "guarded" ? auth.scope?.of(request) : undefined) ?? "";
}

function buildBody(
  { type, view, response: shows, shown }: EntryBody,
  eventType: string,
  result: object,
  found?: object,
): string {
  const response = shown === undefined ? result : shown(result as never);
  const before = shows === "before" ? response : found;
  const after = shows === undefined ? response : undefined;
  const change = {
    type,
    ...(before && { before: showBody(view, before) }),
    ...(after && { after: showBody(view, after) }),
  };
  return formatBody(change, eventType);
}

function findUid(response: object): string | undefined {
  const { uid, id = uid } = response as { uid?: unknown; id?: unknown };
  return typeof id === "string" && id !== "" ? id : undefined;
}
