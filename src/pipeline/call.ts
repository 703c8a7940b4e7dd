import type { DescMethod } from "@bufbuild/protobuf";
import { type ContextValues, createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { Principal } from "../kernel/principal.js";
import type { TraceSpan } from "../kernel/trace.js";
import { isUidp, isWithin, lineageOf, maximalOf, rootOf } from "../kernel/uidp.js";
import type { AccessRow } from "../store/iam/access.js";
import type { UnitOptions } from "../store/store.js";
import type { Tx } from "../store/transaction.js";
import type { RequestProtocol, RequestRecord } from "../telemetry/request-record.js";
import { addMappedGrants } from "./auth/authorize.js";
import type { Caller, CapabilityBit } from "./auth/caller.js";
import type { FieldSpelling } from "./field-names.js";
import { principalKey } from "./mount-options.js";
import type { Reservation } from "./resource/reservation.js";

/** The wire protocol a call came in by. */
export type CallProtocol = Exclude<RequestProtocol, "http">;

/** A request as a front end reads it. There is one for each call, so headers are read when they are needed. */
export interface Inbound {
  readonly protocol: CallProtocol;

  /** The names that errors have for the fields of the request: those that its format has. */
  readonly fieldSpelling: FieldSpelling;

  /** The HTTP method. */
  readonly method: string;

  /** Path and query as received. */
  readonly url: string;

  /** How long the caller waits, in milliseconds, fractions included; undefined when it did not say. */
  readonly timeoutMs?: number | undefined;

  /** The address of the peer, for the audit log. */
  readonly remoteAddress?: string | undefined;

  /** The id of the request, which its response carries too. */
  readonly requestId: string;

  /** How its units of work wait for the database; absent where a call comes by no transport. */
  readonly turn?: Pick<UnitOptions, "key" | "maxWaitMs"> | undefined;

  /** What logs and metrics say of the request; absent where a call comes by no transport. */
  readonly record?: RequestRecord | undefined;

  /** The value of a request header by its lower-case name; repeated headers joined by ", ". */
  header(name: string): string | undefined;

  headers(): Headers;

  /** Fires when the caller goes away. */
  signal?(): AbortSignal;
}

/** No unary call runs longer, in milliseconds, whatever deadline its caller sets. */
export const MAX_CALL_MS = 30_000;

/**
 * What every call has: connect's `HandlerContext` and the authenticated caller. Headers, signals and ids are
 * created when a handler first reads them, because most calls need none.
 */
export abstract class CallContext implements HandlerContext {
  readonly inbound: Inbound;
  readonly method: DescMethod;

  /** When the call began, in epoch milliseconds, by the clock of the service. */
  readonly startMs: number;

  /** When the call must have ended, in epoch milliseconds; Infinity for a stream whose caller sets no deadline. */
  deadlineMs: number;

  /** Whether its preparation has changed something, which the audit log must show also where the call fails. */
  hasChanged = false;

  /** When the first of the rights ends that {@link callerEverywhere} has read, in epoch milliseconds; null: never. */
  everywhereEndMs: number | null = null;

  /** What the call is about to create; undefined where it has counted nothing. */
  reservation: Reservation | undefined;

  protected authenticated: Caller | undefined;
  protected ended: AbortSignal | undefined;

  #requestHeader: Headers | undefined;
  #responseHeader: Headers | undefined;
  #responseTrailer: Headers | undefined;
  #values: ContextValues | undefined;

  protected constructor(inbound: Inbound, method: DescMethod, startMs: number, deadlineMs: number) {
    this.inbound = inbound;
    this.method = method;
    this.startMs = startMs;
    this.deadlineMs = deadlineMs;
  }

  /** The caller and its rights. Throws TypeError for a method that everybody may call. */
  get caller(): Caller {
    if (this.authenticated === undefined) throw new TypeError(`${this.method.name} has no authenticated caller`);
    return this.authenticated;
  }

  /**
   * The caller with its rights in all groups, as `tx` reads them. Pending bindings grant nothing here: they count
   * where a request names a group.
   */
  async callerEverywhere(tx: Tx): Promise<Caller> {
    const { principal, uid } = this.caller;
    const caller = this.caller.withGrants(await addMappedGrants(principal, tx.access.findAllGrants(uid), tx));
    this.everywhereEndMs = caller.firstEndMs;
    return caller;
  }

  /** Appears in log lines, audit rows and errors: the caller's `x-request-id` if well formed, otherwise random. */
  get requestId(): string {
    return this.inbound.requestId;
  }

  /** The span of the call, whose children are what it does; undefined where traces are off. */
  get trace(): TraceSpan | undefined {
    return this.inbound.record?.trace;
  }

  /** The trace of the call: the caller's if it names one in a well-formed `traceparent`; empty where there is none. */
  get traceId(): string {
    return this.inbound.record?.traceId ?? "";
  }

  get service() {
    return this.method.parent;
  }

  /** Aborts when the caller disconnects or the deadline passes. */
  get signal(): AbortSignal {
    this.ended ??= this.#newSignal();
    return this.ended;
  }

  #newSignal(): AbortSignal {
    const leftMs = Math.min(Math.max(0, Math.ceil(this.deadlineMs - Date.now())), MAX_CALL_MS);
    const deadline = AbortSignal.timeout(leftMs);
    const disconnected = this.inbound.signal?.();
    return disconnected === undefined ? deadline : AbortSignal.any([disconnected, deadline]);
  }

  readonly timeoutMs = (): number | undefined =>
    this.deadlineMs === Number.POSITIVE_INFINITY ? undefined : Math.max(0, this.deadlineMs - Date.now());

  get requestMethod(): string {
    return this.inbound.method;
  }

  get requestHeader(): Headers {
    this.#requestHeader ??= this.inbound.headers();
    return this.#requestHeader;
  }

  get responseHeader(): Headers {
    this.#responseHeader ??= new Headers();
    return this.#responseHeader;
  }

  get responseTrailer(): Headers {
    this.#responseTrailer ??= new Headers();
    return this.#responseTrailer;
  }

  /** The response headers a handler set, if it touched them at all. */
  get responseHeaderIfSet(): Headers | undefined {
    return this.#responseHeader;
  }

  /** The response trailers a handler set, if it touched them at all. */
  get responseTrailerIfSet(): Headers | undefined {
    return this.#responseTrailer;
  }

  get protocolName(): string {
    return this.inbound.protocol;
  }

  get values(): ContextValues {
    this.#values ??= createContextValues();
    return this.#values;
  }

  get url(): string {
    return this.inbound.url;
  }

  /** Sets the caller and the signal that ends a call outside of transactions. Only the pipeline calls it. */
  begin(caller: Caller | undefined, principal: Principal | undefined, signal: AbortSignal): void {
    this.authenticated = caller;
    this.ended = signal;
    if (principal !== undefined) this.values.set(principalKey, principal);
  }
}

