// Creates the tables of version 1.0 beside those of version 0.10 or 0.11, and fills them, within one transaction.
import type { SQL } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import { SQLiteSyncDialect } from "drizzle-orm/sqlite-core";
import { derivedIndexes } from "../../check/derived.js";
import { type CopiedTable, closingTables, copiedTables } from "../../copy/tables.js";
import { OLDEST_VERSION } from "../../version.js";
import type { MigrationTx } from "../data-migration.js";
import { dataMigrations } from "../data-migrations.js";
import type { MigrationProgress } from "../phases.js";
import { buildCreation } from "../state.js";
import { goneTables } from "./old-database.js";

/** A transaction that sees the tables of both versions. */
export interface ConversionTx extends MigrationTx {
  /** The schema that the tables of the old version are in. The new ones are where statements find them without a schema. */
  readonly oldSchema: string;
}

export interface Conversion {
  readonly tables: number;
  readonly rows: number;
}

/** How many rows one statement copies. */
const SLICE_ROWS = 10_000;

/** The tables whose rows are copied. The others have the progress of migrations, or are derived. */
const tables = [...copiedTables, ...closingTables].filter(
  ({ name }) => name !== "data_migrations" && !goneTables.includes(name),
);

/** Rows that are not copied, as conditions on those that are. */
const conditions: Readonly<Record<string, string>> = {
  settings: `name <> '${OLDEST_VERSION}'`,
  // The jobs of indexes that are gone.
  jobs: "name NOT IN ('list-ranks', 'advisory-index')",
};

/** The values of columns that are stored in another form, or that are new. All others keep their values. */
const expressions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  // An identity that was being deleted was marked by a provider of this name.
  identities: {
    provider_uid: "nullif(provider_uid, 'deleted')",
    delete_time_ms: "CASE WHEN provider_uid = 'deleted' THEN update_time_ms END",
  },
};

/** The value of the column that all listed tables have now: the first segment of the uid. */
const ROOT_UID = "substr(uid, 1, 40)";

/** Counts the rows that a conversion copies. */
export async function countOldRows(tx: ConversionTx): Promise<ReadonlyMap<CopiedTable, number>> {
  const counts = new Map<CopiedTable, number>();
  for (const table of tables) {
    if ((await listOldColumns(tx, table)).size === 0) continue;
    const [row] = await tx.query(`SELECT count(*) AS n FROM ${tx.oldSchema}.${table.name}${formatWhere(table)}`);
    counts.set(table, Number(row?.n));
  }
  return counts;
}

/**
 * Creates the schema of this version and copies all rows into it. What is derived from rows is computed by the statements
 * with which `arbor check --repair` does it.
 *
 * @throws Error when a table has another number of rows afterwards
 */
export async function convertRows(
  tx: ConversionTx,
  onProgress: (progress: MigrationProgress) => void,
): Promise<Conversion> {
  const counts = await countOldRows(tx);
  const total = [...counts.values()].reduce((sum, n) => sum + n, 0);
  // Rows are copied before there are indexes, constraints and triggers: that is several times as fast. A column that
  // foreign keys name, and that is not the primary key, has its index on SQLite before.
  const creation = buildCreation(tx.dialect, dataMigrations);
  const isTable = (statement: string) => /^CREATE (TABLE|UNIQUE INDEX `\w+_unique`)/.test(statement);
  for (const statement of creation.filter(isTable)) await tx.run(statement);

  let done = 0;
  onProgress({ name: "rows", done, total });
  for (const table of counts.keys()) {
    for await (const copied of copyTable(tx, table)) {
      done += copied;
      onProgress({ name: "rows", done, total });
    }
  }
  for (const [table, expected] of counts) await assertCopied(tx, table, expected);
  await continueNumbers(tx);

  const rest = [
    ...creation.filter((statement) => !isTable(statement)),
    ...derivedIndexes.flatMap(({ rebuild }) => rebuild(tx.dialect)),
  ];
  for (const [i, statement] of rest.entries()) {
    onProgress({ name: "indexes", done: i, total: rest.length, unit: "statements" });
    await (typeof statement === "string" ? tx.run(statement) : runQuery(tx, statement));
  }
  onProgress({ name: "indexes", done: rest.length, total: rest.length, unit: "statements" });
  return { tables: counts.size, rows: total };
}

