// The forms of handlers (plain, with a preparation before the transaction, in chunks) and what they return.
import type {
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { ApiError } from "../kernel/errors.js";
import type { CallContext, StreamCall, UnaryCall } from "./call.js";

/**
 * The implementation of a method. A unary handler is a pure function of the request and the open transaction; a
 * streaming handler returns an `AsyncIterable` and runs outside any transaction.
 */
export type Handler =
  | ((request: never, call: UnaryCall) => Promise<object> | object)
  | ((request: never, call: StreamCall) => AsyncIterable<object>)
  | PreparedHandler<never, unknown, object>
  | ChunkedHandler<never, unknown, object>;

/**
 * A handler that needs something from outside, such as the keys of another issuer, before its
 * transaction begins. It must read again in the transaction what it relies on in the store.
 */
export interface PreparedHandler<I, P, O> {
  /** Runs before the transaction, at most once per call, and may use the network. */
  readonly prepare: (request: I, call: CallContext) => Promise<P>;
  readonly handle: (request: I, call: UnaryCall, prepared: P) => Promise<HandlerResult<O>> | HandlerResult<O>;
}

/** What a handler returns: the response message, or the message with an {@link Outcome}. */
export type HandlerResult<O> = O | Outcome<O>;

/** What a unary handler reports besides its response. */
export interface OutcomeFacts {
  /** The uid of what was changed, for the audit log, where neither response nor request scope names it. */
  readonly subjectUid?: string | undefined;
  /** The uid of the caller, for the audit log, where the handler authenticates it. */
  readonly actorUid?: string | undefined;
  /** What the caller gets instead of the response, although the handler's writes are kept. A thrown error undoes them. */
  readonly error?: ApiError | undefined;
}

/** A response, or a function that builds it after the commit, with its facts; see {@link withOutcome}. */
export class Outcome<O> {
  readonly response: O | (() => Promise<O>);
  readonly facts: OutcomeFacts;

  constructor(response: O | (() => Promise<O>), facts: OutcomeFacts) {
    this.response = response;
    this.facts = facts;
  }
}

/**
 * Adds to a response what the audit log cannot read from it, or the error that the caller gets instead.
 *
 * @param response the response, or a function that builds it after the commit: a transaction must not wait for anything
 * else, such as a signature
 * @example return withOutcome({}, { subjectUid: groupUid });
 */
export function withOutcome<O>(response: O | (() => Promise<O>), facts: OutcomeFacts): Outcome<O> {
  return new Outcome(response, facts);
}

/** A chunk of a list, and where the next chunk begins: undefined after the last one. */
export interface ListChunk<O, C> {
  readonly chunk: O;
  readonly next: C | undefined;
}

/** A handler of a list that has no pages; see {@link listInChunks}. */
export interface ChunkedHandler<I, C, O> {
  readonly readChunk: (request: I, call: UnaryCall, cursor: C | undefined) => Promise<ListChunk<O, C>>;
}

/**
 * Creates the handler of a list without pages, of any length. Each chunk is a unit of work of its own and is authorized
 * again, so a long list blocks no other call and ends when the caller's rights end. The list must be the only field of
 * the response.
 *
 * @param readChunk reads the chunk at `cursor`, the first chunk without one
 */
export function listInChunks<I, C, O>(
  readChunk: (request: I, call: UnaryCall, cursor: C | undefined) => Promise<ListChunk<O, C>>,
): ChunkedHandler<I, unknown, O> {
  return { readChunk: readChunk as ChunkedHandler<I, unknown, O>["readChunk"] };
}

/** Pairs a preparation with the handler that uses its result, checked by the compiler. */
export function withPreparation<I, P, O>(handler: PreparedHandler<I, P, O>): PreparedHandler<I, unknown, O> {
  return handler as PreparedHandler<I, unknown, O>;
}

/** The handlers of a service, by connect's local method names. */
export type Handlers<S extends DescService> = {
  [K in keyof S["method"]]: S["method"][K] extends DescMethodUnary<infer I, infer O>
    ?
        | ((
            request: MessageShape<I>,
            call: UnaryCall,
          ) => Promise<HandlerResult<MessageInitShape<O>>> | HandlerResult<MessageInitShape<O>>)
        | PreparedHandler<MessageShape<I>, unknown, MessageInitShape<O>>
        | ChunkedHandler<MessageShape<I>, unknown, MessageInitShape<O>>
    : S["method"][K] extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, call: StreamCall) => AsyncIterable<MessageInitShape<O>>
      : never;
};
