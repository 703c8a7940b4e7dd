import { toJson } from "@bufbuild/protobuf";
import { buildBindings } from "../../../src/transport/http/http-binding.js";
import { createDecode, type DecodeOptions, type ReadBody } from "../../../src/transport/rest/decode.js";
import { entryOf, featureMethod, featureRegistry } from "./feature.js";

/** The JSON of the request that the first binding of a method of FeatureService makes of its parts. */
export function decoded(
  method: string,
  captures: readonly string[],
  query: string,
  body: string | ReadBody | undefined,
  options: Partial<DecodeOptions> = {},
): unknown {
  const entry = entryOf(featureMethod(method));
  const [binding] = buildBindings(entry);
  if (binding === undefined) throw new TypeError(`${method} has no HTTP rule`);
  const decode = createDecode(binding, {
    registry: featureRegistry,
    strictBody: false,
    ignoreUnknownQuery: false,
    ...options,
  });
  const read = typeof body === "string" ? { bytes: Buffer.from(body), contentType: "application/json" } : body;
  return toJson(entry.desc.input, decode(captures, query, read), { registry: featureRegistry });
}
