// Lists of groups: filters, orders and pages (docs/api-rules.md#lists).
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { randomIds } from "../../src/kernel/ids.js";
import { type Harness, startHarness } from "../support/harness.js";
import { childUid, groupRow } from "../support/rows.js";
import { type Expected, invalid } from "./expectations.js";
import { connectGrpcJs } from "./grpc-js-client.js";
import { type Rest, type RestResponse, restAs } from "./rest.js";

const MANY = 205;

let harness: Harness;
let token: string;
let rest: Rest;
// The uids that queries name in angle brackets.
const uids: Record<string, string> = {};

before(async () => {
  harness = await startHarness();
  const ours = await harness.organisation("tree.example");
  const foreign = await harness.organisation("foreign.example");
  const big = await harness.organisation("big.example");
  const { group: root } = ours;
  const { group: hall } = big;
  token = ours.token;
  rest = restAs(harness.url, token);
  await harness.bind(ours.identity, "viewer", hall);
  const [ash, beech, cherry] = [1, 2, 3].map((n) => childUid(root, n)) as [string, string, string];
  Object.assign(uids, { root, ash, beech, cherry, foreign: foreign.group, random: randomIds.newUid(), hall });
  Object.assign(uids, { leaf: childUid(ash, 1), inner: childUid(ash, 2), fallen: childUid(beech, 1) });
  const rows = [
    groupRow(ash, { name: "ash", createTimeMs: 5_000, updateTimeMs: 6_000 }),
    groupRow(beech, { name: "beech", createTimeMs: 2_000, updateTimeMs: 2_000 }),
    groupRow(cherry, { name: "cherry", createTimeMs: 4_000, updateTimeMs: 4_000 }),
    groupRow(childUid(ash, 1), { name: "leaf", createTimeMs: 3_000, updateTimeMs: 9_000 }),
    groupRow(childUid(ash, 2), { name: "ash", createTimeMs: 1_000, updateTimeMs: 1_000 }),
    groupRow(childUid(beech, 1), { name: "leaf", createTimeMs: 6_000, updateTimeMs: 7_000 }),
    groupRow(childUid(foreign.group, 1), { name: "leaf" }),
    ...Array.from({ length: MANY }, (_, n) => groupRow(childUid(hall, n), { name: `${n % 7}`, createTimeMs: n % 3 })),
  ];
  await harness.app.installation.store.write(async (tx) => {
    for (const row of rows) await tx.groups.insert(row);
  });
});

after(() => harness.stop());

function fillUids(query: string): string {
  return query.replace(/<(\w+)>/g, (_, name) => uids[name] ?? "");
}

function list(query: string, call = rest): Promise<RestResponse> {
  return call("GET", `/groups?${fillUids(query)}`);
}

// The names that tests give to the groups of a response.
function namesOn({ json }: RestResponse): string {
  const names = new Map(Object.entries(uids).map(([name, uid]) => [uid, name]));
  const groups = (json?.groups ?? []) as readonly { readonly uid: string }[];
  return groups.map(({ uid }) => names.get(uid) ?? uid).join(" ");
}

const tree = "uidp.descendants_of=<root>";

