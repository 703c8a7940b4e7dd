// The patterns of identities: written by tenants and run on text that anybody
// may send, so what one decision can cost is bounded whatever the two are.
import { LRUCache } from "lru-cache";
import { RE2JS } from "re2js";
import { MAX_PROGRAM } from "../../iam/identities/relationship.js";

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

// Runs the program that RE2 compiles a pattern to, and counts what that takes.
// The engines of the library take time in proportion to program and text, which
// may be a third of a second, and cannot be told to stop.

/** What a match may still take, in steps; shared by the matches of one decision. */
export interface StepBudget {
  left: number;
}

/** A compiled pattern. */
export interface PatternProgram {
  /** How many instructions it has. */
  readonly size: number;
  /** About how much memory it occupies, in bytes. */
  readonly bytes: number;
  /**
   * Whether the whole of `text` matches. False as well when `budget` is used up, which then stays so:
   * one step is one instruction looked at for one character, some 10 ns.
   */
  matches(text: string, budget: StepBudget): boolean;
}

/** An instruction of the library's compiler, as far as it is used here. */
interface Instruction {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  readonly runes: Int32Array;
  matchRune(codePoint: number): boolean;
}

// The numbers that the library gives its instructions, as RE2 does.
const [ALT, ALT_MATCH, CAPTURE, EMPTY_WIDTH, MATCH, NOP] = [1, 2, 3, 4, 6, 7];
const [RUNE, RUNE1, RUNE_ANY, RUNE_ANY_NOT_NL] = [8, 9, 10, 11];
const [BEGIN_LINE, END_LINE, BEGIN_TEXT, END_TEXT, WORD_BOUNDARY, NO_WORD_BOUNDARY] = [1, 2, 4, 8, 16, 32];
const LINE_FEED = 10;
/** Before the first character and behind the last one. */
const NONE = -1;
/** What an instruction occupies besides its ranges, in bytes. */
const INSTRUCTION_BYTES = 128;

/**
 * Compiles a pattern that must match the whole of a text.
 *
 * @throws Error when it is not in RE2 syntax.
 */
export function compilePattern(pattern: string): PatternProgram {
  const { inst, start } = RE2JS.compile(`^(?:${pattern})$`).re2().prog as {
    readonly inst: readonly Instruction[];
    readonly start: number;
  };
  const ranges = new Set(inst.map(({ runes }) => runes));
  return {
    size: inst.length,
    bytes: [...ranges].reduce((sum, { byteLength }) => sum + byteLength, inst.length * INSTRUCTION_BYTES),
    matches: (text, budget) => run(inst, start, text, budget),
  };
}

// Thompson's simulation: all states that the text so far can lead to, each once.
function run(program: readonly Instruction[], start: number, text: string, budget: StepBudget): boolean {
  const seen = new Int32Array(program.length).fill(NONE);
  const stack: number[] = [];
  let current: number[] = [];
  let isMatch = false;

  // Adds to `current` what is reached from `pc` without a character.
  function follow(pc: number, at: number, conditions: number): void {
    stack.push(pc);
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      budget.left--;
      if (seen[next] === at) continue;
      seen[next] = at;
      const { op, out, arg } = program[next] as Instruction;
      if (op === ALT || op === ALT_MATCH) stack.push(arg, out);
      else if (op === CAPTURE || op === NOP) stack.push(out);
      else if (op === EMPTY_WIDTH) {
        if ((arg & ~conditions) === 0) stack.push(out);
      } else if (op === MATCH) isMatch = true;
      else if (op >= RUNE && op <= RUNE_ANY_NOT_NL) current.push(next);
    }
  }

  let before = NONE;
  let after = text.codePointAt(0) ?? NONE;
  follow(start, 0, conditionsBetween(before, after));
  for (let at = 0; after !== NONE; ) {
    if (current.length === 0 || budget.left <= 0) return false;
    at += after > 0xffff ? 2 : 1;
    before = after;
    after = text.codePointAt(at) ?? NONE;
    const conditions = conditionsBetween(before, after);
    const states = current;
    current = [];
    isMatch = false;
    budget.left -= states.length;
    for (const pc of states) {
      const instruction = program[pc] as Instruction;
      if (takes(instruction, before)) follow(instruction.out, at, conditions);
    }
  }
  return isMatch && budget.left > 0;
}

function takes(instruction: Instruction, codePoint: number): boolean {
  switch (instruction.op) {
    case RUNE_ANY:
      return true;
    case RUNE_ANY_NOT_NL:
      return codePoint !== LINE_FEED;
    case RUNE1:
      return instruction.runes[0] === codePoint;
    default:
      return instruction.matchRune(codePoint);
  }
}

function conditionsBetween(before: number, after: number): number {
  let conditions = isWord(before) === isWord(after) ? NO_WORD_BOUNDARY : WORD_BOUNDARY;
  if (before === NONE) conditions |= BEGIN_TEXT | BEGIN_LINE;
  if (before === LINE_FEED) conditions |= BEGIN_LINE;
  if (after === NONE) conditions |= END_TEXT | END_LINE;
  if (after === LINE_FEED) conditions |= END_LINE;
  return conditions;
}

// ASCII alone, as RE2 has it.
function isWord(codePoint: number): boolean {
  return codePoint !== NONE && codePoint < 0x80 && /\w/.test(String.fromCharCode(codePoint));
}
