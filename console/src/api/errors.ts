// What an error of the API tells a person.
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, PreconditionFailureSchema } from "#gen/google/rpc/error_details_pb.js";

export interface Problem {
  readonly text: string;
  /** What is wrong with a field of the request, by the last segment of its path, such as `name`. */
  readonly fields: ReadonlyMap<string, string>;
  /** What must be true first. */
  readonly preconditions: readonly string[];
  readonly code: Code;
  /** The reason in the error's ErrorInfo. */
  readonly reason: string;
  /** What an operator finds the call by. */
  readonly requestId: string;
}

const OFFLINE = "This browser is offline. Go on when it is connected again: nothing was lost.";
const UNREACHABLE = "The service cannot be reached. Try again in a moment.";

export function readProblem(error: unknown): Problem {
  const cause = ConnectError.from(error);
  const violations = cause.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
  const fields = new Map(violations.map(({ field, description }) => [lastSegment(field), describeRule(description)]));
  const failed = cause.findDetails(PreconditionFailureSchema).flatMap(({ violations: all }) => all);
  return {
    text: describe(cause),
    fields,
    preconditions: failed.map(({ description }) => description),
    code: cause.code,
    reason: cause.findDetails(ErrorInfoSchema)[0]?.reason ?? "",
    requestId: cause.metadata.get("x-request-id") ?? "",
  };
}

function describe({ code, rawMessage }: ConnectError): string {
  if (!navigator.onLine) return OFFLINE;
  // The library's own words for a request that got no answer.
  if (code === Code.Unavailable || (code === Code.Unknown && /fetch|network|load failed/i.test(rawMessage))) {
    return UNREACHABLE;
  }
  const text = rawMessage.replace(TITLE, "");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** What errors of the service begin with: a class of errors, which says nothing to a person. */
const TITLE = /^(?:Precondition failed|Invalid argument|Failed precondition): /;
const NAME_PATTERN = "must match ^[a-z0-9 ._-]{1,}$";

/** The rule of names; the service says it as a pattern. */
export const NAME_RULE = "Lower-case letters, digits, spaces, dots, hyphens and underscores";

function describeRule(rule: string): string {
  return rule.includes(NAME_PATTERN) ? `Only ${NAME_RULE.toLowerCase()} are allowed` : rule;
}

function lastSegment(path: string): string {
  return path.split(".").at(-1) ?? path;
}
