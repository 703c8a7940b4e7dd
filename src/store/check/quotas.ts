// Organisations, people and identities that have more than their quota. That is no fault: a limit may be lowered below what exists.
// The counters that quotas are counted by are compared with the rows by the check of counters.
import { sql } from "drizzle-orm";
import { limitsFor, organisationQuotas, type QuotaLimits } from "../../kernel/quotas.js";
import { countedKinds } from "../kinds.js";
import { counterOf, familiesOf } from "../lists/resource.js";
import { schema } from "../tables/schema-sqlite.js";
import type { Check, CheckContext } from "./findings.js";

const ROOTS_PER_PAGE = 500;
/** How many owners are named for each quota. */
const MAX_NAMED = 10;

const { counters, groups, identities, roleBindings } = schema;

type OwnLimits = Readonly<Record<string, number>>;

/** Creates the check. `limits` are those of the settings. */
export function createQuotaCheck(limits: QuotaLimits): Check {
  return {
    name: "quotas",
    async run(context) {
      const over = new Map<string, string[]>();
      const add = (quota: string, text: string) => over.set(quota, [...(over.get(quota) ?? []), text]);
      await findPeople(context, limits.roots, add);
      await findIdentities(context, limits.identityBindings, add);
      let after = "";
      for (;;) {
        const roots = await readRoots(context, after);
        const last = roots.at(-1);
        if (last === undefined) break;
        const usage = await readUsage(context, after, last.uid);
        for (const { uid, own } of roots) {
          const effective = limitsFor(own, limits);
          for (const quota of organisationQuotas) {
            const used = usage.get(`${quota} ${uid}`) ?? 0;
            if (used > effective[quota]) add(quota, `${uid} has ${used}, and its limit is ${effective[quota]}`);
          }
        }
        after = last.uid;
        context.progress(after);
      }
      for (const [quota, texts] of over) {
        const rest = texts.length > MAX_NAMED ? `; and ${texts.length - MAX_NAMED} more` : "";
        context.note(`above the quota of ${quota}: ${texts.slice(0, MAX_NAMED).join("; ")}${rest}`);
      }
    },
  };
}

async function findPeople({ db }: CheckContext, limit: number, add: (quota: string, text: string) => void) {
  const rows = await db.all<{
    uid: string;
    n: number | string;
  }>(sql`select created_by as uid, count(*) as n from ${groups}
    where created_by <> '' group by created_by having count(*) > ${limit}`);
  for (const { uid, n } of rows) add("roots", `${uid} has ${n}, and the limit is ${limit}`);
}

async function findIdentities({ db }: CheckContext, limit: number, add: (quota: string, text: string) => void) {
  const rows = await db.all<{ uid: string; n: number | string }>(sql`
    select identity_uid as uid, count(*) as n from ${roleBindings}
    group by identity_uid, substr(group_uid, 1, 40) having count(*) > ${limit}`);
  for (const { uid, n } of rows) add("identityBindings", `${uid} has ${n}, and the limit is ${limit}`);
}

async function readRoots({ db }: CheckContext, after: string): Promise<{ uid: string; own: OwnLimits }[]> {
  // Roots are the groups whose uid has no slash; those between them are passed over in the index.
  const rows = await db.all<{
    uid: string;
    own: string | OwnLimits;
  }>(sql`select uid, resource_limits as own from ${groups}
    where parent_uid is null and uid > ${after} order by uid limit ${ROOTS_PER_PAGE}`);
  return rows.map(({ uid, own }) => ({ uid, own: typeof own === "string" ? (JSON.parse(own) as OwnLimits) : own }));
}

// By quota and root group. People who came through a provider of the organisation count as its identities.
async function readUsage({ db }: CheckContext, after: string, to: string): Promise<Map<string, number>> {
  const quotaOf = new Map(
    [...countedKinds].flatMap(([quota, kind]) =>
      familiesOf(kind).map((family) => [counterOf(kind, "below", family), quota] as const),
    ),
  );
  const usage = new Map<string, number>();
  const add = (quota: string | undefined, uid: string, n: number | string) => {
    const key = `${quota} ${uid}`;
    usage.set(key, (usage.get(key) ?? 0) + Number(n));
  };
  const rows = await db.all<{ counter: number; uid: string; n: number | string }>(sql`
    select counter, scope as uid, sum(n) as n from ${counters}
    where scope > ${after} and scope <= ${to} and length(scope) = 40
    and counter in (${sql.join([...quotaOf.keys()], sql`, `)}) group by counter, scope`);
  for (const { counter, uid, n } of rows) add(quotaOf.get(Number(counter)), uid, n);
  const people = await db.all<{ uid: string; n: number | string }>(sql`
    select substr(provider_uid, 1, 40) as uid, count(*) as n from ${identities}
    where provider_uid > ${after} and provider_uid < ${`${to}0`} group by substr(provider_uid, 1, 40)`);
  for (const { uid, n } of people) add("identities", uid, n);
  return usage;
}
