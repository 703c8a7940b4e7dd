// What Arbor needs of SQL is the list in docs/scaling.md, no more and no less: every statement that it prepares, everything
// else that a node sends, and every migration.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import { dataMigrations } from "../../src/store/migrate/data-migrations.js";
import { buildCreation } from "../../src/store/migrate/state.js";
import { createDirectAccess } from "../../src/store/pg/access.js";
import { openPg } from "../../src/store/pg/open.js";
import type { Sql } from "../../src/store/statement.js";
import type { Store } from "../../src/store/store.js";
import { schema } from "../../src/store/tables/schema-pg.js";
import { listStatements, useFamilies } from "../store/statement-plans.js";
import { PROJECT } from "../support/project.js";
import { emptyDatabase } from "./databases.js";
import { findFeatures } from "./sql-features.js";

const PAGE = "docs/scaling.md";
const page = readFileSync(join(PROJECT, PAGE), "utf8");

/** The parts of the list, by their headings, and the texts of SQL of each. */
type Texts = Readonly<Record<"Statements" | "Transactions" | "Start" | "Tables", readonly string[]>>;

/** What no part may have, even if the list had it. */
const FORBIDDEN = /^((CREATE|DROP) TRIGGER|LISTEN|NOTIFY|pg_notify\(\)|CREATE SEQUENCE|(nextval|currval|setval)\(\))$/;
/** What only the start may have: nodes that change tables at the same time wait for each other. */
const LOCKS = /advisory/;
/** Rows with a number of their own. No other table may have one. */
const SEQUENCES = ["sequence advisories.number", "sequence audit.id", "sequence drizzle.__drizzle_migrations.id"];

