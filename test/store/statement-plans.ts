// All statements of the store, for tests of the plans that the databases make for them.
import assert from "node:assert/strict";
import { is, Param, Placeholder } from "drizzle-orm";
import { parentOf, rootOf } from "../../src/kernel/uidp.js";
import { advisoryKind } from "../../src/store/advisories/advisories.js";
import { matchStatement } from "../../src/store/advisories/search-statements.js";
import { groupInviteKind } from "../../src/store/iam/group-invites.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { scimGroupKind } from "../../src/store/iam/scim-groups.js";
import { scimUserKind } from "../../src/store/iam/scim-users.js";
import { definedFamilies, definedStatements } from "../../src/store/statement.js";
import type { Store } from "../../src/store/store.js";
import { createRandom } from "../support/openapi/random.js";
import { rootUid } from "../support/rows.js";
import { chooseCase } from "./list-oracle.js";
import { fewAdvisories, kindNames, OracleWorld } from "./list-oracle-world.js";
import type { Dialect } from "./list-plans.js";

/** A statement as the database gets it. */
export interface PlannedStatement {
  readonly sql: string;
  readonly params: readonly StatementParam[];
}

/** A parameter: the name of its value, or the value where it is always the same. */
export type StatementParam = { readonly name: string } | { readonly value: unknown };

/** The organisation that most rows of the tests are in. */
export const ROOT = rootUid(1);

/** Runs statements of all families, of which one exists for each shape. */
export async function useFamilies(store: Store): Promise<void> {
  const random = createRandom(3);
  const world = new OracleWorld(store, random);
  await world.fill();
  for (const kind of kindNames) for (let i = 0; i < 20; i++) await world.change(kind);
  for (let i = 0; i < 400; i++) {
    const { kind, families, ...query } = chooseCase(world, random);
    await world.list(kind, { ...query, skip: 0 }, families);
  }
  await useSearches(store, world);
  // Whether the searches need it depends on the random advisories.
  const unfiltered = { others: 0, hasExcluded: false, hasText: false, among: "all" } as const;
  matchStatement({ read: "numbers", isDriven: true, hasDuplicates: true, ...unfiltered });
  await store.read(async (tx) => {
    await tx.access.findMappedGrants(ROOT, [ROOT]);
    await tx.accessQuestions.findBindingsAt(ROOT, [ROOT]);
    for (const by of [{ uid: ROOT }, { email: "a@example.com" }])
      for (const tops of [[ROOT], [ROOT, ROOT]]) await tx.accessQuestions.findJoined(by, tops, 1);
    await tx.table(advisoryKind).listEvents([ROOT]);
    for (const table of [tx.table(groupKind), tx.table(identityKind), tx.table(roleKind)])
      await table.findChildrenNamed(ROOT, "name", 1);
    for (const by of ["uid", "userNameKey", "updateTimeMs"] as const)
      for (const descending of [true, false]) await tx.table(scimUserKind).findPage(ROOT, { by, descending }, 0, 1);
    await tx.audit.readBodies([{ id: 1, bodyBytes: 1 }]);
    await tx.auditEvents.findByIds([1]);
    await tx.audit.readBodies([{ id: 1, bodyBytes: 1 }]);
    for (const column of [undefined, "subjectUid", "actorUid", "type"] as const)
      for (const descending of [true, false]) {
        const range = { startMs: 0, endMs: 1, descending, limit: 1, assertInTime() {}, matches: undefined };
        await tx.auditEvents.list({ rootUid: ROOT, by: column && { column, value: "" }, ...range, after: undefined });
      }
    for (const roots of [[ROOT], [ROOT, ROOT]])
      await tx.nameWords.find({ roots, kind: groupKind, prefix: "a", after: undefined, limit: 1 });
    for (const is of [true, false]) {
      await tx.table(groupInviteKind).findByExpiry(ROOT, 0, is ? "live" : "expired", 1);
      await tx.table(roleBindingKind).findByPending(ROOT, is, "", 1);
      await tx.table(roleBindingKind).countPending(ROOT, is);
      await tx.table(roleBindingKind).findEnded(0, 1, is ? ROOT : undefined);
      for (const by of ["uid", "displayNameKey", "updateTimeMs"] as const)
        await tx.table(scimGroupKind).findPage(ROOT, { by, descending: is }, 0, 1);
      await tx.scimWork.list(1, is ? ROOT : undefined);
    }
  });
}

