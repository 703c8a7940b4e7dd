// The parser of filters (RFC 7644, section 3.4.2.2). A filter is parsed once, against the schema, and then matched with any
// number of resources (match.ts).
import { badRequest, quote, type ScimError } from "./error.js";
import type { Comparison, Filter, FilterValue } from "./filter-tree.js";
import { toBoolean } from "./input.js";
import { toComparable } from "./resource.js";
import {
  type Attribute,
  type AttributeChain,
  findAttribute,
  formatChain,
  type ResourceType,
  resolveIn,
  resolveName,
} from "./schemas.js";

export const MAX_FILTER_LENGTH = 4_096;
export const MAX_FILTER_DEPTH = 32;
/** The most conditions of a filter, and of the one of a path of PATCH, which may be one of many operations. */
export const MAX_CONDITIONS = 100;
export const MAX_PATH_CONDITIONS = 5;

/**
 * Parses a filter. Operators, `true`, `false` and `null` may be in any case of their letters.
 *
 * @throws ScimError 400 invalidFilter, also for attributes that the schema does not have
 */
export function parseFilter(text: string, type: ResourceType): Filter {
  return new Parser(text, (name) => resolveName(type, name), MAX_CONDITIONS, true).parse();
}

/** Parses the filter between the brackets of a path of PATCH. */
export function parseElementFilter(text: string, attribute: Attribute): Filter {
  return new Parser(text, (name) => resolveIn(attribute.subAttributes, name), MAX_PATH_CONDITIONS, false).parse();
}

const TOKEN = /[ \t]*(?:("(?:[^"\\]|\\.)*")|([()[\]])|([^ \t()[\]"]+))/y;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const COMPARISONS: readonly string[] = ["eq", "ne", "co", "sw", "ew", "gt", "ge", "lt", "le"];
const ORDERS: readonly string[] = ["gt", "ge", "lt", "le"];

type Resolve = (name: string) => AttributeChain | undefined;

class Parser {
  readonly #tokens: readonly string[];
  #at = 0;
  #resolve: Resolve;
  /** How many more conditions there may be. */
  #conditions: number;
  /** Whether a value path may follow: not within another one. */
  #hasElements: boolean;

  constructor(text: string, resolve: Resolve, conditions: number, hasElements: boolean) {
    this.#tokens = splitTokens(text);
    this.#resolve = resolve;
    this.#conditions = conditions;
    this.#hasElements = hasElements;
  }

  parse(): Filter {
    const filter = this.#any(0);
    if (this.#at < this.#tokens.length) throw invalid(`${quote(this.#next())} is not expected`);
    return filter;
  }

  #any(depth: number): Filter {
    if (depth > MAX_FILTER_DEPTH) throw invalid(`it nests deeper than ${MAX_FILTER_DEPTH} levels`);
    return this.#join("or", () => this.#join("and", () => this.#term(depth)));
  }

