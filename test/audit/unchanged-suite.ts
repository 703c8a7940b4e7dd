// Calls that change nothing leave no row in the audit log, by every protocol and version. On either store.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { RoleBindings } from "#gen/chainguard/platform/iam/role_binding_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { type Rest, restAs } from "../contract/rest.js";
import { type IamWorld, startIamWorld } from "../iam/iam-world.js";

const [viewer, editor] = [builtinRoleUid("viewer"), builtinRoleUid("editor")];

/** Registers the tests. */
export function unchangedSuite(name: string): void {
  describe(`a call that changes nothing, on ${name}`, () => {
    let world: IamWorld;
    let identity: string;
    let rest: (base: string) => Rest;
    before(async () => {
      world = await startIamWorld();
      identity = await world.identity();
      rest = (base) => restAs(world.url, world.owner.token, base);
    });
    after(() => world.stop());

    const count = async () => (await world.write((tx) => tx.audit.listNewest(10_000, world.root))).length;

    /** Makes a change and repeats it: the first call leaves a row, the others none. */
    async function repeat(work: () => Promise<unknown>, times = 3): Promise<void> {
      const before = await count();
      await work();
      assert.equal(await count(), before + 1, "control: the first call leaves a row");
      for (let i = 1; i < times; i++) await work();
      assert.equal(await count(), before + 1);
    }

    const post = async (base: string, path: string, body: object) => {
      const { status, text, json } = await rest(base)("POST", path, body);
      assert.equal(status, 200, text);
      return json ?? {};
    };

    for (const version of ["v2beta1", "v2"]) {
      test(`creates a binding that exists, over REST in ${version}`, async () => {
        const group = await world.group();
        const body = { identityUid: identity, roleUid: viewer };
        await repeat(() => post(`/iam/${version}`, `/roleBindings/${group}`, body));
      });

      test(`creates a batch with none new, over REST in ${version}`, async () => {
        const group = await world.group();
        const requests = [viewer, editor].map((roleUid) => ({ roleBinding: { identityUid: identity, roleUid } }));
        await repeat(() => post(`/iam/${version}`, `/roleBindings:batchCreate`, { parent: group, requests }));
        // With one that is new there is a row.
        const before = await count();
        const other = { roleBinding: { identityUid: await world.identity(), roleUid: viewer } };
        await post(`/iam/${version}`, `/roleBindings:batchCreate`, { parent: group, requests: [...requests, other] });
        assert.equal(await count(), before + 1);
      });
    }

    test("creates a binding that exists, and a batch with none new, over REST in version 1", async () => {
      const group = await world.group();
      const binding = { identity, role: viewer };
      await repeat(() => post("/iam/v1", `/rolebindings/${group}`, binding));
      const bindings = [binding, { identity, role: editor }];
      await repeat(() => post("/iam/v1", `/rolebindings/batch/${group}`, bindings));
    });

    test("creates a binding that exists, and a batch with none new, over gRPC", async () => {
      const group = await world.group();
      const transport = createGrpcTransport({ baseUrl: world.url });
      const options = { headers: { authorization: `Bearer ${world.owner.token}` } };
      const v2 = createClient(RoleBindingsService, transport);
      const v1 = createClient(RoleBindings, transport);
      const grant = (roleUid: string) => ({ roleBinding: { identityUid: identity, roleUid } });
      await repeat(() => v2.createRoleBinding({ parent: group, ...grant(viewer) }, options));
      await repeat(() =>
        v2.batchCreateRoleBindings({ parent: group, requests: [grant(viewer), grant(editor)] }, options),
      );
      const below = await world.group(group);
      const roleBinding = { identity, role: viewer };
      await repeat(() => v1.create({ parent: below, roleBinding }, options));
      const roleBindings = [roleBinding, { identity, role: editor }];
      await repeat(() => v1.createBatch({ parent: below, roleBindings }, options));
    });

    test("deletes a binding, accepts terms or writes a tag again", async () => {
      const group = await world.group();
      const { uid } = await post("/iam/v2", `/roleBindings/${group}`, { identityUid: identity, roleUid: viewer });
      await repeat(async () => assert.equal((await rest("/iam/v2")("DELETE", `/roleBindings/${uid}`)).status, 200));
      await repeat(() => post("/iam/v2", `/terms/${world.root}`, { documentIds: ["a"] }));
      const repo = await post("/registry/v2", `/repos/${group}`, { name: "repo" });
      const tag = { name: "latest", digest: `sha256:${"a".repeat(64)}` };
      await repeat(() => post("/registry/v2", `/tags/${repo.uid}`, tag));
    });
  });
}
