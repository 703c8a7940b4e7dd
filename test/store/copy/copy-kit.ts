// Copies between data directories, whose steps a test can end or change.
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { MASTER_KEY_CHECK } from "../../../src/issuer/keys/master-key.js";
import type { CopiedRow } from "../../../src/store/copy/cells.js";
import { type ComparedTable, copyDatabase } from "../../../src/store/copy/copy.js";
import type { CopySource, CopyTarget } from "../../../src/store/copy/databases.js";
import { identifySource, prepareTarget } from "../../../src/store/copy/prepare.js";
import { openSqliteSource, openSqliteTarget } from "../../../src/store/copy/sqlite.js";
import { createMark } from "../../../src/store/copy-mark.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { openDatabase, type SqliteDatabase } from "../../../src/store/sqlite/driver.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import { fillWorld, uids } from "../../cli/host/check/world.js";
import { childUid, groupRow } from "../../support/rows.js";
import { memoryDir } from "../../support/temp-dir.js";

const template = memoryDir();
const filled = openSqlite({ directory: template });
await fillWorld(filled, template);
await filled.write(async (tx) => {
  for (let n = 0; n < 400; n++)
    await tx.table(groupKind).insert(groupRow(childUid(uids.squad, 0x1000 + n), { name: `g${n}` }));
});
await filled.close();

/** A data directory of this version with resources of every kind. */
export function createFilledDirectory(): string {
  const directory = memoryDir();
  for (const name of ["arbor.db", "master.key"]) copyFileSync(join(template, name), join(directory, name));
  return directory;
}

/** Adds rows to tables of such a directory, those that have none among them. Not all are as the service would write them. */
export function fillEmptyTables(directory: string): void {
  withDatabase(directory, (db) =>
    db.exec(`INSERT INTO access_requests SELECT uid, 'someone', 7 FROM groups WHERE parent_uid IS NULL;
      INSERT INTO refresh_tokens VALUES ('A', 'f', 'i', '{"scope":{"b":1,"a":[true,null]}}', 1, 2, 3), ('g', 'f', 'i', '[]', 0, 2, 3);
      INSERT INTO tickets VALUES ('A', 'code', '{ "b" : "x", "a" : 1.50 }', 9, NULL, NULL), ('t', 'code', '{}', 9, 'é', 1);
      INSERT INTO manifests SELECT uid, 'sha256:1', '{"z":9007199254740991,"10":1,"9":2}' FROM repos;
      INSERT INTO registry_events VALUES ('b', 1), ('B', 2), ('ä', 3), ('_', 4), ('a b', 5);
      INSERT INTO revoked_tokens VALUES ('A', 'é', 9007199254740991), ('i', 'a', 1);
      INSERT INTO tag_marks SELECT uid, 'newest', -1 FROM repos;
      UPDATE deployments SET charts = '{"charts":["🌳"]}';
      INSERT INTO registry_settings SELECT uid, 1, 0 FROM groups WHERE parent_uid IS NULL ON CONFLICT DO NOTHING;
      INSERT INTO registry_names SELECT name || '.example', uid, '' FROM groups WHERE parent_uid IS NULL ON CONFLICT DO NOTHING;
      INSERT INTO counters (scope, counter, slot, n) VALUES ('é', 1, 0, -9007199254740991);
      INSERT INTO data_migrations VALUES ('past', 'contracted', '', 0);
      INSERT INTO audit_checkpoints VALUES ('root', 1, 'hash', 2, 3, 'signature');
      INSERT INTO event_positions SELECT uid, uid, 5, 'suspended', 'caller', NULL, 2 FROM subscriptions WHERE true
        ON CONFLICT DO NOTHING;
      INSERT INTO event_deliveries SELECT subscription_uid, 6, 'é', 1, NULL, 9, 3, NULL, 503, '🌳' FROM event_positions`),
  );
}

/** What a test changes about a copy. */
export interface Interference {
  /** How many batches are written before the copy ends with an error. */
  readonly endAfter?: number;
  /** How many rows a batch has. */
  readonly batchRows?: number;
  /** Runs before the target is compared. */
  readonly beforeVerification?: (target: string) => void;
}

/** The result of a copy. */
export interface CopyOutcome {
  readonly tables: readonly ComparedTable[];
  readonly isResumed: boolean;
  /** How many rows were written, and whether those of an earlier run were deleted. */
  readonly written: number;
  readonly isRestarted: boolean;
}

/** The error of a copy that `endAfter` ended. */
export const ENDED = "the copy was ended";

/** Copies one data directory to another. */
export async function copyDirectory(
  from: string,
  to: string,
  { endAfter = Number.POSITIVE_INFINITY, batchRows = 7, beforeVerification = () => {} }: Interference = {},
): Promise<CopyOutcome> {
  const source = openSqliteSource({ directory: from, exclusive: true });
  const target = openSqliteTarget(to);
  let [left, written, isRestarted] = [endAfter, 0, false];
  try {
    const mark = createMark(await identifySource(source, MASTER_KEY_CHECK), source.name);
    const isResumed = await prepareTarget(target, mark);
    const inSmallBatches: CopySource = { ...source, rows: (table) => splitBatches(source.rows(table), batchRows) };
    const ending: CopyTarget = {
      ...target,
      async insert(table, rows) {
        if (left-- <= 0) throw new Error(ENDED);
        written += rows.length;
        await target.insert(table, rows);
      },
      vacuum: async () => beforeVerification(to),
    };
    const onRestart = () => {
      isRestarted = true;
    };
    const options = { isResumed, onProgress: () => {}, onRestart };
    const tables = await copyDatabase(inSmallBatches, ending, options, async () => {});
    return { tables, isResumed, written, isRestarted };
  } finally {
    await target.close();
    await source.close();
  }
}

async function* splitBatches(batches: AsyncIterable<readonly CopiedRow[]>, size: number) {
  for await (const batch of batches) {
    for (let i = 0; i < batch.length; i += size) yield batch.slice(i, i + size);
  }
}

/** Opens the database of a data directory, for statements that the service would not run. */
export function withDatabase<T>(directory: string, work: (db: SqliteDatabase) => T): T {
  const db = openDatabase(join(directory, "arbor.db"));
  try {
    return work(db);
  } finally {
    db.close();
  }
}

/** All rows of all tables as SQL literals, which no code of the copy reads or writes. JSON is left out. */
export function readLiterals(directory: string, isJson: (table: string, column: string) => boolean) {
  return withDatabase(directory, (db) => {
    const names = db
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%' ORDER BY name")
      .pluck()
      .all() as string[];
    const tables = names.filter((name) => !/^(sqlite_|advisory_texts|__drizzle)/.test(name));
    return Object.fromEntries(
      tables.map((table) => {
        const columns = db.prepare(`SELECT name FROM pragma_table_info('${table}')`).pluck().all() as string[];
        const quoted = columns.filter((column) => !isJson(table, column)).map((column) => `quote("${column}")`);
        return [
          table,
          db
            .prepare(`SELECT ${quoted.join(" || ' ' || ")} FROM ${table} ORDER BY 1`)
            .pluck()
            .all(),
        ];
      }),
    );
  });
}
