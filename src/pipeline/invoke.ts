// The one pipeline every call of every protocol goes through (architecture,
// sections 1 and 4): authenticate, then in one transaction authorize, validate,
// handle and record, then commit, and only then answer.
import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Clock } from "../kernel/clock.js";
import { ApiError, connectErrorFrom, deadlineExceeded } from "../kernel/errors.js";
import type { Principal } from "../kernel/principal.js";
import { rootOf } from "../kernel/uidp.js";
import type { Awaitable, Store, Tx } from "../store/port.js";
import { auditRowOf } from "./audit.js";
import type { Authenticate } from "./auth/authenticate.js";
import { authorize, type Guard, maskNotFound } from "./auth/authorize.js";
import type { Caller } from "./auth/caller.js";
import type { Call } from "./call.js";
import type { UnaryEntry } from "./method-table.js";
import { createProve } from "./prove.js";
import { requiredFieldsOf } from "./required-fields.js";
import { requireText } from "./text-fields.js";

/**
 * Runs a unary method. The request must be of the method's input type, or what decodes it: that is
 * called once the caller is known, so that nobody else learns what is wrong with a body. The result is
 * what the handler made, an init object or a message of the output type.
 *
 * @throws ConnectError with ErrorInfo, whatever went wrong; what decoding throws as it is.
 */
export type Invoke = (method: UnaryEntry, call: Call, request: Message | (() => Message)) => Promise<object>;

/** What the pipeline needs of the rest of the service. */
export interface InvokeDeps {
  readonly store: Store;
  readonly authenticate: Authenticate;
  readonly clock: Clock;
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
  /** Told after the answer that a person was let in by a binding that is pending in an organisation. */
  readonly onPendingUsed?: (identityUid: string, rootUid: string) => void;
  /** Told of errors the caller learns nothing about. */
  readonly onInternalError: (error: ConnectError, call: Call) => void;
}

/** Creates the pipeline. */
export function createInvoke(deps: InvokeDeps): Invoke {
  const { store, clock } = deps;
  const prove = createProve(deps.authenticate);

  return async function invoke(method, call, given) {
    try {
      if (call.principal === undefined) {
        const proven = prove(method, call.inbound.header("authorization"));
        call.principal = proven instanceof Promise ? await proven : proven;
      }
    } catch (error) {
      throw toConnectError(error, call);
    }
    const { principal } = call;
    // What is wrong with the bytes of a request is for its front end to say, but only to known callers.
    const request = typeof given === "function" ? given() : given;
    try {
      requireText(method.desc.input, request);
      const unit = (tx: Tx) => run(method, call, request, principal, tx);
      const options = { deadlineMs: call.deadlineMs };
      if (method.prepare ?? method.requireRoom) await prepare(method, call, request, principal);
      const response = method.access === "read" ? store.read(unit, options) : store.write(unit, options);
      const answer = response instanceof Promise ? await response : response;
      if (call.refusal !== undefined) throw call.refusal;
      if (call.pendingAt !== undefined) deps.onPendingUsed?.(call.caller.uid, rootOf(call.pendingAt));
      return answer;
    } catch (error) {
      throw toConnectError(error, call);
    }
  };

  function toConnectError(error: unknown, call: Call): ConnectError {
    const shown = connectErrorFrom(error, deps.errorDomain);
    if (!(error instanceof ApiError)) deps.onInternalError(shown, call);
    return shown;
  }

  // Nobody gets the service to do work elsewhere, or learns that a quota is full, who may not call the
  // method at all.
  async function prepare(
    method: UnaryEntry,
    call: Call,
    request: Message,
    principal: Principal | undefined,
  ): Promise<void> {
    const { auth } = method;
    const admit = async (tx: Tx, guard: Guard) => {
      const admitted = await authorize(guard, principal, request, tx, method.access);
      await method.requireRoom?.(request, admitted, tx);
      return admitted;
    };
    const options = { deadlineMs: call.deadlineMs };
    const caller = auth.mode === "guarded" ? await store.read((tx) => admit(tx, auth), options) : undefined;
    call.admit(caller);
    requiredFieldsOf(method.desc.input)(request);
    try {
      call.prepared = await method.prepare?.(request, call);
    } catch (error) {
      throw errorFor(caller, error, method, request);
    }
  }

  // No promise is made where the store and the handler answer at once: a point read costs little more.
  function run(
    method: UnaryEntry,
    call: Call,
    request: Message,
    principal: Principal | undefined,
    tx: Tx,
  ): Awaitable<object> {
    if (clock() >= call.deadlineMs) throw deadlineExceeded();
    const { auth } = method;
    const admitted = auth.mode === "guarded" ? authorize(auth, principal, request, tx, method.access) : undefined;
    if (admitted instanceof Promise) return admitted.then((caller) => handle(method, call, request, tx, caller));
    return handle(method, call, request, tx, admitted);
  }

  function handle(
    method: UnaryEntry,
    call: Call,
    request: Message,
    tx: Tx,
    caller: Caller | undefined,
  ): Awaitable<object> {
    call.enter(tx, caller);
    call.refusal = undefined;
    requiredFieldsOf(method.desc.input)(request);
    let answer: Awaitable<object>;
    try {
      answer = method.handler(request, call);
    } catch (error) {
      throw errorFor(caller, error, method, request);
    }
    if (method.access === "read" && !(answer instanceof Promise)) return answer;
    return finish(method, call, request, tx, caller, answer);
  }

  async function finish(
    method: UnaryEntry,
    call: Call,
    request: Message,
    tx: Tx,
    caller: Caller | undefined,
    answer: Awaitable<object>,
  ): Promise<object> {
    let response: object;
    try {
      response = await answer;
    } catch (error) {
      throw errorFor(caller, error, method, request);
    }
    if (method.access === "write") await tx.audit.append(auditRowOf(method, call, request, response, clock()));
    return response;
  }
}

function errorFor(caller: Caller | undefined, error: unknown, { auth }: UnaryEntry, request: Message): unknown {
  return auth.mode === "guarded" && caller ? maskNotFound(caller, error, auth, request) : error;
}
