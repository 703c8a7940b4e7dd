// What holds when nodes and commands act in the same moment, on either database.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { generateTokenKey } from "../../../src/issuer/keys/key-generation.js";
import type { KeyRing } from "../../../src/issuer/keys/key-ring.js";
import { addSuccessor, revokeKey } from "../../../src/issuer/keys/key-states.js";
import type { Store } from "../../../src/store/store.js";
import type { KeyRow, KeyState } from "../../../src/store/tables/tokens.js";
import { type KeyKit, MINUTE, openKit, schedule } from "./key-kit.js";

const NODES = 4;

/**
 * Declares the tests.
 *
 * @param open gives a function that opens the same new, empty database each time
 */
export function keyNodesSuite(open: () => Promise<(() => Promise<Store>) | undefined>): void {
  async function nodes(): Promise<{ kit: KeyKit; rings: KeyRing[] }> {
    const kit = await openKit(await open());
    const stores: Store[] = [];
    while (stores.length < NODES) stores.push(await kit.anotherStore());
    return { kit, rings: await Promise.all(stores.map((store) => kit.node(0, store))) };
  }

  const inState = async (kit: KeyKit, state: KeyState) => (await kit.rows()).filter((row) => row.state === state);

  describe("keys, when several nodes act at once", () => {
    test("nodes that start on nothing agree on the first keys", async (t) => {
      const { kit, rings } = await nodes();
      t.after(kit.close);
      const rows = await kit.store.read((tx) => tx.keys.list());
      // The registry trusts the key that comes next ahead of time.
      const purposes = ["api-token", "audit", "page-token", "registry", "registry"];
      assert.deepEqual(rows.map(({ purpose }) => purpose).sort(), purposes);
      for (const ring of rings) {
        assert.equal(ring.getSigningKey().kid, rings[0]?.getSigningKey().kid);
        assert.deepEqual(ring.listPublicJwks(), rings[0]?.listPublicJwks());
      }
    });

    test("each state change is made once", async (t) => {
      const { kit, rings } = await nodes();
      t.after(kit.close);
      const quick = { ...schedule, active: 10 * MINUTE };
      const all: string[] = [];
      for (let i = 0; i < 200; i++) {
        kit.nowMs += MINUTE;
        const moves = (await Promise.all(rings.map((ring) => ring.advanceKeys(quick)))).flat();
        all.push(...moves.map(({ kid, state }) => `${kid} ${state}`));
        assert.ok(moves.length <= 3, "one key in, one on, one out");
        assert.equal((await inState(kit, "active")).length, 1);
        assert.ok((await inState(kit, "pending")).length <= 1);
        await nextTurn();
      }
      assert.equal(new Set(all).size, all.length);
      const rotations = all.filter((move) => move.endsWith("active")).length;
      // In steps of a minute a key waits for 6 min, and is made 5 min after the one before began.
      assert.equal(rotations, Math.floor(200 / 11));
      assert.ok(all.filter((move) => move.endsWith("removed")).length >= rotations - 8);
    });

    test("commands that are given twice, beside nodes that advance keys, leave one key in use and one waiting", async (t) => {
      const { kit, rings } = await nodes();
      t.after(kit.close);
      const spare = () => generateTokenKey("ES256", kit.masterKey, kit.nowMs);
      for (let i = 0; i < 30; i++) {
        kit.nowMs += 4 * MINUTE;
        const [active] = await inState(kit, "active");
        assert.ok(active);
        const [first, second, ...others] = await Promise.all([spare(), spare(), spare(), spare()]);
        const revoke = (key: KeyRow) => kit.store.write((tx) => revokeKey(tx, active.kid, key));
        const [revoked] = await Promise.all([
          Promise.allSettled([revoke(first), revoke(second)]),
          ...others.map((key) => kit.store.write((tx) => addSuccessor(tx, key))),
          ...rings.map((ring) => ring.advanceKeys(schedule)),
        ]);
        assert.deepEqual(revoked.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
        assert.equal((await inState(kit, "active")).length, 1);
        assert.ok((await inState(kit, "pending")).length <= 1);
        assert.equal(
          (await kit.rows()).some(({ kid }) => kid === active.kid),
          false,
        );
        await nextTurn();
        await Promise.all(rings.map((ring) => ring.advanceKeys(schedule)));
        for (const ring of rings) assert.equal(ring.findVerifyingKey(active.kid), undefined);
      }
    });
  });
}
