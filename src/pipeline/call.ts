import type { DescMethod } from "@bufbuild/protobuf";
import { type ContextValues, createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { ApiError } from "../kernel/errors.js";
import { randomIds } from "../kernel/ids.js";
import type { Principal } from "../kernel/principal.js";
import { isUidp, isWithin, lineageOf, maximalOf } from "../kernel/uidp.js";
import type { Tx } from "../store/port.js";
import { withMapped } from "./auth/authorize.js";
import type { Caller } from "./auth/caller.js";

/** The wire protocol a call came in by. */
export type Protocol = "rest" | "grpc" | "grpc-web" | "connect";

/**
 * What a front end knows of a request. Front ends make one per call, so nothing costly may be done
 * before it is asked for.
 */
export interface Inbound {
  /** The wire protocol. */
  readonly protocol: Protocol;

  /** The HTTP method. */
  readonly method: string;

  /** Path and query as received. */
  readonly url: string;

  /** How long the caller waits, in milliseconds, fractions included; undefined when it did not say. */
  readonly timeoutMs?: number | undefined;

  /** The address of the peer, for the audit log. */
  readonly remoteAddress?: string | undefined;

  /** The value of a request header by its lower-case name; repeated headers joined by ", ". */
  header(name: string): string | undefined;

  /** All request headers. */
  headers(): Headers;

  /** Fires when the caller goes away. */
  signal?(): AbortSignal;
}

/** No unary call runs longer, whatever the caller allows (architecture, section 6 "Limits"). */
export const MAX_CALL_MS = 30_000;

const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** The id of a request: what its `x-request-id` says if that is sane, else a new one. */
export function requestIdFrom(given: string | undefined): string {
  return given !== undefined && REQUEST_ID.test(given) ? given : randomIds.newId();
}

/** A call as the handlers of streams see it: there is no transaction. */
export type StreamCall = Omit<
  Call,
  "tx" | "enter" | "admit" | "enterStream" | "prepared" | "refusal" | "after" | "next" | "moveOn"
>;

/**
 * One call on its way through {@link Invoke}: connect's `HandlerContext`, whose objects are made
 * only when a handler reads them, and what the pipeline adds for handlers.
 */
export class Call implements HandlerContext {
  readonly inbound: Inbound;
  readonly method: DescMethod;

  /** When the call began, in epoch milliseconds, by the clock of the service. */
  readonly startMs: number;

  /**
   * When the answer is of no more use, in epoch milliseconds. Streams last as long as their caller
   * allows, so theirs may be Infinity.
   */
  deadlineMs: number;

  /** The uid of what was changed, for the audit log, where neither request scope nor answer names it. */
  subjectUid: string | undefined;

  /** Who did it, for the audit log, where the method authenticates its caller by itself. */
  actorUid: string | undefined;

  /** Who calls, once that is proven; nobody where anybody may. */
  principal: Principal | undefined;

  /** What the preparation of the method came to; see `prepared` in method-table. */
  prepared: unknown;

  /**
   * What to answer although all is kept that the handler wrote: for refusals that have consequences.
   * What a handler throws undoes it.
   */
  refusal: ApiError | undefined;

  /** Behind what the part of a list lies that is being read; see `inParts` in method-table. */
  after: unknown;

  /** Behind what the next part lies, undefined where there is none. */
  next: unknown;

  #requestId: string | undefined;
  #requestHeader: Headers | undefined;
  #responseHeader: Headers | undefined;
  #responseTrailer: Headers | undefined;
  #values: ContextValues | undefined;
  #signal: AbortSignal | undefined;
  #caller: Caller | undefined;
  #pendingAt: string | undefined;
  #tx: Tx | undefined;

  constructor(inbound: Inbound, method: DescMethod, startMs: number) {
    this.inbound = inbound;
    this.method = method;
    this.startMs = startMs;
    const { timeoutMs = Number.POSITIVE_INFINITY } = inbound;
    this.deadlineMs = startMs + (method.methodKind === "unary" ? Math.min(timeoutMs, MAX_CALL_MS) : timeoutMs);
  }

  /** The open transaction. Only within the handler of a unary method; it never outlives it. */
  get tx(): Tx {
    if (this.#tx === undefined) throw new TypeError("call.tx is only there while the handler runs");
    return this.#tx;
  }

  /** Who calls, with what rights. Methods open to everybody have none. */
  get caller(): Caller {
    if (this.#caller === undefined) throw new TypeError(`${this.method.name} has no authenticated caller`);
    return this.#caller;
  }

  /**
   * The caller with the rights that add to lists over all groups, as `tx` sees them: what is granted by
   * pending bindings is not among them.
   */
  async callerEverywhere(tx: Tx = this.tx): Promise<Caller> {
    const { principal, uid } = this.caller;
    return this.caller.withGrants(await withMapped(principal, tx.access.everywhere(uid), tx));
  }

  /** The caller with all of its rights at one place, however far from the scope of the method. */
  async callerAt(place: string, tx: Tx = this.tx): Promise<Caller> {
    const { principal, uid } = this.caller;
    const caller = this.caller.withGrants(await withMapped(principal, tx.access.at(uid, lineageOf(place)), tx));
    this.#pendingAt ??= caller.pendingAt;
    return caller;
  }

  /**
   * The groups within which lies what a list may show: those of all the caller's bindings but the pending
   * ones, and where the request names a place also what those grant there.
   *
   * @param uidp what the request says of the place
   * @param named what another filter names by its uid; empty for nothing
   */
  async visibleGroups(
    uidp?: { readonly descendantsOf: string; readonly childrenOf: string },
    named = "",
  ): Promise<readonly string[]> {
    let visible = this.caller.visibleGroups();
    for (const place of [uidp?.descendantsOf ?? "", uidp?.childrenOf ?? "", named]) {
      if (!isUidp(place) || visible.some((top) => isWithin(place, top))) continue;
      visible = maximalOf([...visible, ...(await this.callerAt(place)).visibleGroups()]);
    }
    return visible;
  }

  /** The group of a pending binding that a right was read from which this call names the place of, if any. */
  get pendingAt(): string | undefined {
    return this.#pendingAt ?? this.#caller?.pendingAt;
  }

  /** Lets the pipeline hand the transaction and the caller over; not for handlers. */
  enter(tx: Tx, caller: Caller | undefined): void {
    this.#tx = tx;
    this.#caller = caller;
  }

  /** Lets the pipeline hand the caller over before there is a transaction; not for handlers. */
  admit(caller: Caller | undefined): void {
    this.#caller = caller;
  }

  /** Goes on to the next part of a list, which may take as long as the first. */
  moveOn(nowMs: number): void {
    this.after = this.next;
    const { timeoutMs = Number.POSITIVE_INFINITY } = this.inbound;
    this.deadlineMs = Math.min(this.startMs + timeoutMs, nowMs + MAX_CALL_MS);
  }

  /** Lets the pipeline of streams hand the caller and the end of the call over; not for handlers. */
  enterStream(caller: Caller | undefined, signal: AbortSignal): void {
    this.#caller = caller;
    this.#signal = signal;
  }

  /** Ties log lines, audit rows and answers together: the caller's `x-request-id` if sane, else random. */
  get requestId(): string {
    this.#requestId ??= requestIdFrom(this.inbound.header("x-request-id"));
    return this.#requestId;
  }

  get service() {
    return this.method.parent;
  }

  /** Fires when the caller goes away or its time is up. */
  get signal(): AbortSignal {
    this.#signal ??= this.#newSignal();
    return this.#signal;
  }

  #newSignal(): AbortSignal {
    const leftMs = Math.min(Math.max(0, Math.ceil(this.deadlineMs - Date.now())), MAX_CALL_MS);
    const late = AbortSignal.timeout(leftMs);
    const gone = this.inbound.signal?.();
    return gone === undefined ? late : AbortSignal.any([gone, late]);
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
}
