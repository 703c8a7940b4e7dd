// A kind of resource is declared once. A planted kind is found by everything that concerns all kinds, and every kind of
// the contract has its definition.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { create, type DescMessage, type DescMethodUnary, type DescService } from "@bufbuild/protobuf";
import { is } from "drizzle-orm";
import { type AnySQLiteColumn, getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import { definitions } from "../../src/app/definitions.js";
import { createPlatformServices, createResourceDeps, createStableServices } from "../../src/app/services.js";
import { unavailableServices } from "../../src/app/unavailable-services.js";
import { kinds as commandKinds } from "../../src/cli/remote/kinds.js";
import { isOutputOnly } from "../../src/codec/field-behavior.js";
import { groups } from "../../src/iam/groups/group.js";
import { randomIds } from "../../src/kernel/ids.js";
import { createPageTokens } from "../../src/kernel/page-token.js";
import { defaultLimits, organisationQuotas, quotas } from "../../src/kernel/quotas.js";
import type { Caller } from "../../src/pipeline/auth/caller.js";
import { createMethodTable, type ServedService } from "../../src/pipeline/method-table.js";
import { defineResource } from "../../src/pipeline/resource/define.js";
import { cascadeDelete, countRows, deleteRows, guardDelete } from "../../src/pipeline/resource/delete.js";
import { type FixedField, type FixedFields, resolveFixed } from "../../src/pipeline/resource/fixed-fields.js";
import { buildRoomChecks, createQuotas, createsInScope } from "../../src/pipeline/resource/quota.js";
import { getRow } from "../../src/pipeline/resource/read.js";
import { comparedColumns } from "../../src/store/check/advisory-values.js";
import { rootColumns } from "../../src/store/check/counters.js";
import { primaryKeyOf, readSqlite, tables } from "../../src/store/check/database.js";
import { runCheck } from "../../src/store/check/findings.js";
import { comparedNameColumns } from "../../src/store/check/name-words.js";
import { createUidCheck, findReferences, findUndeclared, outliving } from "../../src/store/check/references.js";
import { describeTables } from "../../src/store/copy/tables.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { type SubscriptionRow, subscriptionKind } from "../../src/store/iam/subscriptions.js";
import { declareKind, defineKind, usualSorts } from "../../src/store/kind.js";
import { countedKinds, kinds } from "../../src/store/kinds.js";
import { countBelow } from "../../src/store/lists/counters.js";
import { ListedTable } from "../../src/store/lists/listed-table.js";
import type { ListedKind, ListedName } from "../../src/store/lists/resource.js";
import { createQueries } from "../../src/store/sqlite/connection.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { prepareNative } from "../../src/store/sqlite/native-statement.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { columnOf, type Sql, type Statement, type Take } from "../../src/store/statement.js";
import type { Store } from "../../src/store/store.js";
import * as columns from "../../src/store/tables/columns-sqlite.js";
import { defineTables } from "../../src/store/tables/schema.js";
import { Transaction } from "../../src/store/transaction.js";
import { buildBindings } from "../../src/transport/http/http-binding.js";
import { createRouteTable } from "../../src/transport/rest/route-table.js";
import { declareService, onlyMethod } from "../pipeline/declare.js";
import { childUid, groupRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";

/** What a definition says of the fields of its message. */
interface Declared {
  readonly message: DescMessage;
  readonly mutable: object;
  readonly fixed?: FixedFields;
}

const root = rootUid(1);
const probe: SubscriptionRow = {
  uid: childUid(root, 1),
  groupUid: root,
  sink: "https://probe.example",
  createTimeMs: 1_000,
  updateTimeMs: 1_000,
};

// A kind that only this test has: its own messages and services, on the table of another kind.
function declareProbes(name: string): DescService {
  const iam = { mode: { case: "enabled" as const, value: { capabilities: [] } } };
  const fields = { parent: { scope: true }, probe: { type: "message Probe" } } as const;
  return declareService({ name, messages: { Probe: { uid: {} } }, methods: { CreateProbe: { iam, fields } } });
}
const beta = declareProbes("chainguard.platform.probes.v2beta1.ProbesService");
const stable = declareProbes("chainguard.platform.probes.v2.ProbesService");
const createProbe = onlyMethod(beta) as DescMethodUnary;
const message = createProbe.input.field.probe?.message;
assert.ok(message);

const probes = defineResource({
  displayName: "probe",
  plural: "probes",
  type: "test.arbor.dev/Probe",
  message,
  kind: subscriptionKind,
  parent: {
    type: groups.type,
    onDelete: {
      restrict: (tx, uid) => countRows(tx.table(subscriptionKind), "groupUid", uid),
      cascade: (tx, uid) => deleteRows(tx.table(subscriptionKind), "groupUid", uid),
    },
  },
  createdBy: [createsInScope(createProbe)],
  stable,
  mutable: {},
});
const planted = [...definitions, probes];

// How it would be stored in a table of its own. The schema that the service opens databases with does not have it.
const probeKey = "probes" as ListedName;
const probeKind = defineKind(
  declareKind({
    number: 99,
    key: probeKey,
    name: "probes",
    columns: (c, t) => ({
      uid: c.str("uid").primaryKey(),
      groupUid: c
        .str("group_uid")
        .notNull()
        .references(() => t.groups.uid),
      rootUid: c.str("root_uid").notNull(),
      repoUid: c.str("repo_uid"),
      tagUid: c.str("tag_uid"),
      name: c.str("name").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    }),
    indexes: (c, t) => [c.index("probes_repo").on(t.repoUid)],
    parent: "groupUid",
    sorts: usualSorts,
    references: { repoUid: { to: "repos" } },
  }),
);
const plantedSchema = defineTables(columns, [...kinds, probeKind]);
const probeTable = plantedSchema[probeKey];

/** A transaction on a database of the planted schema. */
function openPlanted(t: TestContext): Transaction {
  const db = openDatabase(":memory:");
  t.after(() => void db.close());
  for (const table of [probeTable, plantedSchema.counters]) {
    const { name, columns, indexes } = getTableConfig(table);
    const types = columns.map((column) => `${column.name} ${column.getSQLType()}`);
    const key = primaryKeyOf(table).map((column) => column.name);
    db.exec(`CREATE TABLE ${name} (${types}, PRIMARY KEY (${key}))`);
    for (const { config } of indexes) {
      db.exec(`CREATE INDEX ${config.name} ON ${name} (${config.columns.map((one) => "name" in one && one.name)})`);
    }
  }
  return new Transaction({
    counterSlots: 1,
    changedRows: 0,
    nowMs: async () => 0,
    clockMs: () => 0,
    async rows<Params extends object, Row, T>(one: Statement<Params, Row>, params: Params, take?: Take<Row, T>) {
      const query = one.build(createQueries(db) as unknown as Sql, plantedSchema);
      const rows = prepareNative(db, query, () => {})(params) as Row[];
      return take === undefined ? (rows as T) : take(rows);
    },
  });
}

// Columns whose name says that they name a row, and which no check reads.
function findUnchecked(of: typeof tables, more: readonly AnySQLiteColumn[] = []): string[] {
  const read = [
    ...findReferences(of).map(({ from }) => from),
    ...outliving,
    ...rootColumns,
    ...comparedColumns,
    ...comparedNameColumns,
  ];
  const known = [...read, ...more];
  return of.flatMap((table) => {
    const { name, columns } = getTableConfig(table);
    const unknown = columns.filter((column) => column.name.endsWith("_uid") && !known.includes(column));
    return unknown.map((column) => `${name}.${column.name}`);
  });
}

/** The kind that only directories list. */
const withoutCommands = "SCIM group";

/** What the table of the command line says otherwise than the definitions of stored kinds. */
async function compareCommands(of: typeof definitions): Promise<string[]> {
  const found: string[] = [];
  for (const { displayName, plural, kind, parent, stable } of of) {
    if (kind === undefined || displayName === withoutCommands) continue;
    const row = commandKinds.find((one) => one.kind === displayName);
    if (row === undefined) {
      found.push(`${plural}: no commands`);
      continue;
    }
    const { typeName } = await row.load();
    if (typeName.replace(".v2beta1.", ".v2.") !== stable?.typeName || !typeName.endsWith(`.${row.service}`))
      found.push(`${plural}: the service ${typeName}`);
    const parents = of.filter(({ type }) => type === parent?.type).map((one) => one.displayName);
    if (parents.join() !== row.parents.join()) found.push(`${plural}: the parents ${row.parents.join()}`);
    if ((row.isNamed ?? false) !== "name" in kind.sorts) found.push(`${plural}: whether they have names`);
  }
  return found;
}

async function openStore(t: TestContext, directory = tempDir()): Promise<Store> {
  const store = openSqlite({ directory });
  t.after(() => store.close());
  await store.write(async (tx) => {
    await tx.table(groupKind).insert(groupRow(root));
    await tx.table(subscriptionKind).insert(probe);
  });
  return store;
}

describe("a planted kind", () => {
  it("has a table with the indexes of its orders, and those that it declares", () => {
    assert.deepEqual(
      getTableConfig(probeTable).indexes.map(({ config }) => config.name),
      ["probes_by_name", "probes_by_created_at", "probes_by_updated_at", "probes_children", "probes_repo"],
    );
    assert.deepEqual(Object.keys(plantedSchema).slice(kinds.length, kinds.length + 1), ["probes"]);
  });

  it("has rows of the class of all kinds, which are listed in its orders and counted", async (t) => {
    const tx = openPlanted(t);
    const times = { createTimeMs: 1_000, updateTimeMs: 1_000 };
    const rows = ["b", "c", "a"].map((name, i) => ({
      ...{ uid: childUid(root, i + 1), groupUid: root, repoUid: null, tagUid: null, name },
      ...times,
    }));
    for (const row of rows) await tx.table(probeKind).insert(row);
    assert.ok(tx.table(probeKind) instanceof ListedTable);
    assert.deepEqual(await tx.table(probeKind).find(rows[0]?.uid ?? ""), rows[0]);
    const order = { field: "name", descending: false };
    const page = await tx.table(probeKind).list({ visible: [root], filter: {}, order, skip: 0, limit: 2 });
    assert.deepEqual([page.rows.map(({ name }) => name), page.total], [["a", "b"], 3]);
    await tx.table(probeKind).delete(rows[1]?.uid ?? "");
    assert.equal(await countBelow(tx, probeKind, root), 2);
  });

  it("keeps its parent from being deleted", async (t) => {
    const store = await openStore(t);
    const guard = async (all: typeof definitions) => store.read((tx) => guardDelete(all, groups, root, tx, 2_000));
    // The probe is a row of subscriptions, which keep their group themselves.
    const others = definitions.filter(({ plural }) => plural !== "subscriptions");
    await guard(others);
    await assert.rejects(guard([...others, probes]), {
      message: "Precondition failed: cannot delete group with child probes",
    });
  });

  it("is deleted with its parent", async (t) => {
    const store = await openStore(t);
    const left = await store.write(async (tx) => {
      await cascadeDelete([probes], groups, root, tx);
      return tx.table(subscriptionKind).find(probe.uid);
    });
    assert.equal(left, undefined);
  });

  it("is read by its uid, and missing ones by its own name", async (t) => {
    const store = await openStore(t);
    assert.deepEqual(await store.read((tx) => getRow(tx, probes, probe.uid)), probe);
    const other = childUid(root, 2);
    const absent = async () => store.read((tx) => getRow(tx, probes, other));
    await assert.rejects(absent, { message: `Not found: probe: there is no probe ${other}` });
  });

  it("is counted and limited by its quota", async (t) => {
    const store = await openStore(t);
    const request = create(createProbe.input, { parent: root });
    const run = async (all: typeof definitions, limit: number) => {
      const check = buildRoomChecks(all, createQuotas({ ...defaultLimits, subscriptions: limit }))(createProbe);
      await store.read(async (tx) => check?.(request, {} as Caller, tx));
      return check !== undefined;
    };
    assert.equal(await run(definitions, 1), false);
    assert.equal(await run(planted, 2), true);
    await assert.rejects(run(planted, 1), /limit of subscriptions is 1, and 1 more would exceed it/);
  });

  it("is counted by the counters of the kind that names its quota, which is the only one", () => {
    assert.deepEqual([...countedKinds.keys()].toSorted(), [...organisationQuotas].toSorted());
    const counting = kinds.filter(({ quota }) => quota !== undefined);
    assert.equal(counting.length, countedKinds.size);
    const declared = definitions.flatMap(({ kind }) => kind?.quota ?? []);
    assert.deepEqual(declared.toSorted(), [...countedKinds.keys()].toSorted());
  });

  it("is checked by `arbor check`: its uids, its foreign keys, and that no other column names a row", async (t) => {
    const directory = tempDir();
    const store = await openStore(t, directory);
    await store.write((tx) => tx.table(subscriptionKind).insert({ ...probe, uid: childUid(rootUid(2), 1) }));
    const kind: ListedKind = { ...subscriptionKind, counter: 99 };
    const db = readSqlite(directory);
    t.after(() => db.close());
    const find = async (kinds: readonly ListedKind[]) =>
      (await runCheck(createUidCheck(kinds), db, () => {})).findings.length;
    assert.equal(await find(kinds.filter(({ table }) => table !== subscriptionKind.table)), 0);
    assert.equal(await find([kind]), 1);

    const found = findReferences([...tables, probeTable]).filter(({ from }) => from.table === probeTable);
    assert.deepEqual(
      found.map(({ from, to }) => [from.name, to.name]),
      [["group_uid", "uid"]],
    );
    const [undeclared] = findUndeclared({ ...probeKind, table: () => probeTable }, plantedSchema);
    assert.deepEqual([undeclared?.from, undeclared?.to], [columnOf(probeTable, "repoUid"), plantedSchema.repos.uid]);
    assert.deepEqual(findUnchecked(tables), []);
    const known = [probeTable.rootUid, columnOf(probeTable, "repoUid")];
    assert.deepEqual(findUnchecked([...tables, probeTable], known), ["probes.tag_uid"]);
  });

  it("is copied by `arbor copy`, after what it refers to", () => {
    const others = Object.values(plantedSchema as object).filter((one) => is(one, SQLiteTable) && one !== probeTable);
    const names = describeTables([probeTable, ...others]).map(({ name }) => name);
    assert.ok(names.indexOf("probes") > names.indexOf("groups"));
    assert.equal(names.length, tables.length + 1);
  });

  it("is compared with the table of the command line", async () => {
    assert.deepEqual(await compareCommands(definitions), []);
    assert.equal(commandKinds.length, definitions.filter(({ kind }) => kind !== undefined).length - 1);
    assert.deepEqual(await compareCommands(planted), ["probes: no commands"]);
    const changed = definitions.map((one) =>
      one === groups ? { ...one, stable, parent: undefined, kind: { sorts: {} } } : one,
    );
    assert.deepEqual(await compareCommands(changed as typeof definitions), [
      "groups: the service chainguard.platform.iam.v2beta1.GroupsService",
      "groups: the parents group",
      "groups: whether they have names",
    ]);
  });

  it("is served under its stable name", () => {
    const served: ServedService = { desc: beta, handlers: { createProbe: () => ({}) } };
    assert.throws(() => createStableServices([served]), /ProbesService has no stable version/);
    const [service, ...others] = createStableServices([served], planted);
    assert.deepEqual([service?.desc.typeName, others.length], [stable.typeName, 0]);
    assert.equal(service?.handlers.createProbe, served.handlers.createProbe);
  });
});

describe("the kinds of the contract", () => {
  const messages = definitions.map((definition) => definition.message);
  const isUnavailable = (service: DescService) => unavailableServices.some(({ desc }) => desc === service);

  it("have a definition each", () => {
    const listed = platform().flatMap(({ desc }) => {
      if (!desc.typeName.includes(".v2beta1.") || isUnavailable(desc)) return [];
      const lists = desc.methods.filter(({ name }) => name.startsWith("List"));
      return lists.map(({ output }) => output.fields.find(({ fieldKind }) => fieldKind === "list")?.message);
    });
    assert.ok(listed.length >= 13, `${listed.length} kinds were found`);
    assert.deepEqual(
      listed.filter((one) => one === undefined || !messages.includes(one)),
      [],
    );
  });

  it("say of every field of a request who sets it: the caller, the service, or somebody else", () => {
    const undecided: string[] = [];
    let decided = 0;
    for (const { desc } of platform()) {
      for (const { name, input } of desc.methods) {
        if (!desc.typeName.includes(".v2beta1.") || !/^(Create|Update)/.test(name)) continue;
        const definition = definitions.find(({ message: one }) => input.fields.some((field) => field.message === one));
        if (definition === undefined || !("mutable" in definition)) continue;
        const { message: resource, mutable, fixed = {} } = definition as Declared;
        const names = [...Object.keys(mutable), ...Object.keys(fixed).map((path) => path.split(".")[0])];
        for (const field of resource.fields) {
          if (isOutputOnly(field) || names.includes(field.localName)) decided += 1;
          else undecided.push(`${name}: ${field.name}`);
        }
        assert.equal(resolveFixed(resource, fixed).length, Object.keys(fixed).length);
      }
    }
    assert.deepEqual(undecided, []);
    assert.ok(decided > 100, `${decided} fields were found`);
    assert.throws(() => resolveFixed(groups.message, { colour: {} as FixedField }), /colour is not a field of message/);
  });

  it("have types and display names of their own, and existing parents", () => {
    const types = definitions.map(({ type }) => type);
    assert.equal(new Set(types).size, types.length);
    assert.equal(new Set(definitions.map(({ plural }) => plural)).size, types.length);
    const parents = definitions.map(({ parent }) => parent?.type ?? "none");
    assert.deepEqual(
      parents.filter((type) => !types.includes(type)),
      [],
    );
  });

  it("have the quotas of the settings, one kind each, under one display name", () => {
    const named = definitions.flatMap(({ kind, plural }) => (kind?.quota ? [[kind.quota, plural] as const] : []));
    const expected = organisationQuotas.map((name) => [name, quotas[name].displayName] as const);
    assert.deepEqual(named.toSorted(), expected.toSorted());
  });
});

function platform(): ServedService[] {
  const tokens = createPageTokens(() => []);
  return createPlatformServices({
    ...createResourceDeps({ tokens, ids: randomIds }),
    ...{
      tokens,
      seal: async () => "",
      rootCreation: "users",
      trustedIssuers: [],
      baseUrl: "https://iam.example",
      limits: defaultLimits,
      quotas: createQuotas(defaultLimits),
    },
    store: {} as Store,
    registry: undefined,
  });
}

it("every kind of listed rows is in the list of all kinds, under a number of its own", () => {
  const files = readdirSync("src/store", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const declared = files.flatMap((name) =>
    [...readFileSync(join("src/store", name), "utf8").matchAll(/declareKind\(\{\s*number: (\d+)/g)].map(([, id]) =>
      Number(id),
    ),
  );
  const listed = kinds.map(({ counter }) => counter / 8);
  assert.deepEqual(listed.toSorted(), declared.toSorted());
  assert.equal(new Set(listed).size, listed.length);
});

it("the kinds that restrict the deletion of a group come in the order in which the error names them", () => {
  const restricting = definitions.filter(({ parent }) => parent?.type === groups.type && parent.onDelete.restrict);
  assert.deepEqual(
    restricting.map(({ plural }) => plural),
    [
      "repos",
      "overlays",
      "advisories",
      "groups",
      "identities",
      "identity providers",
      "roles",
      "role bindings",
      "group invites",
      "account associations",
      "subscriptions",
    ],
  );
});

it("version 2 answers at every path of version 1 with its own prefix, but for those that replace a whole resource", () => {
  const entries = [...createMethodTable(platform()).values()];
  const routes = entries.flatMap(buildBindings);
  const table = createRouteTable(
    routes.map(({ name, method, template, current }) => ({ name, method, template, target: { name, current } })),
  );
  const older = routes.filter(({ template }) => template.text.startsWith("/iam/v1/"));
  assert.ok(older.length >= 40, `${older.length} routes of version 1`);
  const missing: string[] = [];
  for (const { method, template } of older) {
    // A PUT replaces all, a PATCH changes what it names; identities are created in a group only; and SCIM users are listed
    // below their identity provider.
    if (method === "PUT" || (method === "POST" && template.text === "/iam/v1/identities")) continue;
    if (template.text === "/iam/v1/scimUsers") continue;
    const path = template.text.replace(/\{[^}]*\}/g, "r/a");
    for (const version of ["v2beta1", "v2"]) {
      const found = table.find(method, path.replace("/v1/", `/${version}/`))?.target;
      const isOwn = found?.name.includes(`.iam.${version}.`);
      // At another spelling than in its proto it is deprecated.
      const isCurrent = found?.current === undefined;
      const isRenamed = /_|rolebindings|\/lookup|\/metadata|:check$/.test(path);
      if (!isOwn || isCurrent === isRenamed) missing.push(`${method} ${path} in ${version}: ${found?.name}`);
    }
  }
  assert.deepEqual(missing, []);
});