/** Registers the tests, which know the statements that ran before them in this process. */
export function neededSqlSuite(): void {
  describe("what Arbor needs of SQL", () => {
    let all: Texts = { Statements: [], Transactions: [], Start: [], Tables: [] };
    const findFaultsWith = (more: Partial<Texts>, list = page) => {
      const entries = Object.entries(all).map(([part, own]) => [part, [...own, ...(more[part as keyof Texts] ?? [])]]);
      return findFaults(Object.fromEntries(entries) as Texts, list);
    };

    test("is what the list says: of every statement, transaction, start and migration", async (t) => {
      all = await collectTexts(t);
      const { Statements, Transactions, Start, Tables } = all;
      assert.ok(Statements.length > 500 && Tables.length > 100, `${Statements.length} ${Tables.length}`);
      assert.ok(Transactions.length > 5 && Start.length > 5, `${Transactions.length} ${Start.length}`);
      assert.deepEqual(await findFaultsWith({}), []);
    });

    const planted: readonly (readonly [part: keyof Texts, sql: string, fault: string])[] = [
      ["Statements", "select pg_advisory_xact_lock(1)", "forbidden: pg_advisory_xact_lock()"],
      ["Statements", `select "id" from "audit" for update skip locked`, "not listed: row locks"],
      ["Statements", "select nextval('audit_id_seq')", "forbidden: nextval()"],
      ["Statements", "select pg_notify('audit', '1')", "forbidden: pg_notify()"],
      [
        "Statements",
        "insert into a (b) values (1) on conflict on constraint a_b do nothing",
        "not listed: InferClause.conname",
      ],
      ["Transactions", "LISTEN audit", "forbidden: LISTEN"],
      ["Transactions", "SELECT pg_try_advisory_lock(1)", "forbidden: pg_try_advisory_lock()"],
      ["Transactions", "BEGIN ISOLATION LEVEL READ COMMITTED", "not listed: ISOLATION LEVEL READ COMMITTED"],
      ["Start", "SET enable_hashagg = off", "not listed: setting enable_hashagg"],
      ["Tables", "CREATE TRIGGER t AFTER INSERT ON audit EXECUTE FUNCTION f()", "forbidden: CREATE TRIGGER"],
      ["Tables", block("CREATE TRIGGER t AFTER INSERT ON audit EXECUTE FUNCTION f();"), "forbidden: CREATE TRIGGER"],
      ["Tables", block("EXECUTE format('CREATE SEQUENCE %I', 'a');"), "forbidden: CREATE SEQUENCE"],
      ["Tables", block("PERFORM nextval('a');"), "forbidden: nextval()"],
      ["Tables", "ALTER TABLE groups ADD COLUMN number bigserial", "forbidden: sequence groups.number"],
      ["Tables", "CREATE TABLE a (n int8 GENERATED ALWAYS AS IDENTITY)", "forbidden: sequence a.n"],
      ["Tables", `CREATE TABLE a (n text COLLATE "de-x-icu")`, `not listed: COLLATE "de-x-icu"`],
    ];
    for (const [part, sql, fault] of planted)
      test(`finds in ${part} ${sql}: the control`, async () => {
        const faults = await findFaultsWith({ [part]: [sql] });
        assert.ok(faults.includes(`${part}: ${fault}`), faults.join("\n"));
      });

    test("finds a word of the list that nothing uses, and a part without a list: the controls", async () => {
      const more = page.replace(/^(### Statements\n)/m, "$1\n- Locks: `row locks`\n");
      assert.deepEqual(await findFaultsWith({}, more), ["Statements: not used: row locks"]);
      const fewer = page.replace("### Start\n", "### Another\n");
      await assert.rejects(findFaultsWith({}, fewer), /no list of Start/);
    });

    test("nothing else in the sources takes advisory locks, listens, or has triggers or sequences", () => {
      const sources = readdirSync(join(PROJECT, "src"), { recursive: true, encoding: "utf8" })
        .filter((path) => path.endsWith(".ts"))
        .map((path) => [path, readFileSync(join(PROJECT, "src", path), "utf8")] as const);
      assert.deepEqual(findInSources(sources), []);
      const control = findInSources([
        ...sources,
        ["a.ts", 'client.query("LISTEN changes")'],
        ["b.ts", "`SELECT nextval('a')`"],
      ]);
      assert.deepEqual(control, ["a.ts: LISTEN changes", "b.ts: nextval("]);
    });
  });
}

const block = (statement: string) => `DO $$ BEGIN ${statement} END $$`;

/** Compares what texts need with the list, in both directions. */
async function findFaults(texts: Texts, list: string): Promise<string[]> {
  const faults: string[] = [];
  for (const [part, own] of Object.entries(texts)) {
    const listed = readList(list, part);
    const used = new Set<string>();
    for (const text of own) for (const word of await findOnce(text)) used.add(word);
    const isForbidden = (word: string) =>
      FORBIDDEN.test(word) ||
      (LOCKS.test(word) && part !== "Start") ||
      (word.startsWith("sequence ") && !SEQUENCES.includes(word));
    for (const word of used)
      if (isForbidden(word)) faults.push(`${part}: forbidden: ${word}`);
      else if (!listed.has(word)) faults.push(`${part}: not listed: ${word}`);
    for (const word of listed) if (!used.has(word)) faults.push(`${part}: not used: ${word}`);
  }
  return faults;
}

const known = new Map<string, Promise<Set<string>>>();
function findOnce(text: string): Promise<Set<string>> {
  const found = known.get(text) ?? findFeatures(text);
  known.set(text, found);
  return found;
}

/** The words in the items of a part of the list. */
function readList(list: string, part: string): Set<string> {
  const [, section] = new RegExp(`^### ${part}\\n([\\s\\S]*?)^##`, "m").exec(list) ?? [];
  if (section === undefined) throw new Error(`${PAGE} has no list of ${part}`);
  const items = section.match(/^- (?:.|\n(?= {2}))*/gm) ?? [];
  return new Set(items.flatMap((item) => [...item.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word)));
}

/** What a node sends: all that it prepares, what it sends around that, at its start, and to create tables. */
async function collectTexts(t: TestContext): Promise<Texts> {
  const urls = [await emptyDatabase(), await emptyDatabase()] as const;
  const sent: string[] = [];
  const query = t.mock.method(pg.Client.prototype, "query");
  const take = () => {
    for (const {
      arguments: [config],
    } of query.mock.calls)
      sent.push(typeof config === "string" ? config : (config as unknown as pg.QueryConfig).text);
    query.mock.resetCalls();
    return new Set(sent.splice(0));
  };
  // The first creates the tables, and the second finds them.
  const direct = await openPg({ url: urls[0] });
  await (await openPg({ url: urls[0] })).close();
  const pooled = await openPg({ url: urls[1], directUrl: urls[1] });
  const started = take();
  for (const store of [direct, pooled]) await useTransactions(store);
  const called = take();
  // Those of families are known once they have run.
  await useFamilies(direct);
  await Promise.all([direct.close(), pooled.close()]);
  query.mock.restore();

  const statements = listStatements({ sql: drizzle(new pg.Client()) as unknown as Sql, tables: schema });
  const prepared = new Set(statements.map(({ sql }) => sql));
  const tables = new Set(buildCreation("pg", dataMigrations));
  const isOther = (text: string) => !prepared.has(text) && !tables.has(text);
  const unsent = [...tables].filter((text) => !started.has(text));
  assert.deepEqual(unsent, [], "the tables were created with other statements");
  // Limits that are sent as a connection begins.
  const { connection } = createDirectAccess({ statementMs: 1, idleMs: 1 });
  const limits = Object.keys(connection).filter((name) => name !== "verify");
  return {
    Statements: [...prepared],
    Transactions: [...called].filter(isOther),
    Start: [...[...started].filter(isOther), ...limits.map((name) => `SET ${name} = 1`)],
    Tables: [...tables],
  };
}

/** Transactions of every kind and with every end. */
async function useTransactions(store: Store): Promise<void> {
  const fail = async () => {
    throw new Error("failed");
  };
  for (const options of [{}, { maxIdleMs: 1_000 }]) {
    await store.read((tx) => tx.jobs.nowMs(), options);
    await store.write((tx) => tx.settings.put("a", "1"), options);
    await assert.rejects(store.read(fail, options), /failed/);
    await assert.rejects(store.write(fail, options), /failed/);
  }
  // Over connections that are opened for them.
  await Promise.all(Array.from({ length: 4 }, () => store.read((tx) => tx.settings.find("a"))));
  await store.check();
}

const BEFORE_CALLS = "at the start, before a node serves";
const ON_THE_HOST = "a command on the host";
/** Where the sources have such texts, and why they may. */
const allowed: readonly (readonly [path: string, found: RegExp, reason: string])[] = [
  ["store/pg/open.ts", /advisory/, BEFORE_CALLS],
  ["store/migrate/open-pg-migration.ts", /advisory/, ON_THE_HOST],
  ["store/copy/pg.ts", /advisory|setval/, ON_THE_HOST],
  ["store/migrate/tag-families.ts", /TRIGGER/, `${ON_THE_HOST}, which drops them in its second phase`],
  ["store/migrate/name-words.ts", /TRIGGER/, `${ON_THE_HOST}, which drops them in its second phase`],
];

function findInSources(sources: readonly (readonly [path: string, text: string])[]): string[] {
  const patterns = [
    /pg_(?:try_)?advisory\w+/gi,
    /\b(?:create|drop) (?:or replace )?(?:constraint )?trigger\b/gi,
    /(?<=["'`;]\s*)(?:un)?(?:listen|notify) "?\w+/gi,
    /pg_notify/gi,
    /\b(?:nextval|currval|setval)\(|\bcreate sequence\b/gi,
  ];
  const found = sources.flatMap(([path, text]) =>
    patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([match]) => [path, match] as const)),
  );
  const isAllowed = (path: string, match: string) =>
    allowed.some(([where, what]) => where === path && what.test(match));
  return [
    ...found.filter(([path, match]) => !isAllowed(path, match)).map(([path, match]) => `${path}: ${match}`),
    ...allowed
      .filter(([where, what]) => !found.some(([path, match]) => where === path && what.test(match)))
      .map(([where]) => `${where}: nothing`),
  ];
}
