// The patterns of identities. Tenants write them, and they run on text that anybody can send, so the cost of one
// decision is bounded for every pattern and text.
import { LRUCache } from "lru-cache";
import { loadRe2 } from "../../kernel/re2.js";
import { MAX_PROGRAM } from "../../kernel/trust-rules.js";
import type { CacheCounts } from "../../pipeline/auth/authenticate.js";

/** The longest text that is matched, in UTF-16 units. */
const MAX_TEXT = 1_024;
/** The size of all cached programs, in bytes. */
const MAX_CACHED_BYTES = 32 * 1024 * 1024;
/** The budget for the issuer, which is matched before the signature is verified: about a millisecond. */
const ISSUER_STEPS = 50_000;
/** The budget for all patterns of one identity after that: about ten milliseconds. */
const IDENTITY_STEPS = 500_000;

// RE2 reads a lone surrogate as a character, which no stored text contains.
const LONE_SURROGATE = /\p{Cs}/u;

/** The program is undefined for patterns whose program is too large. */
interface Compiled {
  readonly program: PatternProgram | undefined;
}

const programs = new LRUCache<string, Compiled>({
  maxSize: MAX_CACHED_BYTES,
  sizeCalculation: ({ program }, pattern) => (program?.bytes ?? 0) + 256 + 2 * pattern.length,
});

/** Counts lookups of programs. */
export const patternCache: CacheCounts = { hits: 0, misses: 0, entries: 0 };

/** Creates the budget for an unverified issuer. */
export function createIssuerBudget(): StepBudget {
  return { left: ISSUER_STEPS };
}

/** Creates the budget for all patterns of an identity. */
export function createIdentityBudget(): StepBudget {
  return { left: IDENTITY_STEPS };
}

/**
 * Whether the whole `text` matches `pattern`, in RE2 syntax and in time linear in the text, without normalization.
 * False for text above 1,024 characters or with a lone surrogate, for patterns whose program has more than 1,000
 * instructions, such as `(x{1,30}){1,30}`, and when the budget is used up.
 */
export function matchesPattern(pattern: string, text: string, budget = createIdentityBudget()): boolean {
  return testPattern(pattern, text, budget) ?? false;
}

/** As {@link matchesPattern}, but undefined where it is not known whether the text matches, because of a limit. */
export function testPattern(pattern: string, text: string, budget: StepBudget): boolean | undefined {
  if (text.length > MAX_TEXT || LONE_SURROGATE.test(text)) return undefined;
  const isMatch = findProgram(pattern)?.matches(text, budget);
  return budget.left > 0 ? isMatch : undefined;
}

function findProgram(pattern: string): PatternProgram | undefined {
  const found = programs.get(pattern);
  if (found !== undefined) {
    patternCache.hits++;
    return found.program;
  }
  patternCache.misses++;
  const compiled = compilePattern(pattern);
  const program = compiled.size > MAX_PROGRAM ? undefined : compiled;
  programs.set(pattern, { program });
  patternCache.entries = programs.size;
  return program;
}

/** A oneof of a relationship: a text or, where the name of its case ends in `Pattern`, a pattern. */
interface ValueOrPattern {
  readonly case: string | undefined;
  readonly value?: string | undefined;
}

/** Whether `text` equals the expected text, byte for byte, or matches the pattern. */
export function matchesValue(expected: ValueOrPattern, text: string, budget?: StepBudget): boolean {
  if (expected.value === undefined) return false;
  return expected.case?.endsWith("Pattern") ? matchesPattern(expected.value, text, budget) : expected.value === text;
}

// Runs the compiled program of a pattern and counts the steps. The engines of the library take time in proportion to
// program and text, up to a third of a second, and cannot be interrupted.

/** The steps that are left, shared by the matches of one decision. */
export interface StepBudget {
  left: number;
}

interface PatternProgram {
  /** The number of instructions. */
  readonly size: number;
  /** The approximate memory size, in bytes. */
  readonly bytes: number;
  /**
   * Whether the whole `text` matches. False as well when `budget` is used up. One step is one instruction for one
   * character, some 10 ns.
   */
  matches(text: string, budget: StepBudget): boolean;
}

/** An instruction of the library's compiler, with the fields that are used here. */
interface Instruction {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  readonly runes: Int32Array;
  matchRune(codePoint: number): boolean;
}

// The opcodes of the library, the same as in RE2.
const [ALT, ALT_MATCH, CAPTURE, EMPTY_WIDTH, MATCH, NOP] = [1, 2, 3, 4, 6, 7];
const [RUNE, RUNE1, RUNE_ANY, RUNE_ANY_NOT_NL] = [8, 9, 10, 11];
const [BEGIN_LINE, END_LINE, BEGIN_TEXT, END_TEXT, WORD_BOUNDARY, NO_WORD_BOUNDARY] = [1, 2, 4, 8, 16, 32];
const LINE_FEED = 10;
/** The position before the first character and after the last one. */
const NONE = -1;
/** The size of an instruction without its ranges, in bytes. */
const INSTRUCTION_BYTES = 128;

/**
 * Compiles a pattern that must match a whole text.
 *
 * @throws Error when the pattern is not valid RE2 syntax
 */
export function compilePattern(pattern: string): PatternProgram {
  const { inst, start } = loadRe2().compile(`^(?:${pattern})$`).re2().prog as {
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

// Thompson's simulation of the NFA: the set of states after each character.
function run(program: readonly Instruction[], start: number, text: string, budget: StepBudget): boolean {
  const visited = new Int32Array(program.length).fill(NONE);
  const stack: number[] = [];
  let current: number[] = [];
  let isMatch = false;

  // Adds the states that are reached from `pc` without a character (epsilon closure).
  function follow(pc: number, at: number, conditions: number): void {
    stack.push(pc);
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      budget.left--;
      if (visited[next] === at) continue;
      visited[next] = at;
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

// ASCII only, as in RE2.
function isWord(codePoint: number): boolean {
  return codePoint !== NONE && codePoint < 0x80 && /\w/.test(String.fromCharCode(codePoint));
}
