// Answers of handlers as bodies of HTTP responses, by the rule of
// google.api.http.
import type { Message } from "@bufbuild/protobuf";
import { getField } from "../../codec/fields.js";
import type { JsonWriters } from "../../codec/json-writer.js";
import type { HttpBinding } from "../http/http-binding.js";
import { isHttpBody } from "./decode.js";

/** The body of a response. */
export interface EncodedAnswer {
  /** Undefined when there is no body at all. */
  readonly contentType: string | undefined;
  readonly body: string | Uint8Array;
}

/** Bytes of some type (google.api.HttpBody). */
export interface RawBody extends EncodedAnswer {
  readonly contentType: string;
  readonly body: Uint8Array;
}

/** Makes the body of what a handler answered: a message or an init object for one. */
export type Encode = (answer: object) => EncodedAnswer;

const JSON_TYPE = "application/json";
const NOTHING: EncodedAnswer = { contentType: undefined, body: "" };

/** The same without a status or a body of its own, for answers that may be one of many. */
export type MessageEncode =
  | { readonly kind: "json"; readonly textOf: (answer: object) => string }
  | { readonly kind: "raw"; readonly bodyOf: (answer: object) => RawBody };

/** Makes the encoder of one binding of a method with one answer. */
export function createEncode(binding: HttpBinding, writers: JsonWriters): Encode {
  const { method, responseBody, entry } = binding;
  const empty = responseBody === undefined && entry.desc.output.typeName === "google.protobuf.Empty";
  // A delete answers with an empty body (docs/api-rules.md#methods); other empty answers are `{}`, which clients parse.
  if (method === "DELETE" && empty) return () => NOTHING;
  const part = createMessageEncode(binding, writers);
  if (part.kind === "raw") return part.bodyOf;
  const { textOf } = part;
  return (answer) => ({ contentType: JSON_TYPE, body: textOf(answer) });
}

/** Makes the encoder of the answers of one binding, each by itself. */
export function createMessageEncode(binding: HttpBinding, writers: JsonWriters): MessageEncode {
  const { responseBody } = binding;
  const { output } = binding.entry.desc;
  if (responseBody === undefined) {
    return isHttpBody(output)
      ? { kind: "raw", bodyOf: rawBody }
      : { kind: "json", textOf: whenCalled(() => writers.answer(output)) };
  }
  const getBody = (answer: object) => getField(answer as Message, responseBody);
  if (responseBody.fieldKind === "message" && isHttpBody(responseBody.message)) {
    return { kind: "raw", bodyOf: (answer) => rawBody((getBody(answer) ?? {}) as object) };
  }
  const write = whenCalled(() => writers.answerField(responseBody));
  return { kind: "json", textOf: (answer) => write(getBody(answer)) };
}

// A writer is compiled at the first call of its method: all of them would take 6 ms of every start.
function whenCalled<V>(compile: () => (value: V) => string): (value: V) => string {
  let write: ((value: V) => string) | undefined;
  return (value) => {
    write ??= compile();
    return write(value);
  };
}

// google.api.HttpBody: the bytes themselves.
function rawBody(answer: object): RawBody {
  const { contentType, data } = answer as { contentType?: string; data?: Uint8Array };
  return { contentType: contentType || "application/octet-stream", body: data ?? new Uint8Array() };
}
