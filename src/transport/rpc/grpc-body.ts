import type { ServerHttp2Stream } from "node:http2";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import type { ApiError } from "../../kernel/errors.js";
import { type BodyOptions, type BodyReceiver, collectBody } from "../http/body-collector.js";
import { type EnvelopeRules, findEnvelopeFault, notOne, openEnvelope, type SentMessage } from "./envelope.js";

/** Receives the message of a request, or an error; one method is called at most once. */
export interface MessageReceiver {
  onMessage(message: SentMessage): void;
  onFault(error: unknown): void;
}

/**
 * Reads the body of a unary gRPC request: exactly one message in its envelope. A message that breaks the rules is
 * rejected when its prefix arrives, and one that is still incomplete `timeoutMs` after its first byte as well.
 *
 * Nothing is reported when the peer resets the stream first.
 */
export function readMessage(
  stream: ServerHttp2Stream,
  rules: EnvelopeRules,
  timeoutMs: number,
  receiver: MessageReceiver,
): void {
  const body = new MessageBody(rules, timeoutMs, receiver);
  collectBody(stream, body, body);
}

class MessageBody implements BodyOptions, BodyReceiver {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly #rules: EnvelopeRules;
  readonly #receiver: MessageReceiver;

  constructor(rules: EnvelopeRules, timeoutMs: number, receiver: MessageReceiver) {
    this.maxBytes = rules.maxBytes + PREFIX_BYTES;
    this.timeoutMs = timeoutMs;
    this.#rules = rules;
    this.#receiver = receiver;
  }

  readAnnouncedLength(arrived: Buffer): number | undefined {
    return arrived.length < PREFIX_BYTES ? undefined : PREFIX_BYTES + arrived.readUInt32BE(1);
  }

  check(arrived: Buffer): ApiError | undefined {
    return findEnvelopeFault(arrived, this.#rules);
  }

  onBody(body: Buffer): void {
    let message: SentMessage;
    try {
      message = openEnvelope(body, this.#rules);
    } catch (error) {
      this.#receiver.onFault(error);
      return;
    }
    this.#receiver.onMessage(message);
  }

  // The prefix was checked, so more bytes arrived than it announced.
  onTooLarge(): void {
    this.#receiver.onFault(notOne());
  }

  onFault(error: ApiError): void {
    this.#receiver.onFault(error);
  }

  onGone(): void {}
}
