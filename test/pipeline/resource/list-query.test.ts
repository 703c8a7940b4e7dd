import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import { groups } from "../../../src/iam/groups/group.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { createPageTokens, PAGE_TOKEN_LIFE_MS } from "../../../src/kernel/page-token.js";
import { type ListRequest, parseListQuery } from "../../../src/pipeline/resource/list-query.js";
import type { ListFilter, ListQuery } from "../../../src/store/lists/query.js";
import { childUid, rootUid } from "../../support/rows.js";

const nowMs = 1_800_000_000_000;
const tokens = createPageTokens(() => [{ id: "00000000000000aa", secret: Buffer.alloc(32, 1) }]);
const [root, child] = [rootUid(1), childUid(rootUid(1), 1)];
const visible = [root];
// Only page tokens with an unknown key are looked up in it.
const tx = undefined as never;

function prepare(request: Partial<ListRequest> = {}, context: { method?: string; nowMs?: number } = {}) {
  const whole = { name: "", pageSize: 0, pageToken: "", orderBy: "", skip: 0, ...request };
  return parseListQuery(groups, whole, { tx, method: "ListGroups", tokens, nowMs, visible, ...context });
}

const plain: ListQuery = {
  visible,
  filter: {},
  order: { field: "uid", descending: false },
  limit: 50,
  skip: 0,
};

const sizes: readonly { pageSize: number; limit: number; reason: string }[] = [
  { pageSize: 0, limit: 50, reason: "unset" },
  { pageSize: 1, limit: 1, reason: "the smallest" },
  { pageSize: 200, limit: 200, reason: "the largest" },
  { pageSize: 201, limit: 200, reason: "too large is as large as can be" },
  { pageSize: 2_147_483_647, limit: 200, reason: "the largest number" },
];

for (const { pageSize, limit, reason } of sizes) {
  test(`page size ${pageSize}: ${reason}`, async () =>
    assert.deepEqual((await prepare({ pageSize })).query, { ...plain, limit }));
}

const ORDER_RULE =
  'orderBy: orderBy must be one of uid, name, created_at, updated_at, optionally followed by " asc" or " desc"';
const UID_RULE = "must be a uid, such as the service assigns";

const orders: readonly { orderBy: string; field: string; descending: boolean }[] = [
  { orderBy: "", field: "uid", descending: false },
  { orderBy: "uid", field: "uid", descending: false },
  { orderBy: "name", field: "name", descending: false },
  { orderBy: "name asc", field: "name", descending: false },
  { orderBy: "name desc", field: "name", descending: true },
  { orderBy: "created_at", field: "created_at", descending: false },
  { orderBy: "createdAt desc", field: "created_at", descending: true },
  { orderBy: "create_time", field: "created_at", descending: false },
  { orderBy: "createTime desc", field: "created_at", descending: true },
  { orderBy: "updated_at desc", field: "updated_at", descending: true },
  { orderBy: "updatedAt", field: "updated_at", descending: false },
  { orderBy: "update_time asc", field: "updated_at", descending: false },
  { orderBy: "updateTime", field: "updated_at", descending: false },
  { orderBy: "name  desc", field: "name", descending: true },
  { orderBy: " name", field: "name", descending: false },
  { orderBy: "name ", field: "name", descending: false },
];

for (const { orderBy, field, descending } of orders) {
  test(`order "${orderBy}"`, async () =>
    assert.deepEqual((await prepare({ orderBy })).query, { ...plain, order: { field, descending } }));
}

const badOrders = [
  "nosuch",
  "NAME",
  "Name",
  "name DESC",
  "name,uid",
  "name desc, uid",
  "name desc desc",
  "name; drop table groups",
  "-name",
  "description",
  "verified",
  "capabilities",
  "__proto__",
  "constructor",
  "name\tdesc",
  "name asc\n",
];

for (const orderBy of badOrders) {
  test(`order rejected: ${JSON.stringify(orderBy)}`, async () => {
    await assert.rejects(prepare({ orderBy }), failure(`Invalid argument: ${ORDER_RULE}`));
  });
}

type Filter = MessageInitShape<typeof UIDPFilterSchema>;
const filterOf = (uidp: Filter) => create(UIDPFilterSchema, uidp);

