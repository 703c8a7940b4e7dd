// What a preset is: a platform whose tokens an identity trusts by a few flags. Presets that are flags and what follows from
// them stand in a file for each platform, and presets.ts lists them.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ConditionSchema } from "#gen/arbor/trust/v1/trust_pb.js";
import { invalidFlag } from "../../../errors.js";

/** The values of the flags that are given, by their names. Those without a value are `true`. */
export type PresetValues = Readonly<Record<string, string | true | undefined>>;

/** A condition on one claim. */
export type ConditionInit = MessageInitShape<typeof ConditionSchema>;

/** The tokens that an identity accepts. */
export interface Trust {
  readonly issuer: string;
  readonly subject: { readonly case: "subject" | "subjectPattern"; readonly value: string };
  readonly conditions: readonly ConditionInit[];
  /** What is accepted, in words, after "accepts". */
  readonly accepted: string;
  /** The name of an identity that is given none, before characters that names lack are replaced. */
  readonly name: string;
}

/** A platform whose tokens an identity trusts. */
export interface Preset {
  readonly title: string;
  /** The name of the flag that chooses it. */
  readonly chosenBy: string;
  /** The names of the other flags that it requires. */
  readonly requires?: readonly string[];
  /** The names of the flags that it takes besides. */
  readonly takes: readonly string[];
  /**
   * Finds the tokens that an identity accepts.
   *
   * @throws CommandError INVALID_ARGUMENT for the first wrong flag; the error of a request to the platform
   */
  readonly findTrust: (given: PresetValues) => Trust | Promise<Trust>;
}

/** The text of a flag; undefined without one. */
export function textOf(given: PresetValues, name: string): string | undefined {
  const value = given[name];
  return typeof value === "string" ? value : undefined;
}

/**
 * Reads the text of a flag that is given.
 *
 * @param shape what the whole text must match
 * @param rule the same in words, without its subject
 * @throws CommandError INVALID_ARGUMENT for another text
 */
export function readText(given: PresetValues, name: string, shape: RegExp, rule: string): string {
  const text = textOf(given, name) ?? "";
  if (!shape.test(text)) throw invalidFlag(`--${name}`, rule);
  return text;
}

/** Reads a numeric id; undefined without the flag. */
export function readId(given: PresetValues, name: string): string | undefined {
  return given[name] === undefined ? undefined : readText(given, name, /^[1-9]\d{0,18}$/, "must be a number");
}

/**
 * Reads the address of a platform that an organisation runs itself.
 *
 * @returns the origin, and the path before those of the platform if it has one
 * @throws CommandError INVALID_ARGUMENT for anything else
 */
export function readAddress(given: PresetValues, name: string, standard: string): URL {
  const text = textOf(given, name) ?? standard;
  const rule = "must be an https URL without user, query and fragment";
  if (!URL.canParse(text)) throw invalidFlag(`--${name}`, rule);
  const url = new URL(text);
  const isLocal = url.protocol === "http:" && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if ((url.protocol !== "https:" && !isLocal) || url.username + url.password + url.search + url.hash !== "")
    throw invalidFlag(`--${name}`, rule);
  url.pathname = url.pathname.replace(/\/+$/, "");
  return url;
}

/** Formats an address without the slash at its end. */
export function formatAddress({ origin, pathname }: URL): string {
  return origin + pathname.replace(/\/+$/, "");
}

// Branches and tags

/** Branches or tags. An asterisk in the name stands for any text, which no name of Git has. */
export interface Ref {
  readonly type: "branch" | "tag";
  readonly name: string;
  /** The name in full, such as `refs/heads/main`. */
  readonly full: string;
}

const REF = /^(?!refs\/(?!heads\/.|tags\/.))[^\s:?[\\^~]+$/;
const WHERE = { branch: "heads", tag: "tags" } as const;

/**
 * Reads `--ref`: a branch, or the whole name of a branch or tag.
 *
 * @returns undefined without the flag
 * @throws CommandError INVALID_ARGUMENT for anything else
 */
export function readRef(given: PresetValues): Ref | undefined {
  if (given.ref === undefined) return undefined;
  const rule = "must be a branch such as main, or refs/heads/BRANCH or refs/tags/TAG; * stands for any text";
  const text = readText(given, "ref", REF, rule);
  const [, where, rest] = /^refs\/(heads|tags)\/(.+)$/.exec(text) ?? [];
  const type = where === WHERE.tag ? "tag" : "branch";
  const name = rest ?? text;
  return { type, name, full: `refs/${WHERE[type]}/${name}` };
}

/** Formats a ref for a sentence. */
export function formatRef({ type, name }: Ref): string {
  const plural = type === "branch" ? "branches" : "tags";
  return name.includes("*") ? `the ${plural} ${name}` : `the ${type} ${name}`;
}

// Patterns and conditions

/** Quotes a text for a pattern of RE2. */
export function quotePattern(text: string): string {
  return text.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&");
}

/** Converts a text in which an asterisk stands for any text to a pattern. */
export function toPattern(text: string): string {
  return text.split("*").map(quotePattern).join(".*");
}

/** The claim must be this text. */
export function equals(path: string | readonly string[], text: string): ConditionInit {
  return { path: [path].flat(), test: { case: "equals", value: toValue(text) } };
}

/** The claim must be this text, in which an asterisk stands for any text. */
export function resembles(path: string, text: string): ConditionInit {
  if (!text.includes("*")) return equals(path, text);
  return { path: [path], test: { case: "pattern", value: toPattern(text) } };
}

/** The claim must begin with this text. */
export function beginsWith(path: string, text: string): ConditionInit {
  return { path: [path], test: { case: "prefix", value: text } };
}

/** The claim must be a text, and none of these. */
export function isNoneOf(path: string, texts: readonly string[]): ConditionInit {
  return { path: [path], negated: true, test: { case: "oneOf", value: { values: texts.map(toValue) } } };
}

function toValue(text: string) {
  return { kind: { case: "stringValue", value: text } } as const;
}
