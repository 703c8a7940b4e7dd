// Enum values as they are typed: capabilities by their dotted names, all others
// without the prefix that the proto has to give them.
import { type DescEnum, type DescEnumValue, getOption, hasOption } from "@bufbuild/protobuf";
import { name as capabilityName } from "#gen/chainguard/capabilities/capabilities_pb.js";

const MAX_NAMES = 20;

/** The name of a value as commands show and take it, such as `groups.list` or `claim-match`. */
export function shortName(value: DescEnumValue): string {
  if (hasOption(value, capabilityName)) return getOption(value, capabilityName);
  const { sharedPrefix = "" } = value.parent;
  const bare = value.name.toLowerCase().startsWith(sharedPrefix) ? value.name.slice(sharedPrefix.length) : value.name;
  return bare.toLowerCase().replaceAll("_", "-");
}

/** The names to offer: all but the one that says nothing. */
export function offeredNames(desc: DescEnum): string[] {
  return desc.values.filter(({ number }) => number !== 0).map(shortName);
}

/** The value that `text` names, by its short name or by that of the proto, in any case; undefined for none. */
export function enumValueOf(desc: DescEnum, text: string): DescEnumValue | undefined {
  const wanted = plain(text);
  return desc.values.find((value) => plain(value.name) === wanted || plain(shortName(value)) === wanted);
}

/** Completes the sentence "<flag> ..." for a text that names no value of `desc`. */
export function enumNamesRule(desc: DescEnum, text: string): string {
  const names = offeredNames(desc);
  if (names.length <= MAX_NAMES) return `must be one of ${names.join(", ")}`;
  // Of hundreds, those that begin as what was typed; or what they can begin with.
  const [head] = plain(text).split(".");
  const close = names.filter((name) => plain(name).split(".")[0] === head);
  if (close.length > 0) return `must be one of ${close.join(", ")}`;
  const heads = new Set(names.map((name) => name.split(".")[0]));
  return `must begin with one of ${[...heads].join(", ")}`;
}

function plain(name: string): string {
  return name.trim().toLowerCase().replaceAll("-", "_");
}
