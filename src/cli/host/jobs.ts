// The command `arbor admin jobs list`.
import type { Settings } from "../../config/config.js";
import type { JobRow } from "../../store/port.js";
import { createTable } from "../output/table.js";
import { onHost, print } from "./host.js";

/** `arbor admin jobs list`: the background jobs of the servers, with the last recorded run of each. */
export async function jobListCommand(settings: Settings, { json = false }: { json?: boolean }): Promise<void> {
  await onHost(settings, "read", async ({ store }) => {
    const { rows, nowMs } = await store.read(async (tx) => ({
      rows: await tx.jobs.list(),
      nowMs: await tx.jobs.nowMs(),
    }));
    const lines = json ? rows.map((row) => JSON.stringify(toJson(row, nowMs))) : formatJobs(rows);
    for (const line of lines) print(line);
  });
}

function toJson(row: JobRow, nowMs: number) {
  return {
    name: row.name,
    leader: row.holder,
    fence: row.fence,
    leased: row.expireTimeMs > nowMs,
    lastRunTime: formatTime(row.startTimeMs),
    durationMs: row.durationMs,
    changes: row.changes,
    nextRunTime: formatTime(row.nextTimeMs),
    failures: row.failures,
    lastError: row.error,
    lastErrorTime: formatTime(row.errorTimeMs),
  };
}

function formatJobs(rows: readonly JobRow[]): string[] {
  const columns = ["JOB", "LEADER", "LAST RUN", "TOOK", "CHANGES", "NEXT RUN", "FAILURES", "LAST ERROR"];
  const cells = rows.map((row) => [
    row.name,
    row.holder,
    formatTime(row.startTimeMs) ?? "",
    row.durationMs === null ? "" : `${row.durationMs} ms`,
    row.changes === null ? "" : String(row.changes),
    formatTime(row.nextTimeMs) ?? "",
    String(row.failures),
    row.error === null ? "" : `${formatTime(row.errorTimeMs)} ${row.error}`,
  ]);
  return createTable(
    columns.map((title) => ({ title })),
    { colour: false, width: undefined },
  ).lines(cells);
}

function formatTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
