// Responses of handlers as bodies of HTTP responses, by the rule of google.api.http, and the codecs that write them.
import type { DescService, Message, Registry } from "@bufbuild/protobuf";
import { getField } from "../../codec/fields.js";
import type { TimestampDigits } from "../../codec/json-scalar.js";
import { createJsonWriters, type JsonWriters } from "../../codec/json-writer.js";
import { createServiceRegistry, createTypeRegistry } from "../../codec/type-registry.js";
import type { MethodEntry, MountedService } from "../../pipeline/method-table.js";
import type { HttpBinding } from "../http/http-binding.js";
import type { EncodedResponse, MessageEncode, RawBody } from "../protocol/rest-route.js";
import { isHttpBody } from "./decode.js";

/** Encodes what a handler returned: a message, or an init object of one. */
export type Encode = (response: object) => EncodedResponse;

const JSON_TYPE = "application/json";
const NOTHING: EncodedResponse = { contentType: undefined, body: "" };

/** Creates the encoder of one binding of a unary method. */
export function createEncoder(binding: HttpBinding, writers: JsonWriters): Encode {
  const { method, responseBody, entry } = binding;
  const empty = responseBody === undefined && entry.desc.output.typeName === "google.protobuf.Empty";
  // A delete answers with an empty body (docs/api-rules.md#methods); other empty responses are `{}`, which clients parse.
  if (method === "DELETE" && empty) return () => NOTHING;
  const part = createMessageEncoder(binding, writers);
  if (part.kind === "raw") return part.bodyOf;
  const { textOf } = part;
  return (response) => ({ contentType: JSON_TYPE, body: textOf(response) });
}

/** Creates the encoder of each message of one binding. */
export function createMessageEncoder(binding: HttpBinding, writers: JsonWriters): MessageEncode {
  const { responseBody } = binding;
  const { output } = binding.entry.desc;
  if (responseBody === undefined) {
    return isHttpBody(output)
      ? { kind: "raw", bodyOf: buildRawBody }
      : { kind: "json", textOf: compileLazily(() => writers.answer(output)) };
  }
  const getBody = (response: object) => getField(response as Message, responseBody);
  if (responseBody.fieldKind === "message" && isHttpBody(responseBody.message)) {
    return { kind: "raw", bodyOf: (response) => buildRawBody((getBody(response) ?? {}) as object) };
  }
  const write = compileLazily(() => writers.responseField(responseBody));
  return { kind: "json", textOf: (response) => write(getBody(response)) };
}

// A writer is compiled at the first call of its method, because all writers would take 6 ms of every start.
function compileLazily<V>(compile: () => (value: V) => string): (value: V) => string {
  let write: ((value: V) => string) | undefined;
  return (value) => {
    write ??= compile();
    return write(value);
  };
}

// google.api.HttpBody stands for its bytes.
function buildRawBody(response: object): RawBody {
  const { contentType, data } = response as { contentType?: string; data?: Uint8Array };
  return { contentType: contentType || "application/octet-stream", body: data ?? new Uint8Array() };
}

// The JSON of a method: one registry for the platform, and one for each mounted service, which may have types of the
// same names.

/** The types that may stand in an Any, and writers that know them. */
export interface Codec {
  readonly registry: Registry;
  readonly writers: JsonWriters;
}

/** The codecs of the methods that are served. */
export interface Codecs {
  /** That of the platform. */
  readonly own: Codec;
  of(method: Pick<MethodEntry, "mounted">): Codec;
}

/** Creates the codecs of `methods`. */
export function createCodecs(methods: readonly MethodEntry[]): Codecs {
  const own = createCodec(createTypeRegistry(methods.filter(({ mounted }) => mounted === undefined)));
  const mounts = new Map<DescService, Codec>();
  for (const { mounted } of methods) {
    if (mounted !== undefined && !mounts.has(mounted.desc)) mounts.set(mounted.desc, createMountedCodec(mounted));
  }
  return { own, of: ({ mounted }) => (mounted && mounts.get(mounted.desc)) ?? own };
}

function createMountedCodec({ desc, registry }: MountedService): Codec {
  return createCodec(createServiceRegistry(desc, registry), "exact");
}

function createCodec(registry: Registry, timestamps?: TimestampDigits): Codec {
  return { registry, writers: createJsonWriters(registry, timestamps) };
}
