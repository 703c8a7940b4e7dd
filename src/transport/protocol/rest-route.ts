// How the messages of one HTTP rule are read and written.
import type { Message } from "@bufbuild/protobuf";
import type { MessageWriters } from "../../codec/json-wkt.js";
import type { HttpBinding } from "../http/http-binding.js";
import type { ListEncoder } from "../http/list-pieces.js";

/** A body that has been read. */
export interface ReadBody {
  readonly bytes: Uint8Array;
  readonly contentType: string | undefined;
}

/** The body of a response. */
export interface EncodedResponse {
  /** Undefined when there is no body at all. */
  readonly contentType: string | undefined;
  readonly body: string | Uint8Array;
}

/** Bytes of some type (google.api.HttpBody). */
export interface RawBody extends EncodedResponse {
  readonly contentType: string;
  readonly body: Uint8Array;
}

/**
 * The fields of a response with bytes of some type, unless the handler sets them. The console and its session belong to the
 * same origin, so what a browser shows of the bytes must not: it has an origin of its own, and runs no scripts.
 */
export const RAW_FIELDS = { "content-security-policy": "sandbox" };

/** Encodes one message of a response, which may have several. */
export type MessageEncode =
  | { readonly kind: "json"; readonly textOf: (response: object) => string }
  | { readonly kind: "raw"; readonly bodyOf: (response: object) => RawBody };

/** One HTTP rule of a method, ready to serve. */
export interface RestRoute {
  readonly binding: HttpBinding;
  /** The largest body, in bytes, before and after decompression. */
  readonly maxBytes: number;
  /** How often a stream of events without events sends a comment, in milliseconds. */
  readonly heartbeatMs: number;
  /**
   * Decodes the message of a request.
   *
   * @param captures the values of the path's variables
   * @param query the query without its question mark, or ""
   * @throws ApiError INVALID_ARGUMENT; HttpError 415
   */
  decode(captures: readonly string[], query: string, body: ReadBody | undefined): Message;
  /** Encodes a response, a message or an init object of one. */
  encode(response: object): EncodedResponse;
  /** Encodes a message of a stream. */
  readonly encodeMessage: MessageEncode;
  /** Creates the encoder of a list that is sent in chunks; undefined for other methods. */
  readonly createListEncoder: (() => ListEncoder) | undefined;
  /** Writes the details of errors. */
  readonly details: MessageWriters;
}
