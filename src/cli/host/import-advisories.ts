// `arbor advisories import`: imports OSV records into a group, while a server runs or without one.

import type { Settings } from "../../config/config.js";
import { findSessionUrl } from "../../config/database.js";
import { readDatabaseTls } from "../../config/tls.js";
import { groups } from "../../iam/groups/group.js";
import { resolveName } from "../../iam/operator/names.js";
import { auditOnHost } from "../../iam/operator/operate.js";
import { notFound } from "../../kernel/errors.js";
import { randomIds } from "../../kernel/ids.js";
import { groupKind } from "../../store/iam/groups.js";
import { type ImportCounts, importOsv } from "../../vulnerabilities/osv/import.js";
import { createProgressLine, escapeControls, type ProgressStream } from "../output/terminal.js";
import { print, withInstallation } from "./host.js";
import { listRecordFiles } from "./import-files.js";

/** How often progress is written, in milliseconds. */
const EVERY_MS = { terminal: 100, lines: 1_000 };

/**
 * Runs the command. It prints the counts to standard output and the malformed records to standard error.
 *
 * @throws ApiError NOT_FOUND for a group that does not exist, INVALID_ARGUMENT for a file that does
 * not; Error, after the import of all others, when records are malformed.
 */
export async function importCommand(
  settings: Settings,
  paths: readonly string[],
  { group, progress: always = false }: { group: string; progress?: boolean },
): Promise<void> {
  const progress = createImportProgress(process.stderr, always);
  await withInstallation(settings, "update", async ({ store, clock }) => {
    const groupUid = await store.read((tx) => resolveName(tx, "group", group, "group"));
    if ((await store.read((tx) => tx.table(groupKind).find(groupUid))) === undefined) throw notFound(groups, groupUid);
    const row = { type: "arbor.advisories.imported.v1", subjectUid: groupUid };
    const startMs = performance.now();
    const counts = await importOsv(listRecordFiles(paths), {
      store,
      groupUid,
      ids: randomIds,
      onFirstWrite: (tx) => auditOnHost(tx, row, { nowMs: clock(), ids: randomIds }),
      onMalformed(file, rule) {
        progress.clear();
        process.stderr.write(`arbor: ${escapeControls(`${file}: ${rule}`)}\n`);
      },
      onProgress: progress.show,
    }).finally(progress.clear);
    printCounts(counts, performance.now() - startMs);
    const url = findSessionUrl(settings);
    if (url !== undefined && counts.created + counts.updated > 0) {
      const { vacuumDatabase } = await import("../../store/pg/vacuum.js");
      await vacuumDatabase({
        url,
        tls: readDatabaseTls(settings),
        name: "arbor advisories import",
      });
    }
    if (counts.malformed > 0) throw new Error(`${counts.malformed} of ${counts.records} records are malformed`);
  });
}

function printCounts(counts: ImportCounts, ms: number): void {
  const { records, malformed, withoutPackage, created, updated, withdrawn, unchanged, newer } = counts;
  print(`records: ${records} read, ${malformed} malformed, ${withoutPackage} without a package`);
  print(
    `advisories: ${created} created, ${updated} updated, ${withdrawn} withdrawn, ${unchanged} unchanged, ${newer} newer here`,
  );
  const rate = Math.round(records / (ms / 1_000));
  const peakMb = Math.round(process.resourceUsage().maxRSS / 1024);
  print(`took ${(ms / 1_000).toFixed(1)} s, ${rate} records/s, peak memory ${peakMb} MB`);
}

interface ImportProgress {
  show(counts: Readonly<ImportCounts>): void;
  /** Removes the line before other text is written to the same terminal. */
  clear(): void;
}

/**
 * Creates the progress of an import. It has no total, because directories and archives are read one entry at a time.
 *
 * @param always write progress also where `stream` is not a terminal, as a line per second
 */
function createImportProgress(stream: ProgressStream, always: boolean): ImportProgress {
  const isTerminal = stream.isTTY === true;
  const line = createProgressLine(stream);
  let nextMs = 0;
  return {
    clear: line.clear,
    show({ records, created, updated, unchanged }) {
      if (!isTerminal && !always) return;
      const nowMs = performance.now();
      if (nowMs < nextMs) return;
      nextMs = nowMs + (isTerminal ? EVERY_MS.terminal : EVERY_MS.lines);
      line.show(`${records} records, ${created} created, ${updated} updated, ${unchanged} unchanged`);
    },
  };
}
