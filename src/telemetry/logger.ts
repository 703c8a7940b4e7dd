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

/**
 * Creates the logger of the process. Lines go to standard error: standard output carries nothing
 * but the ready line. Values whose name says that they are credentials are never written, at any
 * depth.
 */
export function createLogger(
  level: LogLevel,
  destination: LogDestination = pino.destination({ dest: 2, sync: true }),
): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => redact(fields, 0) as Record<string, unknown>,
      },
    },
    destination,
  );
}

function redact(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return REDACTED;
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  const source = value instanceof Error ? pino.stdSerializers.err(value) : value;
  if (value instanceof Date || ArrayBuffer.isView(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(source)) {
    copy[name] = isCredential(name) ? REDACTED : redact(item, depth + 1);
  }
  return copy;
}

// `tokenId` names a token without being one; `apiToken` and `x-auth-token` are tokens.
function isCredential(name: string): boolean {
  const plain = name.toLowerCase().replaceAll(/[-_]/g, "");
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
