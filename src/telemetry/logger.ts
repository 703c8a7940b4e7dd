import pino from "pino";

/** Writes structured log lines; a line is one JSON object. */
export type Logger = pino.Logger;

/** The least severe level that is logged. */
export type LogLevel = "fatal" | "error" | "warn" | "info" | "debug" | "trace" | "silent";

/** The destination of lines: standard error, except in tests. */
export interface LogDestination {
  write(line: string): void;
}

const REDACTED = "[redacted]";

// Deep enough for every object that is logged on purpose, and a limit for circular ones.
const MAX_DEPTH = 8;

/** How many lines are formatted and written together: one by one, between requests, each takes twice as long. */
const BATCHED_LINES = 32;

/** How long lines wait at most, in milliseconds. */
const FLUSH_MS = 1_000;

/** The destination of each logger; undefined for standard error. */
const destinations = new WeakMap<Logger, LogDestination | undefined>();

/** Writes many lines, such as those of the access log. */
export interface LineWriter<T> {
  /** Writes the line of an item, which must not change any more. */
  write(item: T): void;
  /** Writes what waits. */
  flush(): void;
}

/**
 * Creates the logger of the process. It writes to standard error, because standard output has only the ready line, and
 * synchronously, so that the last lines of a process are not lost. Values whose names are those of credentials are
 * never written, at any depth, and of errors only name, message, stack and causes.
 */
export function createLogger(level: LogLevel, destination?: LogDestination): Logger {
  const logger = pino(
    {
      ...buildPinoOptions(level),
      formatters: { ...formatters, log: (fields) => redact(fields, 0) as Record<string, unknown> },
    },
    destination ?? pino.destination({ dest: 2, sync: true }),
  );
  destinations.set(logger, destination);
  return logger;
}

/**
 * Creates a writer of lines of level info to the destination of `logger`, unless that level is not logged. Lines to
 * standard error wait for others, for up to a second, and are written when the process exits.
 *
 * @param logger of {@link createLogger}; any other has no lines
 * @param format formats the line of an item: ASCII that ends in a newline
 */
export function createLineWriter<T>(logger: Logger, format: (item: T) => string): LineWriter<T> | undefined {
  if (!logger.isLevelEnabled("info") || !destinations.has(logger)) return undefined;
  const destination = destinations.get(logger);
  if (destination !== undefined) return { write: (item) => destination.write(format(item)), flush() {} };
  const stream = pino.destination({ dest: 2, sync: true, contentMode: "buffer" });
  const waiting: T[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    let text = "";
    for (const item of waiting) text += format(item);
    waiting.length = 0;
    // As bytes, because the stream would measure and encode a text, which takes as long as formatting it. Its type knows
    // texts alone.
    if (text !== "") stream.write(Buffer.from(text, "latin1") as unknown as string);
  };
  const write = (item: T) => {
    waiting.push(item);
    if (waiting.length === BATCHED_LINES) flush();
    else timer ??= setTimeout(flush, FLUSH_MS).unref();
  };
  // Also after an uncaught error, which ends the process by `process.exit`.
  process.once("exit", flush);
  return { write, flush };
}

// Without a text pino would use that of the error, which may contain statements and parameters.
function addText(this: Logger, args: Parameters<pino.LogFn>, method: pino.LogFn): void {
  const [first] = args as unknown[];
  const bare = args.length === 1 && typeof first === "object" && first !== null;
  const isError = bare && (first instanceof Error || "err" in first);
  method.apply(this, (isError ? [first instanceof Error ? { err: first } : first, "error"] : args) as typeof args);
}

const formatters = { level: (label: string) => ({ level: label }) };

function buildPinoOptions(level: LogLevel) {
  // Without this serializer pino would serialize the result of describeError again.
  const serializers = { err: (described: unknown) => described };
  return {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters,
    serializers,
    hooks: { logMethod: addText },
  };
}

/** How many causes of an error are logged. */
const MAX_CAUSES = 4;

/** The longest message and stack that are logged, in characters. */
const MAX_TEXT = 8_192;

interface LoggedError {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  readonly cause?: LoggedError;
}

// Drivers and libraries attach statements, parameters, rows and requests to their errors.
function describeError(error: Error, causes: number): LoggedError {
  const name = String(error.name).slice(0, 200);
  const message = messageOf(error).slice(0, MAX_TEXT);
  const frames = /\n {4}at [\s\S]*/.exec(String(error.stack ?? ""))?.[0] ?? "";
  const described = { name, message, stack: `${name}: ${message}${frames}`.slice(0, 2 * MAX_TEXT) };
  const { cause } = error;
  return cause instanceof Error && causes > 0 ? { ...described, cause: describeError(cause, causes - 1) } : described;
}

function messageOf(error: Error): string {
  const { query } = error as { query?: unknown };
  const message = String(error.message);
  // The message of an error of drizzle contains the statement and its parameters.
  const at = typeof query === "string" && query !== "" ? message.indexOf(query) : -1;
  if (at >= 0) return message.slice(0, at).replace(/[\s:]+$/, "");
  // A failed connection to several addresses has a message for each of them only.
  if (message === "" && error instanceof AggregateError) return error.errors.slice(0, 4).map(String).join("; ");
  return message;
}

function redact(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return REDACTED;
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  if (value instanceof Error) return describeError(value, MAX_CAUSES);
  if (value instanceof Date || ArrayBuffer.isView(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(value)) {
    copy[name] = isCredential(name) ? REDACTED : redact(item, depth + 1);
  }
  return copy;
}

// `tokenId` names a token and `secretFile` the file of a secret, without being one; `apiToken` and `x-auth-token` are tokens.
function isCredential(name: string): boolean {
  const plain = name.toLowerCase().replaceAll(/[-_]/g, "");
  if (plain.endsWith("file")) return false;
  return (
    plain.endsWith("token") ||
    plain.endsWith("tokens") ||
    plain.includes("authorization") ||
    plain.includes("secret") ||
    plain.includes("password") ||
    plain.includes("cookie") ||
    plain.includes("privatekey")
  );
}
