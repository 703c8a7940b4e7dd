// The times of `--since` and `--until`.
import { invalidFlag } from "../../errors.js";

/** The flags. Each is a time, or how long ago. */
export interface TimeFlags {
  readonly since?: string;
  readonly until?: string;
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses both flags into epoch milliseconds, the end exclusive.
 *
 * @throws CommandError INVALID_ARGUMENT for an invalid time, and for a range that ends before it begins
 */
export function parseTimeRange({ since, until }: TimeFlags): { readonly startMs?: number; readonly endMs?: number } {
  const nowMs = Date.now();
  const startMs = since === undefined ? undefined : parseTime("--since", since, nowMs);
  const endMs = until === undefined ? undefined : parseTime("--until", until, nowMs);
  if (startMs !== undefined && endMs !== undefined && endMs <= startMs) {
    throw invalidFlag("--until", "--until must be after --since");
  }
  return { ...(startMs !== undefined && { startMs }), ...(endMs !== undefined && { endMs }) };
}

function parseTime(flag: string, value: string, nowMs: number): number {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(value) ?? [];
  if (count !== undefined) return Math.max(0, nowMs - Number(count) * (unitMs[unit] ?? 0));
  const ms = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d))?$/.test(value) ? Date.parse(value) : Number.NaN;
  if (ms >= 0) return ms;
  throw invalidFlag(flag, `${flag} must be a time such as 2026-01-31T12:00:00Z, or a duration such as 24h`);
}
