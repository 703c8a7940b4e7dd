// Writes a migration of the schema for both databases from a change of the tables (src/store/kinds.ts, src/store/tables):
//
//   npm run gen:migration -- NAME        writes src/store/migrations/*/NNNN_NAME.sql
//   npm run gen:migration -- --check     fails when the tables have changed and no migration has been written
//
// The generator compares the tables with a description of those of the last migration, drizzle/*.json. It writes what is
// usual for a table; what else the service needs, such as triggers, is added to the migration by hand.
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

const [argument = ""] = process.argv.slice(2);
const isCheck = argument === "--check";
if (!isCheck && !/^[a-z][a-z0-9_]*$/.test(argument)) {
  console.error("gen-migration: name the migration in small letters, such as group_notes, or use --check");
  process.exit(2);
}
let isStale = false;
for (const dialect of ["sqlite", "pg"]) generate(dialect);
process.exit(isStale ? 1 : 0);

function generate(dialect) {
  const migrations = join("src", "store", "migrations", dialect);
  const description = join("drizzle", `${dialect}.json`);
  const directory = mkdtempSync(join(tmpdir(), "arbor-migration-"));
  try {
    cpSync(migrations, directory, { recursive: true });
    const { entries } = readJson(join(directory, "meta", "_journal.json"));
    copyFileSync(description, snapshotOf(directory, entries.at(-1)));
    const output = runGenerator(dialect, directory);
    const added = readJson(join(directory, "meta", "_journal.json")).entries.at(-1);
    if (added.idx === entries.at(-1).idx) {
      // It ends with 0 after errors as well.
      if (!output.includes("No schema changes")) throw new Error(`drizzle-kit: ${output}`);
      console.log(`${dialect}: the migrations create the tables`);
      return;
    }
    if (isCheck) {
      isStale = true;
      console.error(`gen-migration: the tables of ${dialect} have no migration: npm run gen:migration -- NAME`);
      return;
    }
    const file = `${added.tag}.sql`;
    const sql = readFileSync(join(directory, file), "utf8");
    writeFileSync(join(migrations, file), dialect === "sqlite" ? makeStrict(sql) : sql);
    copyFileSync(join(directory, "meta", "_journal.json"), join(migrations, "meta", "_journal.json"));
    mkdirSync("drizzle", { recursive: true });
    writeSorted(readJson(snapshotOf(directory, added)), description);
    console.log(`${dialect}: wrote ${join(migrations, file)}`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function runGenerator(dialect, directory) {
  const env = { ...process.env, ARBOR_DIALECT: dialect, ARBOR_MIGRATIONS: relative(".", directory) };
  const args = ["node_modules/drizzle-kit/bin.cjs", "generate", "--name", isCheck ? "check" : argument];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", env });
  if (status !== 0) throw new Error(`drizzle-kit ended with ${status}: ${stdout}${stderr}`);
  return stdout + stderr;
}

// The generator knows no such tables. Those with a number that the database assigns need their row ids.
function makeStrict(sql) {
  return sql.replace(/CREATE TABLE `\w+` \([\s\S]*?\n\);/g, (table) =>
    /` integer PRIMARY KEY/.test(table)
      ? table.replace(/;$/, " STRICT;")
      : table.replace(/;$/, " STRICT, WITHOUT ROWID;"),
  );
}

function snapshotOf(directory, { idx }) {
  const name = `${String(idx).padStart(4, "0")}_snapshot.json`;
  return join(directory, "meta", name);
}

// The generator writes keys in an order that changes with the code: sorted, a diff shows what a migration changes.
function writeSorted(value, file) {
  const sort = (_, one) =>
    one === null || typeof one !== "object" || Array.isArray(one)
      ? one
      : Object.fromEntries(
          Object.keys(one)
            .sort()
            .map((key) => [key, one[key]]),
        );
  writeFileSync(file, `${JSON.stringify(value, sort, 2)}\n`);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, "utf8"));
}
