// The counts that quotas limit; runs on SQLite and on PostgreSQL.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { QuotaKind } from "../../src/kernel/quotas.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import type { Store } from "../../src/store/store.js";
import { childUid, groupRow, identityRow, rootUid } from "../support/rows.js";

/** Registers the suite under `name` for the store that `open` opens empty. */
export function usageSuite(name: string, open: () => Promise<Store>): void {
  describe(name, () => {
    let store: Store;
    before(async () => {
      store = await open();
    });
    after(() => store.close());
    const count = (kind: QuotaKind, owner: string, cap: number) => store.read((tx) => tx.usage.count(kind, owner, cap));

    test("roots count for their creator, up to the cap, until they are deleted", async () => {
      const [ann, bob] = [rootUid(0xa1), rootUid(0xb1)];
      const roots = [1, 2, 3, 4].map((n) => groupRow(rootUid(n), { createdBy: n === 4 ? bob : ann }));
      await store.write(async (tx) => {
        for (const row of roots) await tx.table(groupKind).insert(row);
        await tx.table(groupKind).insert(groupRow(childUid(rootUid(1), 1)));
        await tx.table(groupKind).insert(groupRow(rootUid(5)));
      });
      assert.deepEqual([await count("roots", ann, 20), await count("roots", bob, 20)], [3, 1]);
      assert.equal(await count("roots", ann, 2), 2);
      const [, last] = roots;
      assert.ok(last);
      await store.write((tx) => tx.table(groupKind).delete(last.uid));
      assert.equal(await count("roots", ann, 20), 2);
    });

    test("groups count without their root, in one organisation alone", async () => {
      const [root, other] = [rootUid(0x10), rootUid(0x11)];
      const child = childUid(root, 1);
      await store.write(async (tx) => {
        for (const uid of [root, other, child, childUid(child, 1), childUid(other, 1)])
          await tx.table(groupKind).insert(groupRow(uid));
      });
      assert.deepEqual([await count("groups", root, 20), await count("groups", other, 20)], [2, 1]);
      assert.equal(await count("groups", rootUid(0x99), 20), 0);
    });

    test("identities count with the people of the organisation's providers, up to the cap", async () => {
      // Their uids are adjacent, so that a range that is too wide would include the other organisations.
      const [before, root, after] = [rootUid(0x1f), rootUid(0x20), rootUid(0x21)];
      await store.write(async (tx) => {
        for (const uid of [before, root, after]) {
          await tx.table(groupKind).insert(groupRow(uid));
          await tx.table(identityKind).insert(identityRow(childUid(uid, 1)));
          for (let n = 0; n < 4; n++) {
            const person = rootUid(0xc00 + Number.parseInt(uid, 16) * 8 + n);
            await tx.table(identityKind).insert(identityRow(person, { providerUid: childUid(uid, 0x50 + n) }));
          }
        }
        await tx.table(identityKind).insert(identityRow(rootUid(0xfff)));
      });
      for (const uid of [before, root, after]) assert.equal(await count("identities", uid, 20), 5);
      assert.deepEqual([await count("identities", root, 3), await count("identities", root, 1)], [3, 1]);
    });
  });
}
