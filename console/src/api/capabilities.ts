import { getOption } from "@bufbuild/protobuf";
import { type Capability, CapabilitySchema, name } from "#gen/chainguard/capabilities/capabilities_pb.js";

const names = new Map(CapabilitySchema.values.map((value) => [value.number, getOption(value, name)]));

/** The names of capabilities, such as `groups.list`, in the order of the alphabet. */
export function listCapabilityNames(capabilities: readonly Capability[]): string[] {
  return capabilities
    .map((capability) => names.get(capability) ?? "")
    .filter((one) => one !== "")
    .sort();
}
