// The form of the table: what docs/api-rules.md says, the requests that show it, and what they must come to.
import { invalidMessage } from "../expectations.js";
import type { CallerName } from "./world.js";

/** The protocols that every row is run over, unless it says otherwise. */
export type Protocol = "REST" | "gRPC" | "Connect";

/** What a value must look like. Objects may have more keys; arrays have exactly these elements. */
export type Pattern =
  | string
  | number
  | boolean
  | null
  | RegExp
  | Absent
  | Each
  | readonly Pattern[]
  | { readonly [key: string]: Pattern };

/** A key that must not be there. */
export class Absent {}

/** A list of which every element has this pattern; of any length but zero, or of the given one. */
export class Each {
  readonly pattern: Pattern;
  readonly length: number | undefined;

  constructor(pattern: Pattern, length?: number) {
    this.pattern = pattern;
    this.length = length;
  }
}

/** A key that must not be there. */
export const absent = new Absent();

/** A list whose elements all look like this. */
export function each(pattern: Pattern, length?: number): Each {
  return new Each(pattern, length);
}

/** What a response must be. */
export interface Expectation {
  /** The name of the code, such as `NOT_FOUND`; `OK` unless said otherwise. */
  readonly code?: string;
  /** The text of an error. */
  readonly message?: string | RegExp;
  /** The details of an error after its ErrorInfo, in the JSON form; checked whenever the row has a code. */
  readonly details?: readonly Pattern[];
  /** The response as JSON with empty scalars and lists in it, the same over all protocols. */
  readonly result?: Pattern;
  /** The body over REST, as it was sent. */
  readonly json?: Pattern;
  /** The body over REST as text. */
  readonly text?: string | RegExp;
  /** The HTTP status over REST; that of the code unless said otherwise. */
  readonly status?: number;
  /** Headers over REST, by lower-case names. */
  readonly headers?: { readonly [name: string]: string | RegExp };
  /** The type and the subject of the row that the call leaves in the audit log. */
  readonly audit?: { readonly eventType: string; readonly resource: string };
}

/** Who calls, when, and what is kept of the response. */
interface StepBase {
  /** The owner of the organisation unless said otherwise. */
  readonly as?: CallerName;
  /** How long after the step before, in milliseconds. */
  readonly laterMs?: number;
  /** Placeholders of what must be there although no request speaks of it. */
  readonly made?: readonly string[];
  readonly expect: Expectation;
  /** What later steps call `<name>`: a path in the response, such as `group.uid`. */
  readonly keep?: { readonly [name: string]: string };
}

/** A call of a method, over each protocol. */
export interface CallStep extends StepBase {
  /** A method of version v2beta1 by its name, or any by `service.method`, such as `iam.Groups.List`. */
  readonly call: string;
  /** The request in its JSON form; placeholders in angle brackets stand for what the world holds. */
  readonly request: object;
}

/** A request that only REST knows, such as one that tells an empty value from none. */
export interface HttpStep extends StepBase {
  /** Method, path and query. */
  readonly http: string;
  readonly body?: object | string;
  readonly headers?: { readonly [name: string]: string };
}

/** One or more calls, one after another. */
export type Step = CallStep | HttpStep;

interface RuleBase {
  /** The heading of docs/api-rules.md that says so. */
  readonly anchor: string;
  /** The statement. */
  readonly says: string;
  /** The protocols that can say it; all unless said otherwise. */
  readonly over?: readonly Protocol[];
}

/** A row of the table. */
export type Rule =
  | (RuleBase & Step)
  | (RuleBase & { readonly steps: readonly Step[] })
  // What no request shows alone: the test that does.
  | (RuleBase & { readonly shownBy: string; readonly test: string });

type Violation = readonly [field: string | RegExp, description: string | RegExp];

const TYPE = "type.googleapis.com/google.rpc.";

/** INVALID_ARGUMENT with one violation per pair of field and description. */
export function invalid(...violations: readonly Violation[]): Expectation {
  const fieldViolations = violations.map(([field, description]) => ({ field, description }));
  const isLiteral = (pair: Violation): pair is readonly [string, string] =>
    pair.every((part) => typeof part === "string");
  return {
    code: "INVALID_ARGUMENT",
    message: violations.every(isLiteral) ? invalidMessage(violations) : /^Invalid argument: /,
    details: [{ "@type": `${TYPE}BadRequest`, fieldViolations }],
  };
}

/** A call that is rejected for its fields. */
export interface RejectedCall {
  readonly anchor: string;
  readonly call: string;
  /** The request with what is wrong in it. */
  readonly request: object;
  /** Names in camelCase, which other protocols write in snake_case. */
  readonly violations: readonly (readonly [field: string, description: string])[];
}

/** A row of a call that is rejected for its fields, each with one text. */
export function rejects(says: string, { violations, ...call }: RejectedCall): Rule {
  return { ...call, says, expect: invalid(...violations.map((pair) => pair.map(asWritten) as [RegExp, RegExp])) };
}

// A text in which names may be in either case.
function asWritten(text: string): RegExp {
  const literal = text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const names = literal.replace(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g, (name) => {
    return `(?:${name}|${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)})`;
  });
  return new RegExp(`^${names}$`);
}

/** FAILED_PRECONDITION with a violation for each description. */
export function precondition(
  type: string,
  description: string | RegExp,
  ...others: readonly (string | RegExp)[]
): Expectation {
  const violations = [description, ...others].map((one) => ({ type, description: one }));
  return {
    code: "FAILED_PRECONDITION",
    message: typeof description === "string" ? `Precondition failed: ${description}` : /^Precondition failed: /,
    details: [{ "@type": `${TYPE}PreconditionFailure`, violations }],
  };
}

/** PERMISSION_DENIED that does not tell whether the resource exists. */
export function denial(what: string): Expectation {
  return { code: "PERMISSION_DENIED", message: `Permission denied: ${what} (or it might not exist)`, details: [] };
}

/** NOT_FOUND of a resource. */
export function notFound(resourceType: string | RegExp, resourceName: string): Expectation {
  return {
    code: "NOT_FOUND",
    message: /^Not found: /,
    details: [{ "@type": `${TYPE}ResourceInfo`, resourceType, resourceName }],
  };
}

/** ALREADY_EXISTS of a resource. */
export function alreadyExists(resourceType: string): Expectation {
  return {
    code: "ALREADY_EXISTS",
    message: /^Already exists: /,
    details: [{ "@type": `${TYPE}ResourceInfo`, resourceType }],
  };
}

/** UNAUTHENTICATED, with the one text that there is for it. */
export const unauthenticated: Expectation = {
  code: "UNAUTHENTICATED",
  message: "Unauthenticated: authorization: a valid bearer token is required",
  details: [],
};
