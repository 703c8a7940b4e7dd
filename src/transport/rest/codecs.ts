// What reads and writes the JSON of a method: one registry for the platform, and one
// for each mounted service, which may have types of the same names.
import type { DescMethod, DescService, Registry } from "@bufbuild/protobuf";
import type { TimestampDigits } from "../../codec/json-scalar.js";
import type { MessageWriters } from "../../codec/json-wkt.js";
import { createJsonWriters, type JsonWriters } from "../../codec/json-writer.js";
import { createServiceRegistry, createTypeRegistry } from "../../codec/type-registry.js";
import type { MethodEntry, MountedService } from "../../pipeline/method-table.js";

/** The types that may stand in an Any, and writers that know them. */
export interface Codec {
  readonly registry: Registry;
  readonly writers: JsonWriters;
}

/** The codecs of the methods that are served. */
export interface Codecs {
  of(method: Pick<MethodEntry, "mounted">): Codec;
  /** The writers of the details of errors; those of the platform before any method is known. */
  detailsOf(call: { readonly method: DescMethod } | undefined): MessageWriters;
}

/** Creates the codecs of `methods`. */
export function createCodecs(methods: readonly MethodEntry[]): Codecs {
  const own = codecOf(createTypeRegistry(methods.filter(({ mounted }) => mounted === undefined)));
  const mounts = new Map<DescService, Codec>();
  for (const { mounted } of methods) {
    if (mounted !== undefined && !mounts.has(mounted.desc)) mounts.set(mounted.desc, createMountedCodec(mounted));
  }
  const codecAt = (desc: DescService | undefined) => (desc && mounts.get(desc)) ?? own;
  return {
    of: ({ mounted }) => codecAt(mounted?.desc),
    detailsOf: (call) => codecAt(call?.method.parent).writers.details,
  };
}

function createMountedCodec({ desc, registry }: MountedService): Codec {
  return codecOf(createServiceRegistry(desc, registry), "exact");
}

function codecOf(registry: Registry, timestamps?: TimestampDigits): Codec {
  return { registry, writers: createJsonWriters(registry, timestamps) };
}
