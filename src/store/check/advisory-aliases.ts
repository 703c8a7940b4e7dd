// Whether the table of aliases has those of each advisory and no others.
import { sql } from "drizzle-orm";
import * as schema from "../schema-sqlite.js";
import { buildRepairable, type Check, type CheckContext } from "./findings.js";

const PER_PAGE = 500;
const { advisories, advisoryAliases } = schema;

/** Compares the aliases that advisories are found by with the advisories. */
export const advisoryAliasCheck: Check = {
  name: "advisory aliases",
  async run(context) {
    let after = "";
    for (;;) {
      const page = await readAdvisories(context, after);
      const last = page.at(-1);
      if (last === undefined) return;
      const stored = await readAliases(context, after, last.uid);
      for (const { uid, aliases } of page) compareAliases(context, uid, new Set(aliases), stored.get(uid) ?? new Set());
      after = last.uid;
      context.progress(after);
    }
  },
};

async function readAdvisories({ db }: CheckContext, after: string): Promise<{ uid: string; aliases: string[] }[]> {
  const rows = await db.all<{ uid: string; aliases: string | string[] }>(
    sql`select uid, aliases from ${advisories} where uid > ${after} order by uid limit ${PER_PAGE}`,
  );
  return rows.map(({ uid, aliases }) => ({
    uid,
    aliases: typeof aliases === "string" ? (JSON.parse(aliases) as string[]) : aliases,
  }));
}

async function readAliases({ db }: CheckContext, after: string, to: string): Promise<Map<string, Set<string>>> {
  const byAdvisory = new Map<string, Set<string>>();
  const rows = await db.all<{
    alias: string;
    uid: string;
  }>(sql`select alias, advisory_uid as uid from ${advisoryAliases}
    where advisory_uid > ${after} and advisory_uid <= ${to}`);
  for (const { alias, uid } of rows) byAdvisory.set(uid, (byAdvisory.get(uid) ?? new Set()).add(alias));
  return byAdvisory;
}

function compareAliases(
  { report }: CheckContext,
  uid: string,
  expected: ReadonlySet<string>,
  stored: ReadonlySet<string>,
): void {
  const add = (alias: string, problem: string) =>
    report("alias", buildRepairable("advisory_aliases", `alias=${alias}, advisory_uid=${uid}`, problem));
  for (const alias of expected) if (!stored.has(alias)) add(alias, "the alias of the advisory is missing");
  for (const alias of stored) if (!expected.has(alias)) add(alias, "the advisory does not have this alias");
}
