import { getOption, hasOption } from "@bufbuild/protobuf";
import { bit, type Capability, CapabilitySchema, name } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { bitsOf, type CapabilitySet, toCapabilitySet } from "../../kernel/capability-set.js";

// Each option is read once: reading one takes microseconds, and there are hundreds of capabilities.
const known = CapabilitySchema.values
  .filter((value) => hasOption(value, bit))
  .map((value) => ({ number: value.number, name: getOption(value, name), bit: getOption(value, bit) }));
const bitByName = new Map(known.map((one) => [one.name, one.bit]));
const nameByBit = new Map(known.map((one) => [one.bit, one.name]));
const bitByNumber = new Map(known.map((one) => [one.number, one.bit]));
const numberByBit = new Map(known.map((one) => [one.bit, one.number]));

/**
 * Builds the set of the capabilities with these dotted names.
 *
 * @throws TypeError for a name that does not exist
 */
export function buildCapabilitySet(names: readonly string[]): CapabilitySet {
  return toCapabilitySet(
    names.map((one) => {
      const found = bitByName.get(one);
      if (found === undefined) throw new TypeError(`there is no capability ${one}`);
      return found;
    }),
  );
}

/** Whether there is a capability with this dotted name. */
export function isCapabilityName(text: string): boolean {
  return bitByName.has(text);
}

/** Lists the dotted names of the capabilities in a set, in the order of {@link listCapabilities}. */
export function listCapabilityNames(set: CapabilitySet): string[] {
  return formatCapabilityNames(listCapabilities(set));
}

/** Finds the set of the capabilities with these enum numbers; undefined when a number is no capability. */
export function findCapabilitySet(numbers: readonly number[]): CapabilitySet | undefined {
  const bits = numbers.map((number) => bitByNumber.get(number));
  return bits.some((one) => one === undefined) ? undefined : toCapabilitySet(bits as number[]);
}

/** Lists the enum numbers of a set, ascending. Bits that only a newer version has are skipped. */
export function listCapabilities(set: CapabilitySet): Capability[] {
  return bitsOf(set)
    .flatMap((one) => numberByBit.get(one) ?? [])
    .sort((a, b) => a - b);
}

/** Converts dotted names to enum numbers; a name that does not exist becomes -1, which is no capability. */
export function parseCapabilities(names: readonly string[]): Capability[] {
  return names.map((one) => numberByBit.get(bitByName.get(one) ?? -1) ?? -1);
}

/** Converts enum numbers to dotted names. */
export function formatCapabilityNames(numbers: readonly Capability[]): string[] {
  return numbers.flatMap((number) => nameByBit.get(bitByNumber.get(number) ?? -1) ?? []);
}