const filters: readonly { request: { uidp?: Filter; name?: string }; filter: ListFilter; reason: string }[] = [
  { request: {}, filter: {}, reason: "none" },
  { request: { uidp: {} }, filter: {}, reason: "an empty one counts as unset" },
  { request: { name: "core" }, filter: { name: "core" }, reason: "a name" },
  { request: { name: "%" }, filter: { name: "%" }, reason: "a name that is a pattern elsewhere is itself" },
  { request: { name: "Größe" }, filter: { name: "Größe" }, reason: "a name nobody can have finds nothing" },
  { request: { uidp: { ids: [child, root] } }, filter: { uids: [root, child] }, reason: "uids, sorted" },
  { request: { uidp: { ancestorsOf: child } }, filter: { ancestorsOf: child }, reason: "what is above" },
  { request: { uidp: { descendantsOf: root } }, filter: { descendantsOf: root }, reason: "what is below" },
  { request: { uidp: { childrenOf: root } }, filter: { childrenOf: root }, reason: "what is directly below" },
  { request: { uidp: { childrenOf: "/" } }, filter: { childrenOf: "/" }, reason: "what is directly below nothing" },
  { request: { uidp: { inRoot: true } }, filter: { inRoot: true }, reason: "roots" },
  {
    request: { name: "core", uidp: { descendantsOf: root, childrenOf: child } },
    filter: { name: "core", descendantsOf: root, childrenOf: child },
    reason: "several, all of which must hold",
  },
  {
    request: { uidp: { ids: Array.from({ length: 1_000 }, (_, i) => rootUid(i)) } },
    filter: { uids: Array.from({ length: 1_000 }, (_, i) => rootUid(i)) },
    reason: "a thousand uids",
  },
];

for (const { request, filter, reason } of filters) {
  test(`filter: ${reason}`, async () => {
    const { uidp, ...rest } = request;
    assert.deepEqual((await prepare({ ...rest, ...(uidp && { uidp: filterOf(uidp) }) })).query, { ...plain, filter });
  });
}

const refused: readonly { request: Partial<ListRequest>; text: string; reason: string }[] = [
  { request: { pageSize: -1 }, text: "pageSize: pageSize must not be negative", reason: "a negative size" },
  { request: { skip: -1 }, text: "skip: skip must not be negative", reason: "a negative skip" },
  { request: { name: "a\u0000" }, text: "name: name must not contain control characters", reason: "NUL in a name" },
  { request: { name: "\ud800" }, text: "name: name must not contain control characters", reason: "half a character" },
  ...(["ancestorsOf", "descendantsOf", "childrenOf"] as const).flatMap((field) =>
    ["%", "_", "*", `${root}/`, root.slice(0, 20), rootUid(0xabc).toUpperCase(), "' OR 1=1 --"].map((value) => ({
      request: { uidp: filterOf({ [field]: value }) },
      text: `uidp.${field}: uidp.${field} ${UID_RULE}`,
      reason: `${field} ${value}`,
    })),
  ),
  {
    request: { uidp: filterOf({ ancestorsOf: "/" }) },
    text: `uidp.ancestorsOf: uidp.ancestorsOf ${UID_RULE}`,
    reason: "above /",
  },
  {
    request: { uidp: filterOf({ descendantsOf: "/" }) },
    text: `uidp.descendantsOf: uidp.descendantsOf ${UID_RULE}`,
    reason: "below /: only children_of has a place above all roots",
  },
  { request: { uidp: filterOf({ ids: [root, ""] }) }, text: `uidp.ids: uidp.ids ${UID_RULE}`, reason: "an empty uid" },
  {
    request: { uidp: filterOf({ ids: Array.from({ length: 1_001 }, () => root) }) },
    text: "uidp.ids: uidp.ids must be at most 1000",
    reason: "a thousand and one uids",
  },
  {
    request: { pageSize: -1, skip: -1, orderBy: "x", uidp: filterOf({ childrenOf: "x" }) },
    text:
      "pageSize: pageSize must not be negative; skip: skip must not be negative; " +
      `${ORDER_RULE}; uidp.childrenOf: uidp.childrenOf ${UID_RULE}`,
    reason: "all that is wrong is named at once",
  },
  { request: { pageToken: "x" }, text: "pageToken: pageToken is not one this service made", reason: "a forged token" },
];

