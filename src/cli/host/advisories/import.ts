// `arbor advisories import`: OSV records into a group, beside a server or
// without one.
import type { Settings } from "../../../config/config.js";
import { groups } from "../../../iam/groups/group.js";
import { auditOnHost } from "../../../iam/operator/operate.js";
import { notFound } from "../../../kernel/errors.js";
import { randomIds } from "../../../kernel/ids.js";
import { type ImportCounts, importOsv } from "../../../vulnerabilities/osv/import.js";
import { printable } from "../../printable.js";
import { onHost, print } from "../host.js";
import { importProgressOn } from "./progress.js";
import { recordFiles } from "./record-files.js";

/**
 * Runs the command: what became of the records goes to standard output, malformed ones are named on
 * standard error.
 *
 * @throws ApiError NOT_FOUND for a group that does not exist, INVALID_ARGUMENT for a file that does
 * not; Error, after all else is imported, when records were malformed.
 */
export async function importCommand(
  settings: Settings,
  paths: readonly string[],
  { group, progress: wanted = false }: { group: string; progress?: boolean },
): Promise<void> {
  const progress = importProgressOn(process.stderr, wanted);
  await onHost(settings, async ({ store, clock }) => {
    if ((await store.read((tx) => tx.groups.get(group))) === undefined) throw notFound(groups, group);
    const startMs = performance.now();
    const counts = await importOsv(recordFiles(paths), {
      store,
      groupUid: group,
      ids: randomIds,
      onFirstWrite: (tx) => auditOnHost(tx, "arbor.advisories.imported.v1", group, clock(), randomIds),
      onMalformed(file, rule) {
        progress.clear();
        process.stderr.write(`arbor: ${printable(`${file}: ${rule}`)}\n`);
      },
      onProgress: progress.show,
    }).finally(progress.clear);
    report(counts, performance.now() - startMs);
    if (counts.malformed > 0) throw new Error(`${counts.malformed} of ${counts.records} records are malformed`);
  });
}

function report(counts: ImportCounts, ms: number): void {
  const { records, malformed, withoutPackage, created, updated, withdrawn, unchanged, newer } = counts;
  print(`records: ${records} read, ${malformed} malformed, ${withoutPackage} without a package`);
  print(
    `advisories: ${created} created, ${updated} updated, ${withdrawn} withdrawn, ${unchanged} unchanged, ${newer} newer here`,
  );
  const rate = Math.round(records / (ms / 1_000));
  const peakMb = Math.round(process.resourceUsage().maxRSS / 1024);
  print(`took ${(ms / 1_000).toFixed(1)} s, ${rate} records/s, peak memory ${peakMb} MB`);
}
