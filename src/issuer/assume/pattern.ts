// The patterns of identities: written by tenants and run on text that anybody
// may send, so what one match can cost is bounded whatever the two are.
import { LRUCache } from "lru-cache";
import { RE2JS } from "re2js";
import { MAX_PROGRAM } from "../../iam/identities/relationship.js";

/** The longest text a pattern is held against, in UTF-16 units. */
const MAX_TEXT = 1_024;
/** Programs kept compiled, in instructions together: each may keep some KB of states for one of them. */
const MAX_KEPT = 10_000;

// RE2 reads the two halves of a pair as one character and a half alone as itself, which no stored text holds.
const HALF_PAIR = /\p{Cs}/u;

interface Compiled {
  /** Undefined where the program is too large. */
  readonly regex: RE2JS | undefined;
  readonly size: number;
}

const kept = new LRUCache<string, Compiled>({ maxSize: MAX_KEPT, sizeCalculation: ({ size }) => size });

/**
 * Whether the whole of `text` matches `pattern`, in RE2 syntax and in time linear in the text. Nothing
 * is normalised. False for text above 1,024 characters or with half a surrogate pair, and for patterns
 * whose program is above 1,000 instructions, such as `(x{1,30}){1,30}`.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  if (text.length > MAX_TEXT || HALF_PAIR.test(text)) return false;
  return compiled(pattern).regex?.test(text) ?? false;
}

function compiled(pattern: string): Compiled {
  const found = kept.get(pattern);
  if (found !== undefined) return found;
  const regex = RE2JS.compile(`^(?:${pattern})$`);
  const size = regex.programSize();
  const made = size > MAX_PROGRAM ? { regex: undefined, size: 1 } : { regex, size };
  kept.set(pattern, made);
  return made;
}

/** One of the choices of a relationship: a text or, where the name of its case ends in `Pattern`, a pattern. */
export interface Choice {
  readonly case: string | undefined;
  readonly value?: string | undefined;
}

/** Whether `text` is what the choice says: equal to its text, byte for byte, or matched by its pattern. */
export function fits(choice: Choice, text: string): boolean {
  if (choice.value === undefined) return false;
  return choice.case?.endsWith("Pattern") ? matchesPattern(choice.value, text) : choice.value === text;
}
