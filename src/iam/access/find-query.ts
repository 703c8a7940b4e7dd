// What a text asks Find for.
import { invalidArgument } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import { isPrintable } from "../../pipeline/resource/rules.js";

/** The path of names to something, perhaps to an image in a repo. */
export interface NamePath {
  /** They may begin with the segments of the uid of a group. */
  readonly names: readonly string[];
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}

/** What a text may be; several of them may be set. */
export interface FindQuery {
  /** The text without spaces around it, in small letters, as Unicode's compatibility forms are composed. */
  readonly text: string;
  readonly uid: string | undefined;
  readonly digest: string | undefined;
  readonly path: NamePath | undefined;
  readonly requestId: string | undefined;
  /** A name, or an address, or the beginning of one. */
  readonly isText: boolean;
  readonly words: readonly string[];
}

const MAX_QUERY = 1_000;
const MAX_WORDS = 16;
const DIGEST = /^sha(?:256:[0-9a-f]{64}|512:[0-9a-f]{128})$/;
const REQUEST_ID = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** Brings a text into the form in which texts are compared, whatever their case. */
export function foldText(text: string): string {
  return text.normalize("NFKC").toLowerCase();
}

/** Splits a text in any language into its words. */
export function splitWords(text: string): string[] {
  return [...new Set(text.split(/[^\p{L}\p{M}\p{N}]+/u))].filter((word) => word !== "");
}

/**
 * Parses the text of a request.
 *
 * @throws ApiError INVALID_ARGUMENT for an empty one, and for one that is too long or not printable
 */
export function parseQuery(given: string): FindQuery {
  const refuse = (rule: string) => invalidArgument({ field: "query", rule });
  if (given.length > MAX_QUERY) throw refuse(`must be at most ${MAX_QUERY} characters`);
  if (!isPrintable(given)) throw refuse("must not contain control characters");
  const composed = given.normalize("NFKC").trim();
  const text = composed.toLowerCase();
  if (text === "") throw refuse("is required");
  const words = splitWords(text);
  if (words.length > MAX_WORDS) throw refuse(`must have at most ${MAX_WORDS} words`);
  const uid = isUidp(text) ? text : undefined;
  const digest = DIGEST.test(text) ? text : undefined;
  const path = uid || digest || !/[/:]/.test(text) ? undefined : parsePath(composed);
  const requestId = REQUEST_ID.test(text) ? text : undefined;
  return { text, uid, digest, path, requestId, isText: !uid && !digest && !path, words };
}

// The names of tags have capital letters as well.
function parsePath(composed: string): NamePath {
  const [, named = composed, digest] = /^(.*)@(sha\d+:[0-9a-f]+)$/i.exec(composed) ?? [];
  const [, place = named, tag] = /^(.*):([A-Za-z0-9_][A-Za-z0-9._-]*)$/.exec(named) ?? [];
  const names = place.split("/").filter((name) => name !== "");
  return { names: names.map((name) => name.toLowerCase()), tag, digest: digest?.toLowerCase() };
}

/** The same path without the host of a registry; undefined where it begins with none. */
export function withoutHost(path: NamePath): NamePath | undefined {
  const [host = "", ...names] = path.names;
  return names.length > 0 && /[.:]|^localhost$/.test(host) ? { ...path, names } : undefined;
}

/** Splits the names of a path into the uid of a group that they begin with, and the names below it. */
export function splitStart(names: readonly string[]): {
  readonly start: string | undefined;
  readonly rest: readonly string[];
} {
  if (!/^[0-9a-f]{40}$/.test(names[0] ?? "") || names.length === 1) return { start: undefined, rest: names };
  let count = 1;
  while (count < names.length - 1 && /^[0-9a-f]{16}$/.test(names[count] ?? "")) count++;
  return { start: names.slice(0, count).join("/"), rest: names.slice(count) };
}