// Advisories with one value, two, or all of a filter, and by any other conditions.
async function useSearches(store: Store, world: OracleWorld): Promise<void> {
  const rows = world.rows("advisories");
  const all = (column: string) => JSON.stringify([...new Set(rows.map((row) => String(row[column])))]);
  const driving = [{}, { artifactTypes: all("artifactType") }, { latestEventType: '["0"]' }];
  const others = [
    {},
    { componentNames: all("componentName") },
    { aliases: '["alias-1"]' },
    { excludeEventAuthors: '["nobody"]' },
    { query: "%a%" },
  ];
  const [root = ROOT] = rows.map(({ uid }) => rootOf(uid));
  const group = parentOf(rows.find(({ uid }) => rootOf(uid) === root)?.uid ?? "") ?? root;
  const usual = { skip: 0, limit: 1, order: { field: "created_at", descending: false } };
  for (const equals of driving.flatMap((a) => others.map((b) => ({ ...a, ...b }))))
    for (const filter of [{}, { childrenOf: group }, { descendantsOf: group }])
      for (const candidates of [0, 100])
        await store.read((tx) =>
          tx
            .table(advisoryKind)
            .list(
              { ...usual, visible: [root], filter: { ...filter, equals } },
              { lists: { step: 2, slice: 2 }, search: { ...fewAdvisories, candidates } },
            ),
        );
}

/**
 * Every statement that is defined. What ran before in this process has defined those of families, which differ in shape.
 */
export function listStatements({ sql, tables }: Dialect): PlannedStatement[] {
  const unused = definedFamilies.filter(({ known }) => known.size === 0);
  assert.deepEqual(
    unused.map(({ build }) => String(build)),
    [],
    "no statement of these families is known",
  );
  const found = new Map<string, PlannedStatement>();
  for (const { build } of definedStatements) {
    const query = build(sql, tables) as unknown as { toSQL(): { sql: string; params: unknown[] } };
    const { sql: text, params } = query.toSQL();
    found.set(text, { sql: text, params: params.map(toParam) });
  }
  return [...found.values()];
}

function toParam(param: unknown): StatementParam {
  const value = is(param, Param) ? param.value : param;
  return is(value, Placeholder) ? { name: value.name.replace(/^\$|\d+$/g, "") } : { value };
}

/** Statements that do on purpose what others must not, by their text, why they may, and on which database alone they do. */
export type Exceptions = readonly (readonly [pattern: RegExp, reason: string, only?: "SQLite" | "PostgreSQL"])[];

const few = "an installation has a few";

const EVENTS =
  "the node that delivers events looks at all subscriptions, at most once a second or when some are behind";

/** Statements that read a whole table, or a whole index. */
export const scans: Exceptions = [
  [/^select "kid", .* from "keys" order by/, few],
  [/^select "name", "holder", .* from "jobs" order by/, few],
  [/^select .* from "event_positions" .*where .*"event_positions"."state" <> 'suspended'/, EVENTS],
  [/^select "subscriptions"."uid" from "subscriptions" left join "event_positions"/, EVENTS],
  [/^select "state", "suspend_reason", count\(\*\) from "event_positions" group by/, EVENTS],
  [/^select .* from "registry_names"$/, `${few}; read for its cache`],
  [/^select "root_uid" from "audit\w*" group by/, "arbor audit verify reads all"],
  [
    /^select .* from "roles" where "roles"."group_uid" is null/,
    "an order of roles, of which organisations have hundreds",
    "PostgreSQL",
  ],
  [
    /^select "uid" from "identity_providers" where "identity_providers"."update_time_ms" </,
    "a job once a day, in slices",
  ],
  [/^select "(root_uid|id)", .* from "audit" order by "audit"."id" desc limit/, "the newest, from the end of the key"],
  [
    /^select "uid" from "identities" where "identities"."delete_time_ms" is not null/,
    "an index of those in deletion alone",
    "PostgreSQL",
  ],
];

/** Statements that sort rows. Tests of lists bound how many rows theirs sort. */
export const sorts: Exceptions = [
  [/"entry_uid"/, "lists"],
  [/^select "identities"."uid", .* order by "page"."uid"/, "a page of grants", "PostgreSQL"],
  [/ group by "tag_history"."digest"$/, "the digests of a repo, each once", "SQLite"],
  [/^select "hash", "family", .* from "refresh_tokens" where .* order by/, "the logins of one caller"],
  [/^select (count\()?distinct d\.number/, "the advisories of a slice that have several values, each once", "SQLite"],
  [/^select "kid", .* from "keys" order by/, few],
  [/^select "state", "suspend_reason", count\(\*\) from "event_positions" group by/, EVENTS, "SQLite"],
  [/^select members\.uid as "uid" from/, "the members of one organisation, each once, for a command on the host"],
];

/** Finds the statements that do something without an exception, and the exceptions that no statement needs. */
export function findUnexpected(
  database: "SQLite" | "PostgreSQL",
  doing: readonly string[],
  exceptions: Exceptions,
): string[] {
  const known = exceptions.filter(([, , only = database]) => only === database);
  return [
    ...doing.filter((sql) => !known.some(([pattern]) => pattern.test(sql))),
    ...known.filter(([pattern]) => !doing.some((sql) => pattern.test(sql))).map(([pattern]) => `unused: ${pattern}`),
  ];
}
