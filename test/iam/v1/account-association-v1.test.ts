// Account associations, version 1, beside version 2: a group has one, by its own id.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AccountAssociationsSchema,
  AccountAssociationsCheckRequest_AccountType as AccountType,
  GroupAccountAssociations,
  AccountAssociationsStatus_State as State,
} from "#gen/chainguard/platform/iam/account_associations_pb.js";
import { AccountAssociationsService } from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { identityRow } from "../../support/rows.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";
import { type Wire, wireNames, wireOf } from "./wires.js";

const v1 = GroupAccountAssociations.method;
const v2 = AccountAssociationsService.method;

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const github = {
  appInstallations: { 7: { installations: [{ installationId: 9_007_199_254_740_993n, name: "acme" }] } },
};
const providers = {
  amazon: { account: "123456789012" },
  google: { projectId: "p", projectNumber: "42" },
  azure: { tenantId: "t", clientIds: { ingester: "c" } },
  github,
};

/** A group with a service principal in it, and an association of it that has everything. */
async function everything() {
  const group = await world.group();
  const uid = randomIds.newUid(group);
  const principal = { relation: 4, relationship: { servicePrincipal: "SERVICE_PRINCIPAL_INGESTER" } };
  await world.write((tx) => tx.table(identityKind).insert(identityRow(uid, principal)));
  const chainguard = { serviceBindings: { ingester: uid } };
  return { group, name: "accounts", description: "d", ...providers, chainguard };
}

/** A message as plain values, without what differs from version to version. */
function plain(message: object | undefined): unknown {
  const skipped = /^(\$typeName|uid|group|createTime|createdAt|updateTime|updatedAt)$/;
  return JSON.parse(
    JSON.stringify(message, (key, value) =>
      skipped.test(key) ? undefined : typeof value === "bigint" ? String(value) : value,
    ),
  );
}

for (const name of wireNames) {
  describe(`account associations over ${name}`, () => {
    let wire: Wire;
    before(() => {
      wire = wireOf(name, world.url, world.owner.token);
    });
    after(() => wire.close());
    const readList = async (filter: MessageInitShape<typeof v1.list.input>, token?: string) =>
      (await wire.call(v1.list, filter, token)).items;

    it("are the same in both versions, whichever created them", async () => {
      const [first, second] = [await everything(), await everything()];
      const made = await wire.call(v1.create, first);
      assert.equal(made.group, first.group);
      const read = await wire.call(v2.getAccountAssociation, { uid: first.group });
      assert.deepEqual(plain(made), plain(first));
      assert.deepEqual(plain(read), plain(made));
      assert.deepEqual([made.createdAt, made.updatedAt], [read.createTime, read.updateTime]);
      assert.ok(made.createdAt && made.updatedAt);

      const { group, ...accountAssociation } = second;
      const other = await wire.call(v2.createAccountAssociation, { parent: group, accountAssociation });
      const [shown] = await readList({ group });
      assert.deepEqual([shown?.group, plain(shown)], [group, plain(other)]);

      await wire.call(v2.updateAccountAssociation, {
        accountAssociation: { uid: group, name: "renamed" },
        updateMask: { paths: ["name"] },
      });
      assert.equal((await readList({ group }))[0]?.name, "renamed");
      await wire.call(v1.update, { group, name: "again" });
      assert.equal((await wire.call(v2.getAccountAssociation, { uid: group })).name, "again");

      await wire.call(v1.delete, { group });
      assert.match(await wire.expectError(v2.getAccountAssociation, { uid: group }), /^Not found: account association/);
      await wire.call(v2.deleteAccountAssociation, { uid: first.group });
      assert.deepEqual(await readList({ group: first.group }), []);
      await wire.call(v1.delete, { group: first.group });
    });

    it("forget what an update leaves out", async () => {
      const whole = await everything();
      const { createdAt } = await wire.call(v1.create, whole);
      const fields = ["description", "amazon", "google", "azure", "github", "chainguard"] as const;
      for (const field of fields) {
        const { [field]: _, ...sent } = whole;
        const changed = await wire.call(v1.update, sent as MessageInitShape<typeof AccountAssociationsSchema>);
        const without = field === "description" ? { ...sent, description: "" } : sent;
        assert.deepEqual(plain(changed), plain(without), field);
        assert.deepEqual(plain((await readList({ group: whole.group }))[0]), plain(without), field);
        assert.deepEqual(changed.createdAt, createdAt);
      }
    });

    it("are found by group and name", async () => {
      const [a, b, c] = [await world.group(), await world.group(), await world.group()].sort() as [
        string,
        string,
        string,
      ];
      const only = `only ${name.toLowerCase()}`;
      await wire.call(v1.create, { group: a, name: only });
      await wire.call(v1.create, { group: b, name: "b" });
      await wire.call(v1.create, { group: c, name: only });
      const rows: readonly (readonly [filter: MessageInitShape<typeof v1.list.input>, groups: string[]])[] = [
        [{ group: b }, [b]],
        [{ name: only }, [a, c]],
        [{ group: a, name: only }, [a]],
        [{ group: b, name: only }, []],
        [{ group: world.root }, []],
      ];
      for (const [filter, groups] of rows) {
        const found = (await readList(filter)).map(({ group }) => group);
        assert.deepEqual(found, groups, JSON.stringify(filter));
      }
      const all = (await readList({})).map(({ group }) => group);
      assert.deepEqual(
        all.filter((group) => [a, b, c].includes(group)),
        [a, b, c],
      );
    });

    it("check an account as version 2 does", async () => {
      const { group } = await wire.call(v1.create, {
        group: await world.group(),
        name: "a",
        google: providers.google,
      });
      const rows = [
        [AccountType.GOOGLE, "NOT_VERIFIED"],
        [AccountType.AMAZON, "NOT_CONFIGURED"],
        [AccountType.AZURE, "NOT_CONFIGURED"],
      ] as const;
      for (const [accountType, reason] of rows) {
        const found = await wire.call(v1.check, { group, accountType });
        const other = await wire.call(v2.checkAccountAssociation, { uid: group, providerType: accountType as number });
        assert.deepEqual([found.ready, found.reason], [State.NotReady, reason]);
        assert.equal(found.message, other.message);
      }
    });

    it("name what is wrong as version 1 calls it", async () => {
      const free = await world.group();
      const taken = await world.group();
      await wire.call(v1.create, { group: taken, name: "a" });
      const rule = "must be a uid, such as the service assigns";
      const rows: readonly (readonly [failure: Promise<string>, text: string])[] = [
        [wire.expectError(v1.create, { group: free }), "name: name must match ^[a-z0-9 ._-]{1,}$"],
        [
          wire.expectError(v1.update, { group: taken, name: "a", amazon: { account: "1" } }),
          "amazon: amazon.account must be 12 digits",
        ],
        [wire.expectError(v1.create, { group: "nonsense", name: "a" }), `group: group ${rule}`],
        [wire.expectError(v1.list, { group: "nonsense" }), `group: group ${rule}`],
        [wire.expectError(v1.check, { group: taken }), "accountType: accountType is required"],
      ];
      for (const [failure, text] of rows) assert.equal(await failure, `Invalid argument: ${text}`);
      assert.equal(
        await wire.expectError(v1.create, { group: taken, name: "b" }),
        `Already exists: account association: ${taken}`,
      );
      const missing = `Not found: account association: there is no account association ${free}`;
      assert.equal(await wire.expectError(v1.update, { group: free, name: "a" }), missing);
      assert.equal(await wire.expectError(v1.check, { group: free, accountType: AccountType.AZURE }), missing);
    });
  });
}
