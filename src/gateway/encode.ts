// Answers of handlers as bodies of HTTP responses, by the rule of
// google.api.http.
import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import type { HttpBinding } from "./binding.js";
import { isHttpBody } from "./decode.js";
import { getField } from "./fields.js";
import type { JsonWriters } from "./json-writer.js";

/** The body of a response. */
export interface EncodedAnswer {
  /** Undefined when there is no body at all. */
  readonly contentType: string | undefined;
  readonly body: string | Uint8Array;
}

/** Makes the body of what a handler answered: a message or an init object for one. */
export type Encode = (answer: object) => EncodedAnswer;

const JSON_TYPE = "application/json";
const NOTHING: EncodedAnswer = { contentType: undefined, body: "" };

/** Makes the encoder of one binding. */
export function createEncode(binding: HttpBinding, writers: JsonWriters): Encode {
  const { method, responseBody } = binding;
  const { output } = binding.entry.desc;
  if (responseBody !== undefined) return fieldEncode(responseBody, writers);
  // "Empty body on success" (spec section 4); other empty answers stay `{}`, which clients parse.
  if (method === "DELETE" && output.typeName === "google.protobuf.Empty") return () => NOTHING;
  if (isHttpBody(output)) return rawAnswer;
  const write = writers.answer(output);
  return (answer) => ({ contentType: JSON_TYPE, body: write(answer) });
}

function fieldEncode(field: DescField, writers: JsonWriters): Encode {
  const message: DescMessage | undefined = field.fieldKind === "message" ? field.message : undefined;
  if (isHttpBody(message)) return (answer) => rawAnswer((getField(answer as Message, field) ?? {}) as object);
  const write = writers.answerField(field);
  return (answer) => ({ contentType: JSON_TYPE, body: write(getField(answer as Message, field)) });
}

// google.api.HttpBody: the bytes themselves.
function rawAnswer(answer: object): EncodedAnswer {
  const { contentType, data } = answer as { contentType?: string; data?: Uint8Array };
  return { contentType: contentType || "application/octet-stream", body: data ?? new Uint8Array() };
}
