// A person may own thousands of organisations: the lists of that person are right, and other callers do not wait.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { restAs } from "../contract/rest.js";
import { type Harness, startHarness } from "../support/harness.js";
import { bindingRow, groupRow, identityRow, rootUid } from "../support/rows.js";
import { chooseScale, isCampaign } from "../support/scale.js";

const ROOTS = chooseScale(15_000, 6_000);
/**
 * The longest that one caller may keep the event loop, in milliseconds. A list in one tick takes half a second of 15,000,
 * and a fifth of one of 6,000.
 */
const MAX_TICK_MS = isCampaign ? 20 : 60;
/** Collecting garbage and compiling fall into some tick: what a list costs shows in the best of so many rounds. */
const ROUNDS = 10;
/** Pages that a list is followed from each of its ends: in a campaign all of them. */
const PAGES = chooseScale(Number.POSITIVE_INFINITY, 6);

let harness: Harness;
let token: string;
const uids: string[] = [];
const names = new Map<string, string>();

before(async () => {
  harness = await startHarness();
  const person = await harness.identity();
  token = person.token;
  const owner = builtinRoleUid("owner");
  await harness.app.installation.store.write(async (tx) => {
    for (let i = 0; i < ROOTS; i++) {
      const uid = rootUid(0x100_0000 + ((i * 7919) % 1_000_003));
      const name = `name ${(i * 31) % 9_973}`;
      uids.push(uid);
      names.set(uid, name);
      await tx.table(groupKind).insert(groupRow(uid, { name, createTimeMs: 1_000 + ((i * 13) % 4_001) }));
      await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(uid), person.uid, owner, { automatic: true }));
      if (i % 5 === 0) {
        const relationship = { relation: 1, relationship: {} };
        await tx
          .table(identityKind)
          .insert(identityRow(randomIds.newUid(uid), { name: `i ${i % 7}`, ...relationship }));
      }
    }
  });
  uids.sort();
});
after(() => harness.stop());

// In time of the processor: how long others let this process wait is nothing that a list can help.
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The longest block of the event loop while `work` ran, in milliseconds. */
async function worstTickOf(work: () => Promise<unknown>): Promise<number> {
  let worst = 0;
  let last = cpuMs();
  let running = true;
  const sample = () => {
    const now = cpuMs();
    worst = Math.max(worst, now - last);
    last = now;
    if (running) setImmediate(sample);
  };
  setImmediate(sample);
  await work();
  running = false;
  return worst;
}

/** One round within the limit shows that the limit is possible. */
async function bestWorstTick(work: () => Promise<unknown>, limitMs = MAX_TICK_MS): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS && best >= limitMs; round++) best = Math.min(best, await worstTickOf(work));
  return best;
}

const lists: readonly (readonly [path: string, total: number, base?: string])[] = [
  ["/groups", ROOTS],
  ["/groups?orderBy=name", ROOTS],
  ["/groups?orderBy=created_at%20desc&pageSize=200", ROOTS],
  ["/groups?uidp.inRoot=true&orderBy=name", ROOTS],
  ["/groups?uidp.childrenOf=/", ROOTS],
  [`/groups?orderBy=name&skip=${ROOTS / 2}`, ROOTS],
  ["/groups?name=name%2042", [...Array(ROOTS).keys()].filter((i) => (i * 31) % 9_973 === 42).length],
  ["/identities", ROOTS / 5],
  ["/identities?orderBy=name%20desc", ROOTS / 5],
  ["/identities?relationshipType=RELATIONSHIP_TYPE_CLAIM_MATCH", ROOTS / 5],
  ["/roleBindings", ROOTS],
  ["/roleBindings?orderBy=created_at%20desc", ROOTS],
  ["/roleBindings?role=ROLE", ROOTS],
  ["/repos", 0, "/registry/v2beta1"],
  ["/tags", 0, "/registry/v2beta1"],
  ["/bindings", ROOTS, "/bindings/v1"],
];

describe(`a person with ${ROOTS} organisations`, () => {
  for (const [path, total, base] of lists) {
    it(`keeps the event loop less than ${MAX_TICK_MS} ms with ${path}`, async (t) => {
      const rest = restAs(harness.url, token, base);
      let found: { totalCount?: unknown } | undefined;
      let tookMs = 0;
      const worst = await bestWorstTick(async () => {
        const startMs = performance.now();
        const { json, status } = await rest("GET", path.replace("ROLE", builtinRoleUid("owner")));
        tookMs = performance.now() - startMs;
        assert.equal(status, 200, JSON.stringify(json));
        found = json as typeof found;
      });
      t.diagnostic(`worst tick ${worst.toFixed(1)} ms, the last answer after ${tookMs.toFixed(0)} ms`);
      assert.equal(found?.totalCount, String(total));
      assert.ok(worst < MAX_TICK_MS, `${worst.toFixed(1)} ms`);
    });
  }

  it("and with a write that is about one of them, and with many lists at once", async (t) => {
    const works: Record<string, () => Promise<unknown>> = {
      create: () => restAs(harness.url, token)("POST", `/groups/${uids[0]}`, { name: "one" }),
      "twelve at once": () =>
        Promise.all(Array.from({ length: 12 }, () => restAs(harness.url, token)("GET", "/groups?orderBy=name"))),
    };
    for (const [what, work] of Object.entries(works)) {
      // The clients of many calls at once share this event loop with the service.
      const worst = await bestWorstTick(work, 2 * MAX_TICK_MS);
      t.diagnostic(`${what}: worst tick ${worst.toFixed(1)} ms`);
      assert.ok(worst < 2 * MAX_TICK_MS, `${what}: ${worst.toFixed(1)} ms`);
    }
  });

  it("sees each organisation once on the pages of a list, in its order", async (t) => {
    const rest = restAs(harness.url, token);
    const byName = [...uids].sort((a, b) => {
      const [x = "", y = ""] = [names.get(a), names.get(b)];
      return x < y ? -1 : x > y ? 1 : a < b ? -1 : 1;
    });
    for (const [orderBy, expected] of [
      ["name", byName],
      ["name desc", [...byName].reverse()],
    ] as const) {
      const seen: string[] = [];
      let pageToken = "";
      let slowest = 0;
      do {
        const query = new URLSearchParams({ orderBy, pageSize: "200", pageToken, "uidp.inRoot": "true" });
        const startMs = performance.now();
        const { json } = await rest("GET", `/groups?${query}`);
        slowest = Math.max(slowest, performance.now() - startMs);
        const page = json as { groups: { uid: string }[]; nextPageToken?: string };
        seen.push(...page.groups.map(({ uid }) => uid));
        pageToken = page.nextPageToken ?? "";
      } while (pageToken !== "" && seen.length < PAGES * 200);
      t.diagnostic(`${orderBy}: the slowest page took ${slowest.toFixed(0)} ms`);
      assert.equal(seen.length, Math.min(PAGES * 200, ROOTS));
      assert.deepEqual(seen, expected.slice(0, seen.length));
    }
  });
});
