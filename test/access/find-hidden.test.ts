// What the caller does not see changes nothing of an answer of Find, nor how many pages it has, nor how much is read for it.
import assert from "node:assert/strict";
import { after, before, mock, test } from "node:test";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { builtinRoleUid, personUid } from "../../src/kernel/ids.js";
import { AccessQuestions } from "../../src/store/iam/access-questions.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import type { Tx } from "../../src/store/transaction.js";
import { principalOf } from "../support/in-process.js";
import { bindingRow, childUid, groupRow, identityRow, rootUid } from "../support/rows.js";
import { type OpenedPlatform, openPlatform } from "./platform.js";

const [root, other, own] = [rootUid(0xa), rootUid(0xb), rootUid(0xc)];
const part = childUid(root, 1);
const lead = principalOf(personUid("https://l.example", "lead"));
const [joined, foreign] = ["joined", "foreign"].map((name) => personUid("https://l.example", name)) as [string, string];
/** So many that not all are read at once. */
const VISIBLE = 1_100;
/** More than one call looks at. */
const HIDDEN = 5_000;
const [owner, viewer] = ["owner", "viewer"].map(builtinRoleUid) as [string, string];

let platform: OpenedPlatform;
let number = 0x100000;
const write = (work: (tx: Tx) => Promise<unknown>) => platform.store.write(work);
const bind = (tx: Tx, group: string, identity: string, accepted = true) =>
  tx.table(roleBindingKind).insert(bindingRow(childUid(group, number++), identity, viewer, { accepted }));

async function addGroups(parent: string, count: number, name: string): Promise<void> {
  await write(async (tx) => {
    for (let i = 0; i < count; i++)
      await tx.table(groupKind).insert(groupRow(childUid(parent, number++), { name: `${name}-${i}` }));
  });
}

before(async () => {
  platform = await openPlatform();
  await write(async (tx) => {
    for (const [uid, name] of [
      [root, "acme"],
      [part, "part"],
      [other, "other"],
      [own, "own"],
    ] as const)
      await tx.table(groupKind).insert(groupRow(uid, { name }));
    for (const [uid, name] of [
      [lead.identityUid, "lead"],
      [joined, "joined"],
      [foreign, "foreign"],
    ] as const)
      await tx.table(identityKind).insert(identityRow(uid, { name, email: `${name}@l.example` }));
    await bind(tx, part, lead.identityUid);
    const binding = bindingRow(childUid(own, number++), lead.identityUid, owner, { accepted: true });
    await tx.table(roleBindingKind).insert(binding);
    await bind(tx, part, joined);
    await bind(tx, other, foreign);
  });
  await addGroups(part, VISIBLE, "team");
  await addGroups(own, 10, "team");
});
after(() => platform.close());

interface FindPage {
  readonly resources: readonly { readonly uid: string }[];
  readonly nextPageToken: string;
}

async function readPages(query: string): Promise<readonly (readonly string[])[]> {
  const pages: string[][] = [];
  let pageToken = "";
  do {
    const path = `/${AccessService.typeName}/Find`;
    const answer = await platform.call(path, lead, { query, pageSize: 200, pageToken });
    const page = answer as unknown as FindPage;
    pages.push(page.resources.map(({ uid }) => uid));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return pages;
}

/** The numbers of rows of the statements that a query of people needs. */
async function countRows(query: string): Promise<readonly number[]> {
  const rows: number[] = [];
  const prototype = AccessQuestions.prototype as unknown as { all: (...args: unknown[]) => Promise<unknown[]> };
  const { all } = prototype;
  const counter = mock.method(prototype, "all", async function counted(this: unknown, ...args: unknown[]) {
    const found = await all.apply(this, args);
    rows.push(found.length);
    return found;
  });
  try {
    await readPages(query);
    return rows;
  } finally {
    counter.mock.restore();
  }
}

test("names in parts of an organisation that the caller does not see", async () => {
  const queries = ["team", "team zzz", "team 1099", "secret"];
  const expected = await Promise.all(queries.map(readPages));
  assert.deepEqual(
    expected.map((pages) => pages.flat().length),
    [VISIBLE + 10, 0, 1, 0],
  );
  await addGroups(root, HIDDEN, "team");
  await addGroups(root, 1, "secret");
  for (const [i, query] of queries.entries()) assert.deepEqual(await readPages(query), expected[i], query);
  // The control: what the caller sees changes the answer.
  await addGroups(own, 1, "secret");
  assert.equal((await readPages("secret")).flat().length, 1);
});

test("people, by what joined them elsewhere", async () => {
  for (const [known, hidden, unknown] of [
    ["joined@l.example", "foreign@l.example", "nobody@l.example"],
    [joined, foreign, personUid("https://l.example", "nobody")],
  ] as const) {
    assert.deepEqual(await readPages(known), [[joined]]);
    assert.deepEqual(await countRows(hidden), await countRows(unknown), hidden);
    assert.deepEqual(
      (await countRows(hidden)).filter((rows) => rows > 0),
      [],
      "the control finds a row",
    );
    assert.ok((await countRows(known)).some((rows) => rows > 0));
  }
});

test("people who are bound in many groups elsewhere", async () => {
  const before = await countRows(joined);
  await addGroups(other, 300, "many");
  await write(async (tx) => {
    const { rows } = await tx.table(groupKind).list({
      ...{ visible: [other], filter: { childrenOf: other }, order: { field: "uid", descending: false } },
      ...{ skip: 0, limit: 300, uncounted: true },
    });
    for (const { uid } of rows) await bind(tx, uid, joined);
    for (const { uid } of rows) await bind(tx, uid, foreign, false);
  });
  assert.deepEqual(await countRows(joined), before);
  assert.deepEqual(await readPages(joined), [[joined]]);
});
