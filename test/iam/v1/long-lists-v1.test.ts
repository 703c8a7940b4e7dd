// Lists of version 1 that are longer than what is read at once: all of it comes, in order.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { DescMessage, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { GroupAccountAssociations } from "#gen/chainguard/platform/iam/account_associations_pb.js";
import { ExternalGroupRoleMappings } from "#gen/chainguard/platform/iam/external_group_role_mappings_pb.js";
import { GroupInvites } from "#gen/chainguard/platform/iam/group_invites_pb.js";
import { Groups } from "#gen/chainguard/platform/iam/group_pb.js";
import { IdentityProviders } from "#gen/chainguard/platform/iam/identity_providers_pb.js";
import { noScim } from "../../../src/iam/identity-providers/identity-provider.js";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { accountAssociationKind } from "../../../src/store/iam/account-associations.js";
import { groupInviteKind } from "../../../src/store/iam/group-invites.js";
import { groupMappingKind } from "../../../src/store/iam/group-mappings.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import type { Tx } from "../../../src/store/transaction.js";
import { childUid, groupRow } from "../../support/rows.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";
import { wireNames, wireOf } from "./wires.js";

const COUNT = 1_101;
const roleUid = builtinRoleUid("viewer");
const times = { createTimeMs: 1_000, updateTimeMs: 1_000 };

interface List {
  readonly name: string;
  readonly method: DescMethodUnary;
  readonly idOf: (item: never) => string;
  /** Where the things lie that this puts there. */
  readonly fill: (tx: Tx, root: string) => Promise<string>;
}

/** Creates rows one after the other at the uids below `place`. */
async function each(parent: string, insert: (uid: string) => unknown): Promise<string> {
  for (let n = 0; n < COUNT; n++) await insert(childUid(parent, n));
  return parent;
}

const provider = (uid: string, groupUid: string) => ({
  ...{
    uid,
    groupUid,
    name: "p",
    description: "",
    defaultRole: roleUid,
    oidc: {},
    lacksDefaultRole: false,
    sealedSecret: "",
    scim: noScim,
  },
  ...times,
});

const lists: readonly List[] = [
  {
    name: "groups",
    method: Groups.method.list,
    idOf: ({ id }: { id: string }) => id,
    async fill(tx, root) {
      const parent = randomIds.newUid(root);
      await tx.table(groupKind).insert(groupRow(parent));
      return each(parent, (uid) => tx.table(groupKind).insert(groupRow(uid)));
    },
  },
  {
    name: "identity providers",
    method: IdentityProviders.method.list,
    idOf: ({ id }: { id: string }) => id,
    fill: (tx, root) => each(root, (uid) => tx.table(identityProviderKind).insert(provider(uid, root))),
  },
  {
    name: "external group role mappings",
    method: ExternalGroupRoleMappings.method.list,
    idOf: ({ id }: { id: string }) => id,
    async fill(tx, root) {
      const providerUid = randomIds.newUid(root);
      await tx.table(identityProviderKind).insert(provider(providerUid, root));
      const mapping = { providerUid, roleUid, scope: root, createTimeMs: 1_000 };
      return each(providerUid, (uid) =>
        tx.table(groupMappingKind).insert({ uid, ...mapping, externalGroupId: uid, createdBy: null }),
      );
    },
  },
  {
    name: "account associations",
    method: GroupAccountAssociations.method.list,
    idOf: ({ group }: { group: string }) => group,
    async fill(tx, root) {
      const parentUid = randomIds.newUid(root);
      await tx.table(groupKind).insert(groupRow(parentUid));
      const same = { parentUid, name: "a", description: "", accounts: {}, ...times };
      return each(parentUid, async (uid) => {
        await tx.table(groupKind).insert(groupRow(uid));
        await tx.table(accountAssociationKind).insert({ uid, ...same });
      });
    },
  },
  {
    name: "group invites",
    method: GroupInvites.method.list,
    idOf: ({ id }: { id: string }) => id,
    async fill(tx, root) {
      const groupUid = randomIds.newUid(root);
      await tx.table(groupKind).insert(groupRow(groupUid));
      const same = { groupUid, roleUid, email: "", singleUse: false, codeHash: "", createdBy: "" };
      const invite = { ...same, expireTimeMs: 2_000, createTimeMs: 1_000, updateTimeMs: 1_000 };
      return each(groupUid, (uid) => tx.table(groupInviteKind).insert({ uid, ...invite, keyId: uid }));
    },
  },
];

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

describe("a list has every row", () => {
  for (const { name, method, idOf, fill } of lists) {
    it(`of ${name}`, async () => {
      const parent = await world.write((tx) => fill(tx, world.root));
      const expected = Array.from({ length: COUNT }, (_, n) => childUid(parent, n));
      for (const wireName of wireNames) {
        const wire = wireOf(wireName, world.url, world.owner.token);
        const { items } = (await wire.call(method, {})) as MessageShape<DescMessage> & { items: never[] };
        const ids = items.map(idOf).filter((id) => id.startsWith(`${parent}/`));
        assert.deepEqual(ids, expected, wireName);
        wire.close();
      }
    });
  }
});
