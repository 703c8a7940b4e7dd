// Decodes an HTTP request to the typed message of its method: first the body, then the path, then the query. A request
// whose parts disagree about a field is rejected, so that a proxy and this service read the same request.
import {
  create,
  type DescField,
  type DescMessage,
  type JsonValue,
  type Message,
  type Registry,
} from "@bufbuild/protobuf";
import { type FieldMask, FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { findMaskPaths } from "../../codec/field-mask.js";
import {
  emptyOf,
  ensureContainer,
  findConflictingPath,
  findContainer,
  findWellKnownName,
  getField,
  isDefault,
  isSameValue,
  setField,
} from "../../codec/fields.js";
import { readOrReject } from "../../codec/json-read-value.js";
import { isNullable, readMessage, readValue, takesNull } from "../../codec/json-reader.js";
import { invalidArgument } from "../../kernel/errors.js";
import { parseStrictJson } from "../../kernel/strict-json.js";
import { decodeJsonText } from "../http/body-reader.js";
import type { BoundVariable, HttpBinding } from "../http/http-binding.js";
import type { ReadBody } from "../protocol/rest-route.js";
import { createQueryBinder } from "./query.js";

/**
 * Decodes the message of a request.
 *
 * @param captures the values of the path's variables
 * @param query the query without its question mark, or ""
 * @param body undefined when the rule has none; an empty body, and one of null, is an empty message
 * @throws ApiError INVALID_ARGUMENT; HttpError 415
 */
export type Decode = (captures: readonly string[], query: string, body: ReadBody | undefined) => Message;

export interface DecodeOptions {
  readonly registry: Registry;
  /** Whether unknown fields of bodies are rejected; otherwise they are ignored. */
  readonly strictBody: boolean;
  /** Whether unknown query parameters are ignored; otherwise they are rejected. */
  readonly ignoreUnknownQuery: boolean;
}

/** Creates the decoder of one binding. */
export function createDecoder(binding: HttpBinding, options: DecodeOptions): Decode {
  const { variables, body } = binding;
  const { input } = binding.entry.desc;
  const createEmpty = emptyOf(input);
  const patch = patchOf(binding);
  const bindQuery = createQueryBinder({
    input,
    body,
    inPath: new Set(variables.map(({ path }) => path)),
    ignoreUnknown: options.ignoreUnknownQuery,
    resource: patch?.mask && patch.resource,
  });
  const readBody = body === "none" ? undefined : createBodyDecoder(input, body, options);

  return (captures, query, given) => {
    let decoded: BodyMessage | undefined;
    if (given !== undefined && given.bytes.length > 0) decoded = readBody?.(given);
    const message = decoded?.message ?? createEmpty();
    for (let i = 0; i < variables.length; i++) {
      const variable = variables[i];
      if (variable === undefined) continue;
      const value = variable.read(captures[i] ?? "", variable.path);
      if (decoded !== undefined) rejectOther(message, variable, value, body);
      const container = variable.parents.length === 0 ? message : ensureContainer(message, variable.parents);
      setField(container, variable.field, value);
    }
    if (query !== "") bindQuery(message, query);
    if (patch !== undefined) completeMask(patch, message, decoded);
    return message;
  };
}

/** Whether a message is google.api.HttpBody, which has raw bytes of any type. */
export function isHttpBody(desc: DescMessage | undefined): boolean {
  return desc?.typeName === "google.api.HttpBody";
}

function createBodyDecoder(
  input: DescMessage,
  body: "all" | DescField,
  options: DecodeOptions,
): (body: ReadBody) => BodyMessage | undefined {
  const target = body === "all" ? input : body.fieldKind === "message" ? body.message : undefined;
  if (target !== undefined && isHttpBody(target)) {
    return ({ bytes, contentType = "" }) => {
      const raw = create(target, { contentType, data: bytes } as Record<string, unknown>);
      if (body === "all") return { message: raw, json: null };
      const message = create(input);
      setField(message, body, raw);
      return { message, json: null };
    };
  }
  const read = createBodyReader(input, body, options.registry, options.strictBody);
  const isNullValue = body === "all" ? isNullable(input.typeName) : takesNull(body);
  return ({ bytes, contentType }) => {
    const text = decodeJsonText(bytes, contentType);
    // Null means not set, so a request with it is one without a body.
    return !isNullValue && NULL.test(text) ? undefined : read(text);
  };
}

const NULL = /^[ \t\r\n]*null[ \t\r\n]*$/;

function rejectOther(message: Message, variable: BoundVariable, value: unknown, body: HttpBinding["body"]): void {
  const ownName = (path: string) =>
    typeof body === "object" && variable.parents[0] === body ? path.slice(body.jsonName.length + 1) : path;
  const field = ownName(variable.path);
  const conflicting = findConflictingPath(message, [...variable.parents, variable.field]);
  if (conflicting !== undefined) {
    const member = ownName(conflicting);
    throw invalidArgument({
      field: member,
      rule: "cannot be given together with {}, which the path sets",
      args: [field],
    });
  }
  const container = findContainer(message, variable.parents);
  const current = container && getField(container, variable.field);
  if (isDefault(current) || isSameValue(variable.field, current, value)) return;
  throw invalidArgument({ field, rule: "is set by the path, the body must not say otherwise" });
}

interface Patch {
  /** The message of the body. */
  readonly resource: DescMessage;
  /** The field paths that the path sets, in the names of the proto. */
  readonly inPath: ReadonlySet<string>;
  /** The field mask of the request, if the body is a resource and the request has exactly one. */
  readonly mask: DescField | undefined;
}

function patchOf({ entry, method, body, variables }: HttpBinding): Patch | undefined {
  if (method !== "PATCH" || body === "none") return undefined;
  const { input } = entry.desc;
  const resource = body === "all" ? input : body.fieldKind === "message" ? body.message : undefined;
  if (resource === undefined || findWellKnownName(resource) !== undefined || isHttpBody(resource)) return undefined;
  const chains = variables.map(({ parents, field }) => [...parents, field]);
  const within = body === "all" ? chains : chains.filter(([first]) => first === body).map((chain) => chain.slice(1));
  const masks = input.fields.filter(
    (field) => field.fieldKind === "message" && findWellKnownName(field.message) === "FieldMask",
  );
  return {
    resource,
    inPath: new Set(within.map((chain) => chain.map(({ name }) => name).join("."))),
    mask: body !== "all" && masks.length === 1 ? masks[0] : undefined,
  };
}

// Unknown fields are ignored, but a PATCH with no other fields is rejected: it would change nothing, and the caller
// would believe that its misspelt field was changed.
function completeMask({ resource, inPath, mask }: Patch, message: Message, decoded: BodyMessage | undefined): void {
  if (decoded === undefined) return;
  const { paths, unknown, oversized } = findMaskPaths(resource, decoded.json, inPath);
  if (paths.length === 0 && oversized === undefined && unknown !== undefined) {
    throw invalidArgument({
      field: unknown,
      rule: `is not a field of this request, which has no other`,
    });
  }
  if (mask === undefined) return;
  const given = getField(message, mask) as FieldMask | undefined;
  if (given !== undefined && given.paths.length > 0) return;
  if (oversized !== undefined) {
    const rule = "has too many keys to change one by one, {} may name it as a whole";
    throw invalidArgument({ field: oversized, rule, args: [mask.jsonName] });
  }
  setField(message, mask, paths.length === 0 ? undefined : create(FieldMaskSchema, { paths: [...paths] }));
}

// JSON bodies as messages, by the rule of google.api.http: the whole request, or one field of it.

/** The request that a body was decoded to, and its JSON. */
export interface BodyMessage {
  readonly message: Message;
  readonly json: JsonValue;
}

/** Reads the bodies of one HTTP rule. */
export type BodyMessageReader = (text: string) => BodyMessage;

/**
 * Creates the reader of the bodies of one HTTP rule.
 *
 * Unless `strict`, unknown fields are ignored, as published clients expect. Unknown names of enum values are always
 * rejected. The reader throws ApiError INVALID_ARGUMENT, which names the field by its path in the body.
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
    return { message: readOrReject(() => read(json)), json };
  };

  // If the field is a message, errors name fields by their path in the body. Otherwise they name the field.
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
