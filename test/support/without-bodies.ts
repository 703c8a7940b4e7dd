import type { DescService } from "@bufbuild/protobuf";
import type { MethodSettings } from "../../src/pipeline/method-table.js";

/** Settings of hand-made services: their methods say nothing in the audit log but that they were called. */
export function withoutBodies({ methods }: DescService): Record<string, MethodSettings> {
  return Object.fromEntries(methods.map(({ localName }) => [localName, { body: "none" } as const]));
}
