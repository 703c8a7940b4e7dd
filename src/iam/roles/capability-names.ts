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

/** The set of the capabilities with these dotted names; throws TypeError for a name that does not exist. */
export function capabilitySetNamed(names: readonly string[]): CapabilitySet {
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

/** The dotted names of what a set holds, in the order that roles show; see {@link capabilitiesIn}. */
export function capabilityNamesIn(set: CapabilitySet): string[] {
  return capabilityNamesOf(capabilitiesIn(set));
}

/** The set of the capabilities with these enum numbers; undefined when one is no capability. */
export function capabilitySetNumbered(numbers: readonly number[]): CapabilitySet | undefined {
  const bits = numbers.map((number) => bitByNumber.get(number));
  return bits.some((one) => one === undefined) ? undefined : toCapabilitySet(bits as number[]);
}

/** The enum numbers of a set, ascending; bits that only a newer version knows are passed over. */
export function capabilitiesIn(set: CapabilitySet): Capability[] {
  return bitsOf(set)
    .flatMap((one) => numberByBit.get(one) ?? [])
    .sort((a, b) => a - b);
}

/** The enum numbers of capabilities by their dotted names; -1, which is none, for a name that does not exist. */
export function capabilitiesNamed(names: readonly string[]): Capability[] {
  return names.map((one) => numberByBit.get(bitByName.get(one) ?? -1) ?? -1);
}

/** The dotted names of capabilities by their enum numbers. */
export function capabilityNamesOf(numbers: readonly Capability[]): string[] {
  return numbers.flatMap((number) => nameByBit.get(bitByNumber.get(number) ?? -1) ?? []);
}
