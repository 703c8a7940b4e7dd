// Callers that create side by side: they never exceed a quota, and nothing is lost from the count. Run on every store
// there is.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { defaultLimits, type QuotaKind } from "../../src/kernel/quotas.js";
import type { RoomCheck } from "../../src/pipeline/method-table.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import type { Store } from "../../src/store/store.js";
import { type InProcess, inProcess } from "../support/in-process.js";
import { bindingRow, childUid, groupRow, identityRow } from "../support/rows.js";

/** How many calls there are at a time. */
const CALLS = 98;
/** A limit that each transaction counts up to. */
const SMALL = 20;
/** A limit of which most is counted before the transactions. */
const LARGE = 1_000;
/** How many of those exist: fewer than the share from which transactions count, and there is room for half of the calls. */
const FILLED = LARGE - CALLS / 2;
const IAM = "/chainguard.platform.iam.v2beta1";
const role = builtinRoleUid("viewer");

/** Registers the suite under `name` for the store that `open` opens empty. */
export function quotaRaceSuite(name: string, open: () => Promise<Store>): void {
  describe(name, () => {
    let store: Store;
    let call: InProcess;
    let unchecked: InProcess;
    const limits = { ...defaultLimits, roots: SMALL, groups: LARGE, bindings: LARGE, identityBindings: SMALL };
    before(async () => {
      store = await open();
      call = await inProcess(store, randomIds, Date.now, limits);
      unchecked = await inProcess(store, randomIds, Date.now, limits, withoutRecount);
    });
    after(() => store.close());

    /** A person, with an organisation of theirs that has this many groups. */
    async function organisation(groups = 0) {
      const owner = randomIds.newUid();
      await store.write((tx) => tx.table(identityKind).insert(identityRow(owner)));
      const created = await call(`${IAM}.GroupsService/CreateGroup`, owner, { group: { name: "root" } });
      const { uid: root } = created as { uid: string };
      await store.write(async (tx) => {
        for (let n = 0; n < groups; n++) await tx.table(groupKind).insert(groupRow(childUid(root, n)));
      });
      return { owner, root };
    }

    /** Creates at once; answers how many calls succeeded. */
    async function countCreated(create: (n: number) => Promise<object>): Promise<number> {
      const results = await Promise.allSettled(Array.from({ length: CALLS }, (_, n) => create(n)));
      for (const result of results) {
        if (result.status === "fulfilled") continue;
        const { code, rawMessage } = ConnectError.from(result.reason);
        assert.equal(code, Code.ResourceExhausted, rawMessage);
      }
      return results.filter(({ status }) => status === "fulfilled").length;
    }

    const usage = (kind: QuotaKind, owner: string, root?: string) =>
      store.read((tx) => tx.usage.count(kind, owner, 1_000_000, root));

    test("create no more than a small limit", async () => {
      const { owner } = await organisation();
      const create = () => call(`${IAM}.GroupsService/CreateGroup`, owner, { group: { name: "another" } });
      assert.equal(await countCreated(create), SMALL - 1);
      assert.equal(await usage("roots", owner), SMALL);
    });

    test("create no more than a large limit that is not near yet", async () => {
      const { owner, root } = await organisation(FILLED);
      const create = () => call(`${IAM}.GroupsService/CreateGroup`, owner, { parent: root, group: { name: "below" } });
      assert.equal(await countCreated(create), LARGE - FILLED);
      assert.equal(await usage("groups", root), LARGE);
    });

    test("create no more than a large limit several at a time", async () => {
      const { owner, root } = await organisation();
      await store.write(async (tx) => {
        const existing = await usage("bindings", root);
        for (let n = existing; n < FILLED; n++) {
          await tx.table(roleBindingKind).insert(bindingRow(childUid(root, n), randomIds.newUid(), role));
        }
      });
      const create = () => {
        const requests = Array.from({ length: 5 }, () => ({ roleBinding: { identityUid: randomIds.newUid() } }));
        const request = { parent: root, roleUid: role, requests };
        return call(`${IAM}.RoleBindingsService/BatchCreateRoleBindings`, owner, request);
      };
      const created = 5 * (await countCreated(create));
      const used = await usage("bindings", root);
      assert.equal(used, FILLED + created);
      assert.ok(used <= LARGE && used > LARGE - 5, `${used} of ${LARGE}`);
    });

    test("bind an identity no more often than its limit, by new bindings and by changed ones", async () => {
      const { owner, root } = await organisation(CALLS);
      const identityUid = randomIds.newUid();
      const others = await Promise.all(
        Array.from({ length: CALLS / 2 }, async (_, n) => {
          const uid = childUid(childUid(root, n), 1);
          await store.write((tx) => tx.table(roleBindingKind).insert(bindingRow(uid, randomIds.newUid(), role)));
          return uid;
        }),
      );
      const create = (n: number) => {
        const uid = others[n];
        if (uid === undefined) {
          const request = { parent: childUid(root, n), roleBinding: { identityUid, roleUid: role } };
          return call(`${IAM}.RoleBindingsService/CreateRoleBinding`, owner, request);
        }
        const request = { roleBinding: { uid, identityUid }, updateMask: { paths: ["identity_uid"] } };
        return call(`${IAM}.RoleBindingsService/UpdateRoleBinding`, owner, request);
      };
      assert.equal(await countCreated(create), SMALL);
      assert.equal(await usage("identityBindings", identityUid, root), SMALL);
      // Another organisation has nothing to do with it: anybody can bind a person.
      const other = await organisation();
      assert.equal(await usage("identityBindings", identityUid, other.root), 0);
      const request = { parent: other.root, roleBinding: { identityUid, roleUid: role } };
      await call(`${IAM}.RoleBindingsService/CreateRoleBinding`, other.owner, request);
    });

    test("would exceed it if their transactions did not count", async () => {
      const { owner } = await organisation();
      const create = () => unchecked(`${IAM}.GroupsService/CreateGroup`, owner, { group: { name: "another" } });
      assert.ok((await countCreated(create)) > SMALL);
    });
  });
}

// As it was before transactions counted.
function withoutRecount(check: RoomCheck): RoomCheck {
  return async (request, caller, tx, reservation) => {
    if (reservation !== undefined) await check(request, caller, tx, reservation);
  };
}
