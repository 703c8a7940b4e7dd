// Callers that create side by side: by how much they exceed a quota, and that
// nothing is lost from the count. Run on every store there is.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { defaultLimits, type QuotaKind } from "../../src/kernel/quotas.js";
import type { Store } from "../../src/store/port.js";
import { type InProcess, inProcess } from "../support/in-process.js";
import { identityRow } from "../support/rows.js";

/** How many callers there are at a time. */
const CALLERS = 16;
/** How often one tries at most: where nothing refused, all of them together would create far too many. */
const TRIES = 60;
/** How many things there may be. */
const LIMIT = 100;
const IAM = "/chainguard.platform.iam.v2beta1";

/** Registers the suite under `name` for the store that `open` opens empty. */
export function quotaRaceSuite(name: string, open: () => Promise<Store>): void {
  describe(name, () => {
    let store: Store;
    let call: InProcess;
    let owner: string;
    let root: string;
    before(async () => {
      store = await open();
      const limits = { ...defaultLimits, roots: LIMIT, groups: LIMIT, bindings: LIMIT };
      call = await inProcess(store, randomIds, Date.now, limits);
      owner = randomIds.newUid();
      await store.write((tx) => tx.identities.insert(identityRow(owner)));
      const created = await call(`${IAM}.GroupsService/CreateGroup`, owner, { group: { name: "root" } });
      root = (created as { uid: string }).uid;
    });
    after(() => store.close());

    const usage = (kind: QuotaKind, of: string) => store.read((tx) => tx.usage.count(kind, of, 1_000_000));

    /** Creates until it is refused; answers how many calls succeeded. */
    async function countCreated(create: () => Promise<object>): Promise<number> {
      let created = 0;
      for (let tries = 0; tries < TRIES; tries++) {
        try {
          await create();
          created++;
        } catch (error) {
          const { code, rawMessage } = ConnectError.from(error);
          if (code === Code.ResourceExhausted) return created;
          // A call that lost against the others too often; it created nothing.
          assert.equal(code, Code.Aborted, rawMessage);
        }
      }
      return created;
    }

    const cases: readonly {
      readonly kind: QuotaKind;
      /** How many things a call creates. */
      readonly each: number;
      readonly of: () => string;
      readonly create: () => Promise<object>;
    }[] = [
      {
        kind: "groups",
        each: 1,
        of: () => root,
        create: () => call(`${IAM}.GroupsService/CreateGroup`, owner, { parent: root, group: { name: "below" } }),
      },
      {
        kind: "bindings",
        each: 5,
        of: () => root,
        create: () => {
          const requests = Array.from({ length: 5 }, () => ({ roleBinding: { identityUid: randomIds.newUid() } }));
          const roleUid = builtinRoleUid("viewer");
          return call(`${IAM}.RoleBindingsService/BatchCreateRoleBindings`, owner, { parent: root, roleUid, requests });
        },
      },
      {
        kind: "roots",
        each: 1,
        of: () => owner,
        create: () => call(`${IAM}.GroupsService/CreateGroup`, owner, { group: { name: "another" } }),
      },
    ];

    for (const { kind, each, of, create } of cases) {
      test(`${CALLERS} callers exceed the quota of ${kind} by what they have in flight at most`, async (t) => {
        const earlier = await usage(kind, of());
        const calls = await Promise.all(Array.from({ length: CALLERS }, () => countCreated(create)));
        const created = each * calls.reduce((sum, count) => sum + count, 0);
        const used = await usage(kind, of());
        t.diagnostic(`${created} created, ${used} of ${LIMIT}`);
        assert.equal(used, earlier + created);
        assert.ok(used > LIMIT - each, `${used}: refused although there was room`);
        // The last of them saw room for itself, and none of the others that were under way.
        assert.ok(used <= LIMIT + (CALLERS - 1) * each, `${used} of ${LIMIT}`);
        await assert.rejects(create, (error) => ConnectError.from(error).code === Code.ResourceExhausted);
        assert.equal(await usage(kind, of()), used);
      });
    }
  });
}
