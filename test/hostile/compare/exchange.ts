// What is sent to both services and what comes back, byte for byte.
import type { AnsweredRequest, WireResponse } from "../../support/read-response.js";
import type { Field } from "../wire/hpack.js";

/** A request as it goes out. */
export interface WireRequest extends AnsweredRequest {
  /** What equal differences are counted by: the protocol and what of it is odd, without what is different each time. */
  readonly label: string;
  readonly http: 1 | 2;
  /** Path and query. */
  readonly path: string;
  readonly fields: readonly Field[];
  readonly body?: Buffer | undefined;
  /** Bytes in place of all these, over HTTP/1.1: the request may be none. */
  readonly raw?: Buffer | undefined;
  /** Fields in place of the pseudo-header fields and the others, over HTTP/2: they may be malformed. */
  readonly block?: readonly Field[] | undefined;
  /** Whether the body goes out as chunks, over HTTP/1.1. */
  readonly chunked?: boolean | undefined;
  /** Whether the request stays open until its response has come, over HTTP/2. */
  readonly open?: boolean | undefined;
  /** Whether the response may go on for ever: it is cut off when no more comes for a while. */
  readonly endless?: boolean | undefined;
  /** Whether the service may close the connection, or wait for more. */
  readonly odd?: boolean | undefined;
}

/** Sends requests to one service, one after another. */
export interface WireClient {
  /** @param patience how many times as long as usual is waited where a response may not come */
  send(request: WireRequest, patience?: number): Promise<WireResponse>;
  close(): void;
}

/** How long a response may take that must come, in milliseconds. */
export const RESPONSE_MS = 30_000;
/** How long one is waited for that may not come, and the rest of one that may go on for ever, in milliseconds. */
export const QUIET_MS = 80;
export const REST_MS = 40;

/** The local address of the connection of a number: connections, and requests that fail, are limited by address. */
export function addressOf(connection: number): string {
  if (process.platform !== "linux") return "127.0.0.1";
  return `127.0.${1 + (Math.floor(connection / 250) % 250)}.${1 + (connection % 250)}`;
}
