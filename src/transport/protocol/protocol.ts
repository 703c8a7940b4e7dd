import type { IncomingHttpHeaders } from "node:http";
import type { Message } from "@bufbuild/protobuf";
import type { CallContext, UnaryCall } from "../../pipeline/call.js";
import type { MethodEntry, UnaryEntry } from "../../pipeline/method-table.js";
import type { CallForm, Request } from "../http/request.js";
import type { Failure } from "./failure.js";

/** Decodes a message that has been read. @throws ApiError INVALID_ARGUMENT naming what is wrong; HttpError */
export type Decode = () => Message;

/** A protocol in one of its forms: how a call is read from a request, and how it is answered. `serve` calls it. */
export interface Protocol extends CallForm {
  /** Checks the fields of the protocol itself. @throws ApiError INVALID_ARGUMENT */
  check?(fields: IncomingHttpHeaders): void;

  /**
   * The timeout that a request names, in milliseconds; undefined when it names none.
   *
   * @throws ApiError INVALID_ARGUMENT when it is malformed
   */
  timeoutOf(fields: IncomingHttpHeaders): number | undefined;

  /**
   * Reads the only message of a request. Synchronous where no byte of a body is awaited.
   *
   * @throws HttpError, ApiError for a body that is too large or malformed; the error of `callerGone`
   */
  read(request: Request, entry: MethodEntry): Decode | Promise<Decode>;

  /** Reads the messages of a stream of requests; its errors are those of {@link read} and of {@link Decode}. */
  readStream(request: Request, entry: MethodEntry): AsyncIterable<Message>;

  /**
   * Sends the one response of a call.
   *
   * @param response a message or an init object of one
   * @throws what its encoder and `chargeResponse` throw; then nothing was sent
   */
  answer(request: Request, call: CallContext, entry: UnaryEntry, response: object): void | Promise<void>;

  /** Sends a list in chunks, and returns them. May throw after it has begun to send. */
  answerList(
    request: Request,
    call: UnaryCall,
    entry: UnaryEntry,
    chunks: AsyncGenerator<object, void, void>,
  ): Promise<void>;

  /** Sends a stream of responses, and returns it. May throw after it has begun to send. */
  answerStream(request: Request, call: CallContext, entry: MethodEntry, messages: AsyncIterable<object>): Promise<void>;

  /**
   * Answers with an error; a response that has begun ends with it.
   *
   * @param call undefined before its request was read
   * @throws ApiError RESOURCE_EXHAUSTED when there is no room even for that
   */
  fail(request: Request, call: CallContext | undefined, failure: Failure): void | Promise<void>;
}
