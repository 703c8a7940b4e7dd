// Errors as people read them: the message, then a line for each field that
// broke a rule, and never where in the program it happened.
import { Code, ConnectError } from "@connectrpc/connect";
import { fieldViolations, preconditionViolations, quotaViolations } from "../../client/index.js";
import { printableLines } from "./lines.js";

/** A failure worded for the terminal. */
export class CommandFailure extends Error {
  /** What the exit code follows from. */
  readonly code: Code;

  constructor(message: string, code: Code) {
    super(message);
    this.name = "CommandFailure";
    this.code = code;
  }
}

/**
 * What to throw in place of `error`: a refusal of the service in several lines, anything else as it is.
 *
 * @param anonymous whether the command had no credentials
 */
export function failureOf(error: unknown, anonymous: boolean): unknown {
  if (!(error instanceof ConnectError)) return error;
  const lines = [
    error.rawMessage,
    ...fieldViolations(error).map(({ field, description }) => `  ${field}: ${description}`),
    ...preconditionViolations(error).map(({ type, description }) => `  ${type}: ${description}`),
    ...quotaViolations(error).map(({ subject, description }) => `  ${subject}: ${description}`),
  ];
  if (error.code === Code.Unauthenticated && anonymous) {
    lines.push("  no credentials were given: run `arbor auth login`, or set ARBOR_TOKEN");
  }
  return new CommandFailure(lines.map((line) => printableLines(line)).join("\n"), error.code);
}