  #join(op: "and" | "or", read: () => Filter): Filter {
    const first = read();
    const filters = [first];
    while (this.#peek() === op) {
      this.#at++;
      filters.push(read());
    }
    return filters.length === 1 ? first : { op, filters };
  }

  #term(depth: number): Filter {
    const token = this.#next();
    if (token === "(") return this.#closed(")", depth);
    if (token.toLowerCase() === "not" && this.#peek() === "(") {
      this.#at++;
      return { op: "not", filter: this.#closed(")", depth) };
    }
    const attribute = this.#resolve(token);
    if (attribute === undefined) throw invalid(`there is no attribute ${quote(token)}`);
    if (this.#peek() === "[") return this.#element(attribute, depth);
    if (this.#conditions-- === 0) throw invalid("it has too many conditions");
    const op = this.#next().toLowerCase();
    if (op === "pr") return { op, attribute };
    if (!COMPARISONS.includes(op)) throw invalid(`${quote(op)} is no operator`);
    return buildComparison(op as Comparison, attribute, this.#next());
  }

  #closed(bracket: string, depth: number): Filter {
    const filter = this.#any(depth + 1);
    if (this.#next() !== bracket) throw invalid(`${bracket} is missing`);
    return filter;
  }

  #element(attribute: AttributeChain, depth: number): Filter {
    const { subAttributes } = lastOf(attribute);
    if (!this.#hasElements || subAttributes.length === 0) throw invalid(`${formatChain(attribute)} takes no brackets`);
    this.#at++;
    const outer = this.#resolve;
    this.#resolve = (name) => resolveIn(subAttributes, name);
    this.#hasElements = false;
    const filter = this.#closed("]", depth);
    this.#resolve = outer;
    this.#hasElements = true;
    return { op: "element", attribute, filter };
  }

  // The next token, in small letters.
  #peek(): string | undefined {
    return this.#tokens[this.#at]?.toLowerCase();
  }

  #next(): string {
    const token = this.#tokens[this.#at++];
    if (token === undefined) throw invalid("it is incomplete");
    return token;
  }
}

function splitTokens(text: string): string[] {
  if (text.length > MAX_FILTER_LENGTH) throw invalid(`it has more than ${MAX_FILTER_LENGTH} characters`);
  const tokens: string[] = [];
  const end = text.trimEnd().length;
  for (let at = 0; at < end; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const [, ...groups] = TOKEN.exec(text) ?? [];
    const token = groups.find((group) => group !== undefined);
    if (token === undefined) throw invalid(`a string that begins at position ${at + 1} has no end`);
    tokens.push(token);
  }
  return tokens;
}

function buildComparison(op: Comparison, chain: AttributeChain, token: string): Filter {
  // A multi-valued complex attribute means its values, and a manager its id.
  const leaf = lastOf(chain);
  const value = leaf.type === "complex" ? findAttribute(leaf.subAttributes, "value") : leaf;
  const name = formatChain(chain);
  if (value === undefined) throw invalid(`${name} has no value to compare; name a part of it`);
  const attribute: AttributeChain = value === leaf ? chain : [...chain, value];
  const given = readLiteral(token);
  const isOrder = ORDERS.includes(op);
  if (given === null) {
    if (op !== "eq" && op !== "ne") throw invalid(`null is only compared by eq and ne, not by ${op}`);
    return { op, attribute, value: given, operand: given };
  }
  const { type } = value;
  const isText = type === "string" || type === "reference" || type === "binary";
  const isPart = op === "co" || op === "sw" || op === "ew";
  if ((isPart && !isText) || (isOrder && (type === "boolean" || type === "binary"))) {
    throw invalid(`${name} is of the type ${type}, which ${op} does not compare`);
  }
  const isNumeric = type === "integer" || type === "decimal";
  const isOfType = typeof given === (isNumeric ? "number" : "string");
  const read = type === "boolean" ? toBoolean(given) : isOfType ? given : undefined;
  const operand = read === undefined ? undefined : (toComparable(value, read) as FilterValue);
  if (operand === undefined || Number.isNaN(operand)) throw invalid(`${quote(token)} is no value of ${name}`);
  return { op, attribute, value: given, operand };
}

function readLiteral(token: string): FilterValue {
  const lower = token.toLowerCase();
  if (lower === "true" || lower === "false") return lower === "true";
  if (lower === "null") return null;
  if (NUMBER.test(token)) return Number(token);
  try {
    const text: unknown = JSON.parse(token);
    if (typeof text === "string") return text;
  } catch {
    // Not JSON: rejected below.
  }
  throw invalid(`${quote(token)} is no value: a string in double quotes, a number, true, false or null`);
}

function invalid(detail: string): ScimError {
  return badRequest("invalidFilter", `the filter is wrong: ${detail}`);
}

function lastOf(chain: AttributeChain): Attribute {
  return chain.at(-1) ?? chain[0];
}