for (const { request, text, reason } of refused) {
  test(`rejects: ${reason}`, () => assert.rejects(prepare(request), failure(`Invalid argument: ${text}`)));
}

const next = { key: "core", uid: child };
const tokenOf = async (request: Partial<ListRequest> = {}) =>
  (await prepare(request)).envelope({ rows: [], next, total: 9 }).nextPageToken;

test("the envelope: token, total and skip", async () => {
  const { nextPageToken, ...rest } = (await prepare({ skip: 4 })).envelope({ rows: [], next, total: 9 });
  assert.notEqual(nextPageToken, "");
  assert.deepEqual(rest, { totalCount: 9n, skipped: 4 });
});

test("the envelope of the last page has no token", async () => {
  assert.equal((await prepare()).envelope({ rows: [], next: undefined, total: 9 }).nextPageToken, "");
});

const continued: readonly {
  first: Partial<ListRequest>;
  second: Partial<ListRequest>;
  skip: number;
  limit?: number;
  reason: string;
}[] = [
  { first: {}, second: {}, skip: 0, reason: "the same query" },
  { first: { pageSize: 7 }, second: { pageSize: 9 }, skip: 0, limit: 9, reason: "another page size" },
  { first: { skip: 5 }, second: { skip: 5 }, skip: 0, reason: "the skip behind it is not applied again" },
  { first: { skip: 5 }, second: { skip: 2 }, skip: 2, reason: "another skip counts from where the token stands" },
  { first: { skip: 5 }, second: {}, skip: 0, reason: "no skip is none" },
  {
    first: { orderBy: "created_at" },
    second: { orderBy: "createTime asc" },
    skip: 0,
    reason: "the same order, spelled otherwise",
  },
  { first: { uidp: filterOf({}) }, second: {}, skip: 0, reason: "an empty filter and none" },
];

for (const { first, second, skip, limit = 50, reason } of continued) {
  test(`continued: ${reason}`, async () => {
    const { query } = await prepare({ ...second, pageToken: await tokenOf(first) });
    const { query: requested } = await prepare(second);
    assert.deepEqual(query, { ...requested, skip, limit, after: next });
  });
}

const otherList: readonly { first: Partial<ListRequest>; second: Partial<ListRequest>; reason: string }[] = [
  { first: {}, second: { orderBy: "name" }, reason: "another order" },
  { first: { orderBy: "name" }, second: { orderBy: "name desc" }, reason: "another direction" },
  { first: {}, second: { name: "core" }, reason: "a filter more" },
  { first: { name: "core" }, second: {}, reason: "a filter less" },
  { first: { name: "a" }, second: { name: "b" }, reason: "another name" },
  {
    first: { uidp: filterOf({ childrenOf: root }) },
    second: { uidp: filterOf({ descendantsOf: root }) },
    reason: "another kind of filter",
  },
];

for (const { first, second, reason } of otherList) {
  test(`a token with ${reason} is rejected`, async () => {
    const text = "Invalid argument: pageToken: pageToken belongs to a list with other filters or another order";
    await assert.rejects(prepare({ ...second, pageToken: await tokenOf(first) }), failure(text));
  });
}

test("a token of another method is rejected", async () => {
  await assert.rejects(
    prepare({ pageToken: await tokenOf() }, { method: "ListRoles" }),
    failure("Invalid argument: pageToken: pageToken belongs to a list with other filters or another order"),
  );
});

test("an old token starts the list again, with its skip", async () => {
  const { query } = await prepare(
    { pageToken: await tokenOf({ skip: 5 }), skip: 5 },
    { nowMs: nowMs + PAGE_TOKEN_LIFE_MS + 1 },
  );
  assert.deepEqual(query, { ...plain, skip: 5 });
});

test("a token gives no more than the caller sees", async () => {
  const context = { tx, method: "ListGroups", tokens, nowMs, visible: [] };
  const request = { name: "", pageSize: 0, pageToken: await tokenOf(), orderBy: "", skip: 0 };
  assert.deepEqual((await parseListQuery(groups, request, context)).query, { ...plain, visible: [], after: next });
});

function failure(message: string) {
  return (error: unknown) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.message, message);
    return error.code === Code.InvalidArgument;
  };
}
