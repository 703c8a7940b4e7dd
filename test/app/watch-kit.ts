// The log and the clock of a watch of the machine, and what it counts.
import type { Source } from "../../src/telemetry/metrics/samples.js";

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

/** Creates a logger that keeps its lines. */
export function createLineLog() {
  const lines: LogLine[] = [];
  const log = (level: string) => (fields: unknown, message?: string) =>
    void lines.push({ level, message: message ?? "", fields: fields as Record<string, unknown> });
  return { lines, logger: { error: log("error"), warn: log("warn"), info: log("info") } as never };
}

/** Reads the values of one metric by its label. */
export function readCounts(sources: readonly Source[], name: string): Record<string, number> {
  const samples = [...(sources.find((source) => source.name === name)?.collect() ?? [])];
  return Object.fromEntries(samples.map(({ labels, value }) => [Object.values(labels)[0], value]));
}
