// The patterns of identities: written by tenants and run on text that anybody
// may send, so what one decision can cost is bounded whatever the two are.
import { LRUCache } from "lru-cache";
import { MAX_PROGRAM } from "../../iam/identities/relationship.js";
import { compilePattern, type PatternProgram, type StepBudget } from "./pattern-program.js";

/** The longest text a pattern is held against, in UTF-16 units. */
const MAX_TEXT = 1_024;
/** Compiled programs that are kept, in bytes together. */
const MAX_KEPT = 32 * 1024 * 1024;
/** What matching the issuer may take, which comes before the signature is verified: about a millisecond. */
const ISSUER_STEPS = 50_000;
/** What all patterns of one identity may take after that: about ten milliseconds. */
const IDENTITY_STEPS = 500_000;

// RE2 reads the two halves of a pair as one character and a half alone as itself, which no stored text holds.
const HALF_PAIR = /\p{Cs}/u;

/** Undefined for patterns whose program is too large. */
interface Compiled {
  readonly program: PatternProgram | undefined;
}

const kept = new LRUCache<string, Compiled>({
  maxSize: MAX_KEPT,
  sizeCalculation: ({ program }, pattern) => (program?.bytes ?? 0) + 256 + 2 * pattern.length,
});

/** The budget for an issuer, which nobody has signed yet. */
export function issuerBudget(): StepBudget {
  return { left: ISSUER_STEPS };
}

/** The budget for all patterns of an identity. */
export function identityBudget(): StepBudget {
  return { left: IDENTITY_STEPS };
}

/**
 * Whether the whole of `text` matches `pattern`, in RE2 syntax and in time linear in the text. Nothing
 * is normalised. False for text above 1,024 characters or with half a surrogate pair, for patterns
 * whose program is above 1,000 instructions, such as `(x{1,30}){1,30}`, and when the budget is used up.
 */
export function matchesPattern(pattern: string, text: string, budget = identityBudget()): boolean {
  if (text.length > MAX_TEXT || HALF_PAIR.test(text)) return false;
  return compiled(pattern)?.matches(text, budget) ?? false;
}

function compiled(pattern: string): PatternProgram | undefined {
  const found = kept.get(pattern);
  if (found !== undefined) return found.program;
  const made = compilePattern(pattern);
  const program = made.size > MAX_PROGRAM ? undefined : made;
  kept.set(pattern, { program });
  return program;
}

/** One of the choices of a relationship: a text or, where the name of its case ends in `Pattern`, a pattern. */
export interface Choice {
  readonly case: string | undefined;
  readonly value?: string | undefined;
}

/** Whether `text` is what the choice says: equal to its text, byte for byte, or matched by its pattern. */
export function fits(choice: Choice, text: string, budget?: StepBudget): boolean {
  if (choice.value === undefined) return false;
  return choice.case?.endsWith("Pattern") ? matchesPattern(choice.value, text, budget) : choice.value === text;
}
