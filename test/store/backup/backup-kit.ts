// Data directories and backups of them.
import { closeSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../../src/store/sqlite/driver.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import type { Store } from "../../../src/store/store.js";
import { tempDir } from "../../support/temp-dir.js";

/** The audit row of restores that no command makes. */
export const restoreRow = {
  rootUid: "",
  timeMs: 1_763_675_334_123,
  type: "arbor.database.restored.v1",
  method: "arbor",
  subjectUid: "",
  actorUid: "",
  tokenId: "",
  requestId: "request",
  remoteAddress: "",
};

/** A data directory with a master key and an open store, in which the setting `marker` is `0`. */
export async function openWithMarker(): Promise<{ readonly data: string; readonly store: Store }> {
  const data = tempDir();
  const store = openSqlite({ directory: data });
  writeFileSync(join(data, "master.key"), `${"A".repeat(43)}=\n`, { mode: 0o600 });
  await store.write((tx) => tx.settings.put("marker", "0"));
  return { data, store };
}

/** The setting `marker` of a database file. */
export function readMarker(file: string): string | undefined {
  const db = openDatabase(file, { readonly: true, fileMustExist: true });
  try {
    return db.prepare("SELECT value FROM settings WHERE name = 'marker'").pluck().get() as string | undefined;
  } finally {
    db.close();
  }
}

/** Overwrites the first page of a table in a database that nobody has open. */
export function damagePageOf(file: string, table: string): void {
  const db = openDatabase(file);
  const page = Number(db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").pluck().get(table));
  const bytes = Number(db.pragma("page_size", { simple: true }));
  db.close();
  const descriptor = openSync(file, "r+");
  writeSync(descriptor, Buffer.alloc(bytes, 0xa5), 0, bytes, (page - 1) * bytes);
  closeSync(descriptor);
}
