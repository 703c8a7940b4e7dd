import pino from "pino";
import { createLineRelay, type LineRelay, type LineStream, openLineStream } from "./line-stream.js";

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

/** What each logger writes to; undefined for a destination of a test. */
const streams = new WeakMap<Logger, Stream>();

/** What waits elsewhere until it is formatted, and the stream of a logger. */
interface Stream {
  readonly destination: LogDestination | undefined;
  readonly lines: LineStream | undefined;
  readonly flushes: (() => void)[];
}

/** Writes many lines, such as those of the access log. */
export interface LineWriter<T> {
  /** Writes the line of an item, which must not change any more. */
  write(item: T): void;
  /** Writes what waits. */
  flush(): void;
}

/**
 * Creates the logger of the process. It writes to standard error, because standard output has only the ready line, and
 * never waits for it: lines that cannot be written wait, 1 MiB of them at most. How many were lost beyond that is logged
 * when lines can be written again. Values whose names are those of credentials are never written, at any depth, and of
 * errors only name, message, stack and causes.
 *
 * @param fields what each line has, except for those of line writers
 */
export function createLogger(level: LogLevel, destination?: LogDestination, fields: object | null = null): Logger {
  const onRecovered = (lost: number) =>
    logger.warn({ lost }, "lines of the log were lost, because they could not be written for too long");
  const lines = destination === undefined ? openLineStream(2, onRecovered) : undefined;
  const logger: Logger = pino(
    {
      ...buildPinoOptions(level),
      base: fields,
      formatters: { ...formatters, log: (fields) => redact(fields, 0) as Record<string, unknown> },
    },
    destination ?? { write: (line) => lines?.write(Buffer.from(line)) },
  );
  streams.set(logger, { destination, lines, flushes: [] });
  return logger;
}

/** Creates a relay of the log of another process to where a logger writes. */
export function relayLog(logger: Logger): LineRelay | undefined {
  const lines = streams.get(logger)?.lines;
  return lines && createLineRelay(lines);
}

/** How many lines of a logger and its line writers were lost; undefined for one that does not write to standard error. */
export function countLostLines(logger: Logger): number | undefined {
  return streams.get(logger)?.lines?.lostLines();
}

/** Writes what waits, before the process exits. Resolves to true when it is written, or to false after half a second. */
export function flushLog(logger: Logger): Promise<boolean> {
  const stream = streams.get(logger);
  for (const flush of stream?.flushes ?? []) flush();
  return stream?.lines?.flush() ?? Promise.resolve(true);
}

/**
 * Creates a writer of lines of level info to the destination of `logger`, unless that level is not logged. Lines to
 * standard error wait for others, for up to a second, or until {@link flushLog}.
 *
 * @param logger of {@link createLogger}; any other has no lines
 * @param format formats the line of an item: ASCII that ends in a newline
 */
export function createLineWriter<T>(logger: Logger, format: (item: T) => string): LineWriter<T> | undefined {
  const stream = streams.get(logger);
  if (stream === undefined || !logger.isLevelEnabled("info")) return undefined;
  const { destination, lines } = stream;
  if (destination !== undefined) return { write: (item) => destination.write(format(item)), flush() {} };
  const waiting: T[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    let text = "";
    for (const item of waiting) text += format(item);
    waiting.length = 0;
    if (text !== "") lines?.write(Buffer.from(text, "latin1"));
  };
  const write = (item: T) => {
    waiting.push(item);
    if (waiting.length === BATCHED_LINES) flush();
    else timer ??= setTimeout(flush, FLUSH_MS).unref();
  };
  stream.flushes.push(flush);
  // Where the process ends by itself, as programs with a service of their own may.
  process.once("beforeExit", flush);
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
