// Whether filters find advisories by their values, and whether the index of texts has their texts.
import { type SQL, sql } from "drizzle-orm";
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import { selectValues, valueFilters } from "../advisories/filters.js";
import { schema as pgSchema } from "../tables/schema-pg.js";
import { schema as sqliteSchema } from "../tables/schema-sqlite.js";
import { type CheckDatabase, TERMS } from "./database.js";
import { buildRepairable, type Check, type CheckContext } from "./findings.js";
import { reportRows } from "./references.js";

const { advisories, advisoryValues } = sqliteSchema;

/** The columns of uids that {@link advisoryValueCheck} compares. */
export const comparedColumns: readonly AnySQLiteColumn[] = [advisoryValues.rootUid];

const filterNames = new Map(Object.entries(valueFilters).map(([name, { number }]) => [number, name]));

function valuesOf(dialect: CheckDatabase["dialect"]) {
  return selectValues(dialect === "sqlite" ? sqliteSchema : pgSchema);
}

/** Compares the values by which filters find advisories with the advisories and their events. */
export const advisoryValueCheck: Check = {
  name: "advisory values",
  async run(context) {
    const report = (rule: string, faulty: SQL, describe: (filter: string) => string) =>
      reportRows(context, {
        rule,
        table: advisoryValues,
        columns: [],
        faulty,
        describe: ({ filter }) => ({
          problem: describe(filterNames.get(Number(filter)) ?? String(filter)),
          remedy: "arbor check --repair",
          repairable: true,
        }),
      });
    for (const { filter, query } of valuesOf(context.db.dialect)) {
      context.progress(filterNames.get(filter) ?? "");
      // `distinct` keeps the query together. PostgreSQL would otherwise look for a value by the number of its advisory alone,
      // through all values of the filter.
      const missing = sql`(select distinct root_uid, filter, value, number from (${query}) d) c where not exists (select 1 from ${advisoryValues} v
        where v.root_uid = c.root_uid and v.filter = ${filter} and v.value = c.value and v.number = c.number)`;
      await report(
        `missing ${filter}`,
        missing,
        (name) => `the filter ${name} does not find the advisory by this value`,
      );
      const extra = sql`${advisoryValues} c where c.filter = ${filter} and not exists (select 1 from (${query}) a
        where a.number = c.number and a.root_uid = c.root_uid and a.value = c.value)`;
      await report(`extra ${filter}`, extra, (name) => `no advisory has this value for the filter ${name}`);
    }
    const unknown = sql`${advisoryValues} c where c.filter not in ${[...filterNames.keys()]}`;
    await report("filter", unknown, (name) => `there is no filter ${name}`);
  },
};

/** The statements that derive the values again. */
export function rebuildAdvisoryValues(dialect: CheckDatabase["dialect"]): readonly SQL[] {
  const inserts = valuesOf(dialect).map(
    ({ query }) => sql`insert into ${advisoryValues} (root_uid, filter, value, number)
      select distinct root_uid, filter, value, number from (${query}) a`,
  );
  return [sql`delete from ${advisoryValues}`, ...inserts];
}

// SQLite alone has an index of texts of its own. PostgreSQL keeps its indexes true, and `integrity` checks them.

const PER_PAGE = 2_000;
// A sum over all trigrams: where the sums are equal, the index has the trigrams of the texts, and no others.
const MODULUS = 1_000_003;
const OFFSET_FACTOR = 7_919;

/** Compares the index of texts with the texts of the advisories. */
export const advisoryTextCheck: Check = {
  name: "advisory texts",
  async run(context) {
    if (context.db.dialect === "pg") return;
    const [expected, found] = [await sumTexts(context), await sumTerms(context)];
    if (expected === found) return;
    const problem = "the index of texts does not have the texts of the advisories";
    context.report("texts", buildRepairable("advisory_texts", "advisory_texts", problem));
  },
};

/** The statements that fill the index of texts again. */
export function rebuildAdvisoryTexts(dialect: CheckDatabase["dialect"]): readonly SQL[] {
  return dialect === "pg" ? [] : [sql`insert into advisory_texts (advisory_texts) values ('rebuild')`];
}

async function sumTerms({ db }: CheckContext): Promise<string> {
  const letter = (n: number) => sql.raw(`unicode(substr(term, ${n}, 1))`);
  const [row] = await db.all<{ n: number; sum: number | null }>(
    sql`select count(*) as n, sum((((${letter(1)} * 31 + ${letter(2)}) * 31 + ${letter(3)}) * (doc % ${MODULUS} + 1)
      + offset * ${OFFSET_FACTOR}) % ${MODULUS}) as sum from ${sql.raw(TERMS)}`,
  );
  return `${row?.n ?? 0} ${row?.sum ?? 0}`;
}

async function sumTexts({ db, progress }: CheckContext): Promise<string> {
  let n = 0;
  let sum = 0;
  for (let after = 0; ; ) {
    const page = await db.all<{ number: number; searched: string }>(
      sql`select number, searched from ${advisories} where number > ${after} order by number limit ${PER_PAGE}`,
    );
    for (const { number, searched } of page) {
      const letters = Array.from(searched, (character) => character.codePointAt(0) as number);
      for (let i = 0; i + 2 < letters.length; i++) {
        const [a = 0, b = 0, c = 0] = [letters[i], letters[i + 1], letters[i + 2]];
        n++;
        sum += (((a * 31 + b) * 31 + c) * ((number % MODULUS) + 1) + i * OFFSET_FACTOR) % MODULUS;
      }
    }
    const last = page.at(-1);
    if (last === undefined) return `${n} ${sum}`;
    after = last.number;
    progress(`${after}`);
  }
}
