// The errors of commands, and their exit codes. This file loads no RPC library: docker starts the credential helper for
// every pull, and loading a library would take longer than the response of the helper.
import type { Code as ConnectCode } from "@connectrpc/connect";
import { isDiskFault } from "../kernel/disk-errors.js";
import { escapeLines } from "./output/terminal.js";

/** The gRPC status codes that commands use, with the numbers of google/rpc/code.proto. */
export const Code = {
  Unknown: 2,
  InvalidArgument: 3,
  DeadlineExceeded: 4,
  NotFound: 5,
  AlreadyExists: 6,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  FailedPrecondition: 9,
  Aborted: 10,
  Internal: 13,
  Unavailable: 14,
  Unauthenticated: 16,
} as const satisfies Partial<Record<keyof typeof ConnectCode, ConnectCode>>;

/** The exit codes of commands, in docs/cli.md as well; one that is not here is 1. */
export const exitCodes: Partial<Record<ConnectCode, number>> = {
  [Code.InvalidArgument]: 2,
  [Code.Unauthenticated]: 3,
  [Code.PermissionDenied]: 4,
  [Code.NotFound]: 5,
  [Code.AlreadyExists]: 6,
  [Code.FailedPrecondition]: 6,
  [Code.Aborted]: 6,
  [Code.ResourceExhausted]: 7,
  [Code.Unavailable]: 8,
  [Code.DeadlineExceeded]: 8,
};

/** An error that ends a command. Its message is safe to print to a terminal. */
export class CommandError extends Error {
  /** Determines the exit code. */
  readonly code: ConnectCode;

  constructor(code: ConnectCode, message: string, cause?: unknown) {
    super(escapeLines(message), cause === undefined ? undefined : { cause });
    this.name = "CommandError";
    this.code = code;
  }
}

/** A flag or an argument that breaks a rule. The program ends its text with where the help is. */
export class UsageError extends CommandError {}

/** The answer "no" of a command that answers a question. The command has printed it, so nothing more is printed. */
export class NegativeAnswer extends Error {
  /** As that of `check` with a finding, unless the answer has another one. */
  readonly exitCode: number = 1;
}

/**
 * Creates the error of a flag, an argument or an environment variable that breaks a rule.
 *
 * @param rule what the flag must be. Texts that others have written for the name of a field may begin with the flag, which
 * is not repeated.
 */
export function invalidFlag(flag: string, rule: string): UsageError {
  const text = rule.startsWith(`${flag} `) ? rule.slice(flag.length + 1) : rule;
  return new UsageError(Code.InvalidArgument, `${flag}: ${text}`);
}

/** UNAUTHENTICATED, with a hint to `arbor auth login`. */
export function notLoggedIn(api: string, reason = `not logged in to ${api}`): CommandError {
  return new CommandError(Code.Unauthenticated, `${reason}; run: arbor auth login --api ${api}`);
}

/** The exit code after a fault of the program (EX_SOFTWARE of sysexits.h). */
const SOFTWARE_ERROR = 70;

/** What JavaScript throws for a fault of the program. Errors about what users do are of no such class. */
const programFaults = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError];

/**
 * Prints an error to standard error, and the stack of a fault of the program.
 *
 * @returns the exit code of the command: 2 for wrong settings, one per class of status, that of UNAVAILABLE for a fault of
 * the disk, that of FAILED_PRECONDITION for a wrong master key or a damaged database, that of a worker which could not
 * start, 70 for a fault of the program, 1 for all others
 */
export function reportError(error: unknown): number {
  if (programFaults.some((fault) => error instanceof fault)) {
    process.stderr.write(`arbor: a fault of the program: ${escapeLines((error as Error).stack ?? String(error))}\n`);
    return SOFTWARE_ERROR;
  }
  process.stderr.write(`arbor: ${error instanceof Error ? error.message : String(error)}\n`);
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  // Compared by name, because most commands do not load the class.
  if (name === "SettingsError") return 2;
  if (name === "WorkerStartError") return (error as { readonly exitCode: number }).exitCode;
  const needsOperator = name === "MasterKeyError" || /^SQLITE_(CORRUPT|NOTADB)/.test(String(code));
  const status = isDiskFault(error) ? Code.Unavailable : needsOperator ? Code.FailedPrecondition : code;
  return (typeof status === "number" ? exitCodes[status as ConnectCode] : undefined) ?? 1;
}