describe("filters", () => {
  const wrong = (field: string) =>
    invalid([`uidp.${field}`, `uidp.${field} must be a uid, such as the service assigns`]);
  const cases: readonly { query: string; groups: string | Expected }[] = [
    { query: tree, groups: "ash leaf inner beech fallen cherry" },
    { query: "uidp.descendantsOf=<root>", groups: "ash leaf inner beech fallen cherry" },
    { query: "uidp.descendants_of=<ash>", groups: "leaf inner" },
    { query: "uidp.descendants_of=<cherry>", groups: "" },
    { query: "uidp.children_of=<root>", groups: "ash beech cherry" },
    { query: "uidp.children_of=%2F&name=tree.example", groups: "root" },
    { query: "uidp.children_of=/&name=tree.example", groups: "root" },
    { query: "uidp.in_root=true&name=tree.example", groups: "root" },
    { query: "uidp.in_root=true&name=leaf", groups: "" },
    { query: "uidp.ancestors_of=<leaf>", groups: "root ash" },
    { query: "uidp.ancestors_of=<root>", groups: "" },
    { query: "uidp.ids=<cherry>&uidp.ids=<leaf>&uidp.ids=<cherry>&uidp.ids=<random>", groups: "leaf cherry" },
    { query: "name=leaf", groups: "leaf fallen" },
    { query: "name=lea", groups: "" },
    { query: "name=LEAF", groups: "" },
    { query: "name=%25", groups: "" },
    { query: "name=l_af", groups: "" },
    { query: `${tree}&name=`, groups: "ash leaf inner beech fallen cherry" },
    { query: "uidp.descendants_of=&name=leaf", groups: "leaf fallen" },
    { query: "name=leaf&uidp.descendants_of=<beech>", groups: "fallen" },
    { query: "uidp.children_of=<root>&uidp.descendants_of=<ash>", groups: "" },
    { query: "uidp.children_of=<ash>&uidp.descendants_of=<root>&uidp.ids=<inner>&name=ash", groups: "inner" },
    { query: "uidp.ids=<leaf>&uidp.ids=<fallen>&uidp.ancestors_of=<leaf>", groups: "" },
    { query: "uidp.descendants_of=<foreign>", groups: "" },
    { query: "uidp.children_of=<foreign>", groups: "" },
    { query: "uidp.ancestors_of=<foreign>/0000000000000001", groups: "" },
    { query: "uidp.ids=<foreign>", groups: "" },
    { query: "uidp.descendants_of=<random>", groups: "" },
    ...["%25", "_", "*", "/", "tree.example", "<ash>/", "<ash>0", "/<ash>", "<ash>%20", "<ash>/.."].map((value) => ({
      query: `uidp.descendants_of=${value}`,
      groups: wrong("descendantsOf"),
    })),
    { query: "uidp.children_of=//", groups: wrong("childrenOf") },
    { query: "uidp.ancestors_of=/", groups: wrong("ancestorsOf") },
    { query: "uidp.ids=<ash>&uidp.ids=", groups: wrong("ids") },
    { query: "name=a%0Ab", groups: invalid(["name", "name must not contain control characters"]) },
    { query: "name=a&name=b", groups: invalid(["name", "name is given twice"]) },
    { query: "uidp.in_root=maybe", groups: invalid(["uidp.inRoot", "uidp.inRoot must be true or false"]) },
    { query: "parent=<ash>", groups: invalid(["parent", "parent is not a parameter of this method"]) },
  ];
  for (const { query, groups } of cases) {
    it(query, async () => {
      const response = await list(query);
      if (typeof groups !== "string") return assert.deepEqual(response.outcome, groups);
      assert.equal(namesOn(response), groups);
      assert.equal(response.json?.totalCount, String(groups === "" ? 0 : groups.split(" ").length));
    });
  }

  it("bound the number of uids", async () => {
    const grpc = connectGrpcJs(harness.url);
    const ids = (count: number) => ({ uidp: { ids: Array.from({ length: count }, () => uids.ash) } });
    const enough = await grpc.call({ method: "ListGroups", request: ids(1000), token });
    const tooMany = await grpc.call({ method: "ListGroups", request: ids(1001), token });
    grpc.close();
    assert.equal(enough.code, "OK");
    assert.deepEqual(tooMany, invalid(["uidp.ids", "uidp.ids must be at most 1000"]));
  });

  it("show and count what the caller may see alone", async () => {
    const guest = await harness.identity();
    for (const name of ["inner", "ash", "fallen"]) await harness.bind(guest.uid, "viewer", uids[name] ?? "");
    const call = restAs(harness.url, guest.token);
    const cases: readonly [query: string, groups: string, total: number][] = [
      ["", "ash leaf inner fallen", 4],
      [tree, "ash leaf inner fallen", 4],
      ["uidp.children_of=<root>", "ash", 1],
      ["uidp.children_of=/", "", 0],
      ["uidp.in_root=true", "", 0],
      ["uidp.ancestors_of=<leaf>", "ash", 1],
      ["name=leaf&order_by=created_at%20desc", "fallen leaf", 2],
      ["order_by=name&page_size=2", "ash inner", 4],
      ["order_by=name&skip=2", "leaf fallen", 4],
    ];
    for (const [query, groups, total] of cases) {
      const response = await list(query, call);
      assert.deepEqual([namesOn(response), response.json?.totalCount], [groups, String(total)], query);
    }
  });
});

