// Group invites, version 1, beside version 2: the code is shown once.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { GroupInvites } from "#gen/chainguard/platform/iam/group_invites_pb.js";
import { GroupInvitesService } from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { builtinRoles } from "../../../src/iam/roles/builtin-roles.js";
import { builtinRoleUid } from "../../../src/kernel/ids.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";
import { type Wire, wireNames, wireOf } from "./wires.js";

const v1 = GroupInvites.method;
const v2 = GroupInvitesService.method;
const viewer = builtinRoleUid("viewer");
const ttl = { seconds: 3600n };

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

for (const name of wireNames) {
  describe(`invites over ${name}`, () => {
    let wire: Wire;
    before(() => {
      wire = wireOf(name, world.url, world.owner.token);
    });
    after(() => wire.close());
    const readList = async (filter: MessageInitShape<typeof v1.list.input>, token?: string) =>
      (await wire.call(v1.list, filter, token)).items;

    it("are the same in both versions, whichever created them", async () => {
      const group = await world.group();
      const made = await wire.call(v1.create, { group, role: viewer, ttl, email: "a@b.example", singleUse: true });
      assert.match(made.id, new RegExp(`^${group}/[0-9a-f]{16}$`));
      const { createdAt, expiration, role } = made;
      assert.ok(createdAt && expiration && role);
      assert.equal(timestampMs(expiration) - timestampMs(createdAt), 3_600_000);
      assert.deepEqual([role.id, role.name], [viewer, "viewer"]);
      assert.deepEqual([...role.capabilities].sort(), [...(builtinRoles.viewer ?? [])].sort());

      const read = await wire.call(v2.getGroupInvite, { uid: made.id });
      assert.deepEqual([read.email, read.singleUse, read.roleUid], ["a@b.example", true, viewer]);
      assert.deepEqual([read.keyId, read.expirationTime, read.createTime], [made.keyId, expiration, createdAt]);

      const groupInvite = { roleUid: viewer, ttl };
      const other = await wire.call(v2.createGroupInvite, { parent: group, groupInvite });
      const updated = { uid: other.uid, email: "c@d.example" };
      await wire.call(v2.updateGroupInvite, { groupInvite: updated, updateMask: { paths: ["email"] } });
      const [shown, none] = await readList({ id: other.uid });
      assert.equal(none, undefined);
      assert.deepEqual([shown?.email, shown?.singleUse, shown?.keyId], ["c@d.example", false, other.keyId]);
      assert.deepEqual([shown?.expiration, shown?.createdAt], [other.expirationTime, other.createTime]);
      assert.deepEqual([shown?.role?.id, shown?.role?.capabilities], [viewer, role.capabilities]);

      await wire.call(v1.delete, { id: other.uid });
      assert.match(await wire.expectError(v2.getGroupInvite, { uid: other.uid }), /^Not found: group invite/);
      await wire.call(v2.deleteGroupInvite, { uid: made.id });
      assert.deepEqual(await readList({ group }), []);
      await wire.call(v1.delete, { id: made.id });
    });

    it("tell their code once", async () => {
      const { id, code, keyId } = await wire.call(v1.create, { group: world.child, role: viewer, ttl });
      const content = JSON.parse(Buffer.from(code, "base64url").toString()) as {
        grp: string;
        kid: string;
        sec: string;
      };
      assert.deepEqual([content.grp, content.kid], [world.child, keyId]);
      const before = wire.heard.length;
      assert.equal((await readList({ id }))[0]?.keyId, keyId);
      await wire.call(v2.getGroupInvite, { uid: id });
      await wire.call(v1.delete, { id });
      const since = wire.heard.slice(before);
      assert.ok(since.includes(keyId));
      assert.ok(!since.includes(code) && !since.includes(content.sec));
    });

    it("are found by group, id and key", async () => {
      const [here, there] = [await world.group(), await world.group()];
      const below = await world.group(here);
      const make = (group: string) => wire.call(v1.create, { group, role: viewer, ttl });
      const [a, b, c, d] = [await make(here), await make(here), await make(there), await make(below)];
      const both = [a.id, b.id].sort();
      const rows: readonly (readonly [filter: MessageInitShape<typeof v1.list.input>, ids: string[]])[] = [
        [{ group: here }, both],
        [{ group: there }, [c.id]],
        [{ group: below }, [d.id]],
        [{ id: b.id }, [b.id]],
        [{ id: c.id, group: here }, []],
        [{ keyId: a.keyId }, [a.id]],
        [{ keyId: a.keyId, group: there }, []],
        [{ keyId: a.keyId, id: a.id, group: here }, [a.id]],
        [{ keyId: "nonsense" }, []],
      ];
      for (const [filter, ids] of rows) {
        const found = (await readList(filter)).map(({ id }) => id);
        assert.deepEqual(found, ids, JSON.stringify(filter));
      }
      const all = (await readList({})).map(({ id }) => id);
      for (const { id } of [a, b, c, d]) assert.ok(all.includes(id));
    });

    it("name what is wrong as version 1 calls it", async () => {
      const group = world.child;
      const uid = "must be a uid, such as the service assigns";
      const rows: readonly (readonly [failure: Promise<string>, text: string])[] = [
        [wire.expectError(v1.create, { group, role: viewer }), "ttl: ttl is required"],
        [
          wire.expectError(v1.create, { group, role: viewer, ttl: { seconds: 31_536_001n } }),
          "ttl: ttl must be more than 0 and at most 365 days",
        ],
        [wire.expectError(v1.create, { group, ttl }), "role: role is required"],
        [
          wire.expectError(v1.create, { group, ttl, role: "viewer" }),
          "role: role must be a built-in role or one of the group or above it",
        ],
        [
          wire.expectError(v1.create, { group, ttl, role: viewer, email: "x" }),
          "email: email must be an e-mail address",
        ],
        [wire.expectError(v1.create, { group: "nonsense", ttl, role: viewer }), `group: group ${uid}`],
        [wire.expectError(v1.list, { group: "nonsense" }), `group: group ${uid}`],
        [wire.expectError(v1.list, { group: "/" }), `group: group ${uid}`],
        [wire.expectError(v1.list, { id: "nonsense" }), "id: id must be an id, such as the service assigns"],
        [wire.expectError(v1.delete, { id: "nonsense" }), `id: id ${uid}`],
      ];
      for (const [failure, text] of rows) assert.equal(await failure, `Invalid argument: ${text}`);
    });
  });
}

it("an invite with a new group is rejected and creates nothing", async () => {
  const wire = wireOf("gRPC", world.url, world.owner.token);
  const groups = async () => (await world.owner.rest("GET", "/groups")).json?.totalCount;
  const before = await groups();
  for (const token of [world.owner.token, world.foreignOwner.token, (await world.harness.identity()).token]) {
    const text = await wire.expectError(v1.createWithGroup, { role: viewer, ttl }, token);
    assert.match(text, /^Unimplemented: GroupInvites.CreateWithGroup: /);
  }
  assert.match(await wire.expectError(v1.createWithGroup, { role: viewer, ttl }, "nonsense"), /^Unauthenticated: /);
  assert.equal(await groups(), before);
  wire.close();
});
