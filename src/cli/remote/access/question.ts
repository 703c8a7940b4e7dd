// What a question about rights is about: a method or capabilities, where, and of whom.
import { CapabilitySchema } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { invalidFlag } from "../../errors.js";
import { findMethod, readMethods } from "../api/catalogue.js";
import { findCapability, formatEnumRule } from "../iam/field-flags.js";
import type { Session } from "../session.js";

/** The flags for where something is to be done. */
export interface PlaceFlags {
  readonly group?: string;
  readonly resource?: string;
}

/**
 * Parses a method, as `arbor api call` takes it, or names of capabilities with commas between, to the `actions` of
 * requests.
 *
 * @throws CommandError INVALID_ARGUMENT when there is no such method or capability
 */
export function parseActions(text: string): string[] {
  if (!isMethod(text)) return text.split(",").map(parseCapability);
  const { parent, name } = findMethod(readMethods(), text);
  return [`${parent.typeName}.${name}`];
}

/**
 * Whether a text is the name of a method. Capabilities are in lower case with dots, while methods have capitals, or are names of
 * the proto.
 */
export function isMethod(text: string): boolean {
  const hasCapability = text.split(",").some((one) => /^\s*CAP_/i.test(one) || findCapability(one) !== undefined);
  return !hasCapability && /[A-Z/]|^[^.]*$/.test(text);
}

function parseCapability(text: string): string {
  const name = findCapability(text);
  if (name !== undefined) return name;
  const rule = formatEnumRule(CapabilitySchema, text);
  throw invalidFlag(
    "method",
    `there is no capability ${text}: a capability ${rule}; methods are in \`arbor api list\``,
  );
}

/**
 * Checks the flags for where something is to be done.
 *
 * @param isRequired whether there must be one of them, as always with capabilities
 * @throws CommandError INVALID_ARGUMENT for both of them, and for none where one is required
 */
export function checkPlace({ group, resource }: PlaceFlags, isRequired: boolean): void {
  const given = [group, resource].filter((place) => place !== undefined).length;
  if (given > 1 || (isRequired && given === 0)) throw invalidFlag("--group", "give either --group or --resource");
}

/** Returns the uid of a group, or a text that stands for any resource and is resolved with the request. */
export async function findPlace({ names }: Session, { group, resource = "" }: PlaceFlags): Promise<string> {
  return group === undefined ? resource : names.find(["group"], group);
}

/** The identity in requests, where an empty one is the caller. */
export function toRequestedIdentity(text: string): string {
  return text === "me" ? "" : text;
}