describe("orders", () => {
  const refused = invalid([
    "orderBy",
    `orderBy must be one of uid, name, created_at, updated_at, optionally followed by " asc" or " desc"`,
  ]);
  const byUid = "ash leaf inner beech fallen cherry";
  const byName = "ash inner beech cherry leaf fallen";
  const byCreation = "inner beech leaf cherry ash fallen";
  const byUpdate = "inner beech cherry ash fallen leaf";
  const back = (names: string) => names.split(" ").reverse().join(" ");
  const cases: readonly { order: string; groups?: string }[] = [
    { order: "", groups: byUid },
    { order: "uid", groups: byUid },
    { order: "uid%20desc", groups: back(byUid) },
    { order: "name", groups: byName },
    { order: "name%20asc", groups: byName },
    { order: "name%20desc", groups: back(byName) },
    { order: "name+desc", groups: back(byName) },
    { order: "name%20%20desc", groups: back(byName) },
    { order: "%20name", groups: byName },
    { order: "name%20", groups: byName },
    ...["created_at", "createdAt", "create_time", "createTime"].map((order) => ({ order, groups: byCreation })),
    { order: "created_at%20desc", groups: back(byCreation) },
    ...["updated_at", "updatedAt", "update_time", "updateTime"].map((order) => ({ order, groups: byUpdate })),
    { order: "updateTime%20desc", groups: back(byUpdate) },
    ...["uid;drop", "uid%3Bdrop", "name%20desc,%20created_at", "name,uid", "NAME", "Name"].map((order) => ({ order })),
    ...["name%20DESC", "name%20desc%20desc", "name%20up", "name%09desc", "-name"].map((order) => ({ order })),
    ...["description", "verified", "parent_uid", "rowid", "__proto__", "constructor", "1", "%2C"].map((order) => ({
      order,
    })),
  ];
  for (const { order, groups } of cases) {
    it(`${groups === undefined ? "refuse" : "know"} ${order || "none"}`, async () => {
      const response = await list(`${tree}&order_by=${order}`);
      if (groups === undefined) assert.deepEqual(response.outcome, refused);
      else assert.equal(namesOn(response), groups);
    });
  }
});

describe("pages", () => {
  const hall = "uidp.children_of=<hall>";
  const size = (text: string) => invalid(["pageSize", `pageSize ${text}`]);
  const range = "must be an integer between -2147483648 and 2147483647";
  const skip = (text: string) => invalid(["skip", `skip ${text}`]);
  const cases: readonly { query: string; rows: number | Expected }[] = [
    { query: "", rows: 50 },
    { query: "page_size=0", rows: 50 },
    { query: "page_size=1", rows: 1 },
    { query: "pageSize=50", rows: 50 },
    { query: "page_size=200", rows: 200 },
    { query: "page_size=201", rows: 200 },
    { query: "page_size=1000000000", rows: 200 },
    { query: "page_size=-1", rows: size("must not be negative") },
    ...["abc", "1e2", "1.5", "+5", "%2B5", "%205", "0x10", "2147483648", "9223372036854775807"].map((value) => ({
      query: `page_size=${value}`,
      rows: size(range),
    })),
    { query: "page_size=5&page_size=5", rows: size("is given twice") },
    { query: "page_size=5&pageSize=5", rows: size("is given twice") },
    { query: "skip=0", rows: 50 },
    { query: "skip=200", rows: 5 },
    { query: "page_size=5&skip=10", rows: 5 },
    { query: `skip=${MANY}`, rows: 0 },
    { query: `skip=${MANY + 1}`, rows: 0 },
    { query: "skip=2147483647", rows: 0 },
    { query: "skip=-1", rows: skip("must not be negative") },
    { query: "skip=2147483648", rows: skip(range) },
  ];
  for (const { query, rows } of cases) {
    it(query || "as they come", async () => {
      const response = await list(`${hall}&${query}`);
      if (typeof rows !== "number") return assert.deepEqual(response.outcome, rows);
      const { groups, nextPageToken, ...envelope } = response.json ?? {};
      const skipped = Number(/skip=(\d+)/.exec(query)?.[1] ?? 0);
      assert.deepEqual(envelope, { totalCount: String(MANY), skipped });
      assert.equal((groups as unknown[]).length, rows);
      assert.equal(nextPageToken !== undefined, skipped + rows < MANY, "a token iff more follow");
    });
  }

  it("begin where skip says", async () => {
    const whole = (await list(`${hall}&order_by=name&page_size=200`)).json?.groups as unknown[];
    const part = (await list(`${hall}&order_by=name&page_size=5&skip=10`)).json?.groups;
    assert.deepEqual(part, whole.slice(10, 15));
  });
});
