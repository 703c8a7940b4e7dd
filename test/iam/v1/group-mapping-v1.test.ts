// External group role mappings, version 1, beside version 2.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ExternalGroupRoleMappings } from "#gen/chainguard/platform/iam/external_group_role_mappings_pb.js";
import { ExternalGroupRoleMappingsService } from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";
import { type Wire, wireNames, wireOf } from "./wires.js";

const v1 = ExternalGroupRoleMappings.method;
const v2 = ExternalGroupRoleMappingsService.method;
const viewer = builtinRoleUid("viewer");

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

async function provider(): Promise<string> {
  const oidc = { issuer: "https://login.example", clientId: "id", clientSecret: "s" };
  const { json, text } = await world.owner.rest("POST", `/identityProviders/${world.root}`, {
    name: "login",
    defaultRole: viewer,
    oidc,
  });
  assert.ok(json?.uid, text);
  return String(json.uid);
}

for (const name of wireNames) {
  describe(`mappings over ${name}`, () => {
    let wire: Wire;
    before(() => {
      wire = wireOf(name, world.url, world.owner.token);
    });
    after(() => wire.close());
    const createMapping = async (parentId: string, externalGroupId: string) => {
      const mapping = { externalGroupId, roleUidp: viewer, scope: world.root };
      return wire.call(v1.create, { parentId, mapping });
    };
    const readList = async (filter: MessageInitShape<typeof v1.list.input>, token?: string) =>
      (await wire.call(v1.list, filter, token)).items.map(({ id }) => id);

    it("are the same in both versions, whichever created them", async () => {
      const parent = await provider();
      const mine = await createMapping(parent, "a");
      const read = await wire.call(v2.getExternalGroupRoleMapping, { uid: mine.id });
      assert.deepEqual(
        [read.identityProviderUid, read.externalGroupId, read.roleUid, read.scope],
        [parent, "a", viewer, world.root],
      );
      assert.deepEqual([mine.createdAt, mine.updatedAt], [read.createTime, read.createTime]);

      const externalGroupRoleMapping = { externalGroupId: "b", roleUid: viewer, scope: world.root };
      const other = await wire.call(v2.createExternalGroupRoleMapping, { parent, externalGroupRoleMapping });
      const shown = await wire.call(v1.get, { uid: other.uid });
      const fields = [shown.id, shown.identityProviderUidp, shown.externalGroupId, shown.roleUidp, shown.scope];
      assert.deepEqual(fields, [other.uid, parent, "b", viewer, world.root]);
      assert.deepEqual(shown.createdAt, other.createTime);

      await wire.call(v1.delete, { id: other.uid });
      assert.match(await wire.expectError(v2.getExternalGroupRoleMapping, { uid: other.uid }), /^Not found: external/);
      await wire.call(v2.deleteExternalGroupRoleMapping, { uid: mine.id });
      const missing = `Not found: external group role mapping: there is no external group role mapping ${mine.id}`;
      assert.equal(await wire.expectError(v1.get, { uid: mine.id }), missing);
      assert.equal(await wire.expectError(v1.delete, { id: mine.id }), missing);
    });

    it("are filtered by provider and parent", async () => {
      const [here, there] = [await provider(), await provider()];
      const [a, b] = [(await createMapping(here, "a")).id, (await createMapping(here, "b")).id].sort() as [
        string,
        string,
      ];
      const { id: c } = await createMapping(there, "a");
      const rows: readonly (readonly [filter: MessageInitShape<typeof v1.list.input>, ids: string[]])[] = [
        [{ identityProviderUidp: here }, [a, b]],
        [{ identityProviderUidp: there }, [c]],
        [{ identityProviderUidp: randomIds.newUid(world.root) }, []],
        [{ uidp: { childrenOf: here } }, [a, b]],
        [{ uidp: { ids: [a, c] } }, [a, c].sort()],
        [{ uidp: { ids: [a, c] }, identityProviderUidp: there }, [c]],
        [{ uidp: { descendantsOf: world.child } }, []],
      ];
      for (const [filter, ids] of rows) assert.deepEqual(await readList(filter), ids, JSON.stringify(filter));
      const all = await readList({});
      for (const id of [a, b, c]) assert.ok(all.includes(id));
    });

    it("go several at a time, or none", async () => {
      const [here, there] = [await provider(), await provider()];
      const [a, b, c] = [
        await createMapping(here, "a"),
        await createMapping(here, "b"),
        await createMapping(there, "a"),
      ];
      const ids = [a.id, c.id];
      assert.match(await wire.expectError(v1.batchDelete, { parentId: here, ids }), /^Invalid argument: ids\[1\]: /);
      assert.deepEqual((await readList({ identityProviderUidp: here })).length, 2);
      const all = [b.id, a.id, b.id, randomIds.newUid(here)];
      const { parentId, items } = await wire.call(v1.batchDelete, { parentId: here, ids: all });
      assert.equal(parentId, here);
      assert.deepEqual(items, [b, a]);
      assert.deepEqual(await readList({ identityProviderUidp: here }), []);
      assert.deepEqual(await readList({ identityProviderUidp: there }), [c.id]);
    });

    it("name what is wrong as version 1 calls it", async () => {
      const parentId = await provider();
      const rule = "must be a uid, such as the service assigns";
      const mapping = { externalGroupId: "g", roleUidp: viewer, scope: world.root };
      const rows: readonly (readonly [failure: Promise<string>, text: string])[] = [
        [
          wire.expectError(v1.create, { parentId }),
          "externalGroupId: externalGroupId is required; " + "roleUidp: roleUidp is required; scope: scope is required",
        ],
        [
          wire.expectError(v1.create, { parentId, mapping: { ...mapping, roleUidp: randomIds.newUid(world.foreign) } }),
          "roleUidp: roleUidp must be a built-in role or one of the group or above it",
        ],
        [
          wire.expectError(v1.create, { parentId, mapping: { ...mapping, scope: world.foreign } }),
          "scope: scope must be a group of the organisation",
        ],
        [
          wire.expectError(v1.create, { parentId, mapping: { ...mapping, identityProviderUidp: world.root } }),
          "identityProviderUidp: identityProviderUidp must be the parent of the mapping",
        ],
        [wire.expectError(v1.create, { parentId: "nonsense", mapping }), `parentId: parentId ${rule}`],
        [wire.expectError(v1.batchDelete, { parentId }), "ids: ids is required"],
        [wire.expectError(v1.list, { uidp: { childrenOf: "x" } }), `uidp.childrenOf: uidp.childrenOf ${rule}`],
      ];
      for (const [failure, text] of rows) assert.equal(await failure, `Invalid argument: ${text}`);
      await wire.call(v1.create, { parentId, mapping: { ...mapping, identityProviderUidp: parentId } });
      assert.match(await wire.expectError(v1.create, { parentId, mapping }), /^Already exists: external group role/);
    });
  });
}
