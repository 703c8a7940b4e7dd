// JSON bodies as messages, by the rule of google.api.http: the whole request,
// or one field of it.
import {
  create,
  type DescField,
  type DescMessage,
  type JsonValue,
  type Message,
  type Registry,
} from "@bufbuild/protobuf";
import { setField } from "../../codec/fields.js";
import { orInvalidArgument } from "../../codec/json-read-value.js";
import { readMessage, readValue } from "../../codec/json-reader.js";
import { parseStrictJson } from "../../kernel/strict-json.js";

/** A request made of a body, and the JSON it was made of. */
export interface BodyMessage {
  readonly message: Message;
  readonly json: JsonValue;
}

/** How to read the bodies of one HTTP rule. */
export type BodyMessageReader = (text: string) => BodyMessage;

/**
 * Makes the reader of the bodies of one HTTP rule.
 *
 * Unknown fields are passed over, as published clients expect, unless `strict`; an unknown name of
 * an enum is always refused. The reader throws ApiError INVALID_ARGUMENT naming the field by its
 * path within the body.
 */
export function createBodyReader(
  input: DescMessage,
  body: "all" | DescField,
  registry: Registry,
  strict: boolean,
): BodyMessageReader {
  const options = { registry, ignoreUnknown: !strict };
  const read = body === "all" ? (json: JsonValue) => readMessage(input, json, "", options) : readOneField(body);

  return (text) => {
    const json = parseStrictJson(text, "body");
    return { message: orInvalidArgument(() => read(json)), json };
  };

  // A message as the body stands for itself: errors name its fields as its own JSON does. Any other
  // field is named.
  function readOneField(field: DescField): (json: JsonValue) => Message {
    const { fieldKind, jsonName } = field;
    const path = fieldKind === "message" ? "" : jsonName;
    return (json) => {
      const message = create(input);
      const value = readValue(field, json, path, options);
      if (value !== undefined) setField(message, field, value);
      return message;
    };
  }
}