/** The call of a unary method. Its handler runs within a transaction. */
export class UnaryCall extends CallContext {
  /** The result of the method's preparation (`PreparedHandler` in handlers). */
  prepared: unknown;

  /** Where the chunk of a list that is being read begins; undefined for the first chunk. */
  cursor: unknown;

  /** Where the next chunk begins; undefined after the last chunk. */
  nextCursor: unknown;

  /**
   * The name of the caller, set by a handler that deletes the caller's identity: the audit log cannot read it later.
   */
  actorName: string | undefined;

  /**
   * What the call does after the commit and before its response, set by a handler whose work takes several units. It
   * must not throw: the change is made.
   */
  finish: (() => Promise<void>) | undefined;

  #pendingAt: string | undefined;
  #tx: Tx | undefined;

  constructor(inbound: Inbound, method: DescMethod, startMs: number) {
    const { timeoutMs = Number.POSITIVE_INFINITY } = inbound;
    super(inbound, method, startMs, startMs + Math.min(timeoutMs, MAX_CALL_MS));
  }

  /** The open transaction. Throws TypeError outside the handler. */
  get tx(): Tx {
    if (this.#tx === undefined) throw new TypeError("call.tx is only there while the handler runs");
    return this.#tx;
  }

  /** The caller with all of its rights at `scope`, which need not be within the scope of the method. */
  async callerAt(scope: string): Promise<Caller> {
    return this.#withGrants(this.tx.access.findGrantsAt(this.caller.uid, lineageOf(scope)));
  }

  /** The caller with all of its rights at `groups`, which belong to one organisation. */
  async callerAtAll(groups: readonly string[]): Promise<Caller> {
    const [first = ""] = groups;
    const scopes = [...new Set(groups.flatMap(lineageOf))];
    return this.#withGrants(this.tx.access.findGrantsIn(this.caller.uid, rootOf(first), scopes));
  }

  async #withGrants(rows: Promise<readonly AccessRow[]>): Promise<Caller> {
    const caller = this.caller.withGrants(await addMappedGrants(this.caller.principal, rows, this.tx));
    this.#pendingAt ??= caller.pendingAt;
    return caller;
  }

  /**
   * The groups whose resources a list may include: those of the caller's accepted bindings, and of pending bindings
   * where the request names the group.
   *
   * @param uidp the filter of the request by uids
   * @param named the uid of another filter; empty for none
   * @param needed what the caller must hold in the groups; what the method declares unless given
   */
  async visibleGroups(
    uidp?: { readonly descendantsOf: string; readonly childrenOf: string },
    named = "",
    needed?: readonly CapabilityBit[],
  ): Promise<readonly string[]> {
    const seenBy = (caller: Caller) => (needed === undefined ? caller : caller.withNeeded(needed)).visibleGroups();
    let visible = seenBy(this.caller);
    for (const scope of [uidp?.descendantsOf ?? "", uidp?.childrenOf ?? "", named]) {
      if (!isUidp(scope) || visible.some((top) => isWithin(scope, top))) continue;
      visible = maximalOf([...visible, ...seenBy(await this.callerAt(scope))]);
    }
    return visible;
  }

  /** The group of the pending binding that authorized this call; undefined where none did. */
  get pendingAt(): string | undefined {
    return this.#pendingAt ?? this.authenticated?.pendingAt;
  }

  /** Sets the caller before the transaction begins. Only the pipeline calls it. */
  setCaller(caller: Caller | undefined): void {
    this.authenticated = caller;
  }

  /** Sets the transaction and the caller that it authorized. Only the pipeline calls it. */
  setTransaction(tx: Tx, caller: Caller | undefined): void {
    this.#tx = tx;
    this.authenticated = caller;
    // The unit of work may run again.
    this.finish = undefined;
  }

  /** Continues with the next chunk of a list, which may take as long as the first. Only the pipeline calls it. */
  nextChunk(nowMs: number): void {
    this.cursor = this.nextCursor;
    const { timeoutMs = Number.POSITIVE_INFINITY } = this.inbound;
    this.deadlineMs = Math.min(this.startMs + timeoutMs, nowMs + MAX_CALL_MS);
  }
}

/** The call of a method that streams its responses. It has no transaction and lasts as long as its caller allows. */
export class StreamCall extends CallContext {
  constructor(inbound: Inbound, method: DescMethod, startMs: number) {
    super(inbound, method, startMs, startMs + (inbound.timeoutMs ?? Number.POSITIVE_INFINITY));
  }
}