// Copies a table in the order of its key, and yields how many rows each statement copied.
async function* copyTable(tx: ConversionTx, table: CopiedTable): AsyncGenerator<number> {
  const { name, key, columns } = table;
  const old = await listOldColumns(tx, table);
  const selected = columns.flatMap((column): [string, string][] => {
    const expression = expressions[name]?.[column.name] ?? (old.has(column.name) ? `"${column.name}"` : undefined);
    if (expression === undefined && column.name === "root_uid") return [["root_uid", ROOT_UID]];
    // A new column with a default value.
    return expression === undefined ? [] : [[`"${column.name}"`, expression]];
  });
  // A number that is new is assigned in the order of uids.
  const keys = key.every((column) => old.has(column.name)) ? key.map((column) => `"${column.name}"`) : ["uid"];
  const order = keys.join(", ");
  const into = `INSERT INTO ${name} (${selected.map(([column]) => column).join(", ")})`;
  const select = `SELECT ${selected.map(([, expression]) => expression).join(", ")} FROM ${tx.oldSchema}.${name}`;
  let after: readonly unknown[] = [];
  for (;;) {
    const parameters = keys.map((_, i) => (tx.dialect === "pg" ? `$${i + 1}` : "?"));
    const where = formatWhere(table, after.length > 0 ? `(${order}) > (${parameters.join(", ")})` : undefined);
    const copied = await tx.run(`${into} ${select}${where} ORDER BY ${order} LIMIT ${SLICE_ROWS}`, after);
    yield copied;
    if (copied < SLICE_ROWS) return;
    const last = await tx.query(
      `SELECT ${order} FROM ${name} ORDER BY ${keys.map((one) => `${one} DESC`).join(", ")} LIMIT 1`,
    );
    after = Object.values(last[0] ?? {});
  }
}

function formatWhere({ name }: CopiedTable, condition?: string): string {
  const all = [conditions[name], condition].filter((one) => one !== undefined);
  return all.length > 0 ? ` WHERE ${all.join(" AND ")}` : "";
}

async function listOldColumns({ dialect, oldSchema, query }: ConversionTx, { name }: CopiedTable) {
  const rows = await query(
    dialect === "sqlite"
      ? `SELECT name FROM pragma_table_info('${name}', '${oldSchema}')`
      : `SELECT column_name AS name FROM information_schema.columns
         WHERE table_schema = '${oldSchema}' AND table_name = '${name}'`,
  );
  return new Set(rows.map((row) => String(row.name)));
}

async function assertCopied(tx: ConversionTx, { name }: CopiedTable, expected: number): Promise<void> {
  const [row] = await tx.query(`SELECT count(*) AS n FROM ${name}`);
  const found = Number(row?.n);
  if (found !== expected) throw new Error(`${name} has ${found} rows after it was copied, and ${expected} before`);
}

// A number of the audit log is never assigned twice, also not that of a row that was deleted.
async function continueNumbers(tx: ConversionTx): Promise<void> {
  const statements =
    tx.dialect === "sqlite"
      ? [
          "DELETE FROM main.sqlite_sequence WHERE name = 'audit'",
          `INSERT INTO main.sqlite_sequence (name, seq) SELECT name, seq FROM ${tx.oldSchema}.sqlite_sequence WHERE name = 'audit'`,
        ]
      : [
          `SELECT setval(pg_get_serial_sequence('audit', 'id'), last_value, is_called) FROM ${tx.oldSchema}.audit_id_seq`,
        ];
  for (const statement of statements) await tx.run(statement);
}

async function runQuery(tx: ConversionTx, statement: SQL): Promise<void> {
  const dialect = tx.dialect === "sqlite" ? new SQLiteSyncDialect() : new PgDialect();
  const { sql, params } = dialect.sqlToQuery(statement);
  await tx.run(sql, params);
}
