// How much one call of Find looks at, in an organisation of 100,000 groups whose names all begin alike.
import assert from "node:assert/strict";
import { after, before, mock, test } from "node:test";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { builtinRoleUid, personUid } from "../../src/kernel/ids.js";
import type { Principal } from "../../src/kernel/principal.js";
import { AuditEvents } from "../../src/store/audit/events.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { RoleBindings, roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { NameWords } from "../../src/store/name-words.js";
import { auditRow } from "../audit/log-kit.js";
import { principalOf } from "../support/in-process.js";
import { bindingRow, childUid, groupRow, identityRow, rootUid } from "../support/rows.js";
import { type OpenedPlatform, openPlatform } from "./platform.js";

const GROUPS = 100_000;
/** What a call may look at: its budget, and the rows of one statement more. */
const MOST = 4_096 + 256;
const root = rootUid(0xa);
const last = childUid(root, GROUPS);
const owner = principalOf(personUid("https://l.example", "owner"));
const guest = principalOf(personUid("https://l.example", "guest"));

let platform: OpenedPlatform;
before(async () => {
  platform = await openPlatform();
  for (let from = 1; from <= GROUPS; from += 5_000) {
    await platform.store.write(async (tx) => {
      if (from === 1) await tx.table(groupKind).insert(groupRow(root, { name: "acme" }));
      for (let n = from; n < from + 5_000; n++)
        await tx.table(groupKind).insert(groupRow(childUid(root, n), { name: `team-${n}` }));
    });
  }
  await platform.store.write(async (tx) => {
    let n = 0xf0000;
    for (const [who, role, at] of [
      [owner, "owner", root],
      [guest, "viewer", last],
    ] as const) {
      await tx.table(identityKind).insert(identityRow(who.identityUid, { name: "somebody" }));
      const binding = bindingRow(childUid(at, n++), who.identityUid, builtinRoleUid(role), { accepted: true });
      await tx.table(roleBindingKind).insert(binding);
    }
    for (let i = 0; i < 6_000; i++) {
      const uid = personUid("https://l.example", `member ${i}`);
      await tx.table(identityKind).insert(identityRow(uid, { name: `Member ${i}`, email: `m${i}@example.com` }));
      const binding = bindingRow(childUid(root, n++), uid, builtinRoleUid("viewer"), { accepted: true });
      await tx.table(roleBindingKind).insert(binding);
      for (let j = 0; j < 4; j++) await tx.audit.append(auditRow(root, { requestId: `${i} ${j}`, subjectUid: root }));
    }
  });
});
after(() => platform.close());

// Reads pages until the last one, and how many rows each looked at.
async function readPages(who: Principal, query: string, pageSize: number, most = Number.POSITIVE_INFINITY) {
  let rows = 0;
  const count = (prototype: object, name: string, countOf: (found: never) => number) => {
    const methods = prototype as Record<string, (...args: unknown[]) => Promise<never>>;
    const read = methods[name] as (...args: unknown[]) => Promise<never>;
    return mock.method(methods, name, async function counted(this: unknown, ...args: unknown[]) {
      const found = await read.apply(this, args);
      rows += countOf(found);
      return found;
    });
  };
  const counters = [
    count(NameWords.prototype, "find", (found: unknown[]) => found.length),
    count(RoleBindings.prototype, "list", ({ rows }: { rows: unknown[] }) => rows.length),
    count(AuditEvents.prototype, "all", (found: unknown[]) => found.length),
  ];
  try {
    const found: string[] = [];
    const looked: number[] = [];
    let pageToken = "";
    do {
      rows = 0;
      const answer = await platform.call(`/${AccessService.typeName}/Find`, who, { query, pageSize, pageToken });
      const page = answer as unknown as { resources: { uid: string }[]; nextPageToken: string };
      found.push(...page.resources.map(({ uid }) => uid));
      looked.push(rows);
      pageToken = page.nextPageToken;
    } while (pageToken !== "" && looked.length < most);
    return { found, looked };
  } finally {
    for (const { mock: one } of counters) one.restore();
  }
}

test("a page of what all names begin with costs its rows", async () => {
  const { found, looked } = await readPages(owner, "team", 50, 3);
  assert.equal(new Set(found).size, 150);
  for (const rows of looked) assert.ok(rows <= 512, `${rows}`);
});

for (const [query, who, expected] of [
  ["team zzz", owner, []],
  ["team 100000", owner, [last]],
  ["member 5999", owner, [personUid("https://l.example", "member 5999")]],
  ["m5999@", owner, [personUid("https://l.example", "member 5999")]],
] as const) {
  test(`no page looks at more than a few thousand rows: ${query}`, async (t) => {
    const { found, looked } = await readPages(who, query, 200);
    t.diagnostic(`${looked.length} pages`);
    assert.deepEqual(found, expected);
    for (const rows of looked) assert.ok(rows <= MOST, `${rows}`);
    assert.ok(looked.length < 60, `${looked.length} pages`);
  });
}

// The one row that is looked at besides is the own binding.
test("who sees a small part of an organisation gets all at once", async () => {
  const { found, looked } = await readPages(guest, "team", 200);
  assert.deepEqual([found, looked], [[last], [1]]);
});

test("control: a call stops where its budget ends, and not before", async () => {
  const { looked } = await readPages(owner, "team zzz", 200, 1);
  assert.ok((looked[0] ?? 0) > 4_000, `${looked[0]}`);
});

test("a log is read in slices", async () => {
  const { found, looked } = await readPages(owner, "0123456789abcdef0123456789abcdef", 200);
  assert.deepEqual(found, []);
  assert.ok(looked.length > 1, `${looked.length} pages`);
  for (const rows of looked) assert.ok(rows <= 10_240 + 2 * MOST, `${rows}`);
});
