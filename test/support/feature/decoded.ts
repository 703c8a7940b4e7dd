import { type DescMethod, type Message, toJson } from "@bufbuild/protobuf";
import { buildBindings } from "../../../src/transport/http/http-binding.js";
import type { ReadBody } from "../../../src/transport/protocol/rest-route.js";
import { createDecoder, type DecodeOptions } from "../../../src/transport/rest/decode.js";
import { entryOf, featureMethod, featureRegistry } from "./feature.js";

/** The JSON of the request that the first binding of a method of FeatureService makes of its parts. */
export function decodeRequest(
  method: string,
  captures: readonly string[],
  query: string,
  body: string | ReadBody | undefined,
  options: Partial<DecodeOptions> = {},
): unknown {
  return decodeRequestOf(featureMethod(method), captures, query, body, options);
}

/** As {@link decodeRequest}, of any method. */
export function decodeRequestOf(
  method: DescMethod,
  captures: readonly string[],
  query: string,
  body: string | ReadBody | undefined,
  options: Partial<DecodeOptions> = {},
): unknown {
  const message = decodeMessage(method, captures, query, body, options);
  return toJson(method.input, message, { registry: featureRegistry });
}

/** The request itself; see {@link decodeRequest}. */
export function decodeMessage(
  method: DescMethod,
  captures: readonly string[],
  query: string,
  body: string | ReadBody | undefined,
  options: Partial<DecodeOptions> = {},
): Message {
  const entry = entryOf(method);
  const [binding] = buildBindings(entry);
  if (binding === undefined) throw new TypeError(`${method.name} has no HTTP rule`);
  const decode = createDecoder(binding, {
    registry: featureRegistry,
    strictBody: false,
    ignoreUnknownQuery: false,
    ...options,
  });
  const read = typeof body === "string" ? { bytes: Buffer.from(body), contentType: "application/json" } : body;
  return decode(captures, query, read);
}
