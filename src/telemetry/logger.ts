import pino from "pino";

/** Writes structured log lines; a line is one JSON object. */
export type Logger = pino.Logger;

/** How much is logged. */
export type LogLevel = "fatal" | "error" | "warn" | "info" | "debug" | "trace" | "silent";

/** Where lines go; standard error unless a test wants to read them. */
export interface LogDestination {
  write(line: string): void;
}

const REDACTED = "[redacted]";

// Deep enough for anything logged on purpose, and an end for what refers to itself.
const MAX_DEPTH = 8;

/** Lines of the access log are written this many characters at a time: a write for each would cost more than the line. */
const BUFFERED_LENGTH = 16_384;

/** After this time buffered lines are written whatever their number, in milliseconds. */
const FLUSH_MS = 1_000;

const writers = new WeakMap<Logger, () => LineWriter>();

/** Writes many lines, such as those of the access log. */
export interface LineWriter {
  /** Whether lines of level info are written. */
  readonly isOn: boolean;
  /** Writes a line, which ends in a newline. */
  write(line: string): void;
  /** Writes what is buffered. */
  flush(): void;
}

/**
 * Creates the logger of the process. Lines go to standard error: standard output carries nothing
 * but the ready line. Each is written before the call returns, so that the last lines of a process that
 * ends are there. Values whose name says that they are credentials are never written, at any depth, and
 * of errors nothing but name, message, stack and causes.
 */
export function createLogger(level: LogLevel, destination?: LogDestination): Logger {
  const logger = pino(
    {
      ...optionsFor(level),
      formatters: { ...formatters, log: (fields) => redact(fields, 0) as Record<string, unknown> },
    },
    destination ?? pino.destination({ dest: 2, sync: true }),
  );
  let lines: LineWriter | undefined;
  writers.set(logger, () => (lines ??= createLineWriter(logger, destination)));
  return logger;
}

/**
 * What writes lines beside `logger`, to the same place. Lines to standard error are buffered for up to a second; what is
 * buffered is written when the process exits.
 *
 * @param logger of {@link createLogger}; any other has no lines
 */
export function lineWriterOf(logger: Logger): LineWriter {
  return writers.get(logger)?.() ?? { isOn: false, write() {}, flush() {} };
}

function createLineWriter(logger: Logger, destination: LogDestination | undefined): LineWriter {
  const isOn = logger.isLevelEnabled("info");
  if (destination !== undefined || !isOn) return { isOn, write: (line) => destination?.write(line), flush() {} };
  const stream = pino.destination({ dest: 2, sync: true });
  // Collected here, because the stream measures each text that it is given, which costs as much as a line does.
  let buffered = "";
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (buffered !== "") stream.write(buffered);
    buffered = "";
  };
  const write = (line: string) => {
    buffered += line;
    if (buffered.length >= BUFFERED_LENGTH) flush();
    else timer ??= setTimeout(flush, FLUSH_MS).unref();
  };
  // Also after an uncaught error, which ends the process by `process.exit`.
  process.once("exit", flush);
  return { isOn, write, flush };
}

// An error that is logged without a text would lend its own, which may quote statements and parameters.
function addText(this: Logger, args: Parameters<pino.LogFn>, method: pino.LogFn): void {
  const [first] = args as unknown[];
  const bare = args.length === 1 && typeof first === "object" && first !== null;
  const isError = bare && (first instanceof Error || "err" in first);
  method.apply(this, (isError ? [first instanceof Error ? { err: first } : first, "error"] : args) as typeof args);
}

const formatters = { level: (label: string) => ({ level: label }) };

function optionsFor(level: LogLevel) {
  // Without its own serializer pino would describe once more what describeError made of an error.
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
  // The message of an error of drizzle repeats the statement and its parameters.
  const at = typeof query === "string" && query !== "" ? message.indexOf(query) : -1;
  if (at >= 0) return message.slice(0, at).replace(/[\s:]+$/, "");
  // A connection that was tried at several addresses has a message for each alone.
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
