// What a quota refuses, whom, and with what words; and what it leaves alone.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { Groups } from "#gen/chainguard/platform/iam/group_pb.js";
import { GroupsService as StableGroups } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { TagsService } from "#gen/chainguard/platform/registry/v2/tags_pb.js";
import { QuotaFailureSchema } from "#gen/google/rpc/error_details_pb.js";
import { retryDelayMs } from "../../src/client/error-details.js";
import {
  type Connection,
  connectTo,
  errorInfo,
  type Protocol,
  quotaViolations,
  staticToken,
} from "../../src/client/index.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { applyEvents } from "../../src/registry/oci/apply-event.js";
import type { Store } from "../../src/store/store.js";
import { overQuota, permissionDenied } from "../contract/expectations.js";
import { restAs } from "../contract/rest.js";
import { digestOf, type RegistryWorld, startRegistryWorld } from "../registry/registry-world.js";
import { setLimits, usageOf } from "../support/quotas.js";

let world: RegistryWorld;
let store: Store;

before(async () => {
  world = await startRegistryWorld({ quotas: "roots=2" });
  store = world.harness.app.installation.store;
});
after(() => world.stop());

describe("root groups", () => {
  const rule = "a person's limit of root groups is 2, and 1 more would exceed it";
  const tooMany = (person: string) => (thrown: unknown) => {
    const error = ConnectError.from(thrown);
    assert.equal(error.code, Code.ResourceExhausted, error.message);
    const [violation, ...others] = quotaViolations(error);
    assert.deepEqual([violation?.subject, violation?.description], [`identity:${person}`, rule]);
    assert.deepEqual([others.length, retryDelayMs(error), errorInfo(error)?.reason], [0, 0, "RESOURCE_EXHAUSTED"]);
    return true;
  };

  it("are limited per person, by every name and version", async () => {
    const person = await world.harness.identity();
    await as(person.token, async (connection) => {
      const [beta, stable] = [connection.client(GroupsService), connection.client(StableGroups)];
      const v1 = connection.client(Groups);
      const group = { name: "root" };
      const { uid } = await beta.createGroup({ group });
      await v1.create({ parent: "/", group });
      await assert.rejects(beta.createGroup({ group }), tooMany(person.uid));
      await assert.rejects(stable.createGroup({ group }), tooMany(person.uid));
      for (const parent of ["", "/"]) await assert.rejects(v1.create({ parent, group }), tooMany(person.uid));
      // Groups below are no roots.
      await beta.createGroup({ parent: uid, group });
    });
  });

  it("that are deleted make room, and those handed over do not", async () => {
    const [person, heir] = [await world.harness.identity(), await world.harness.identity()];
    await as(person.token, async (connection) => {
      const groups = connection.client(GroupsService);
      const createRoot = () => groups.createGroup({ group: { name: "root" } });
      const [first, second] = [await createRoot(), await createRoot()];
      await world.harness.bind(heir.uid, "owner", first.uid);
      await as(heir.token, async (other) => {
        const bindings = other.client(RoleBindingsService);
        const { roleBindings } = await bindings.listRoleBindings({ group: first.uid, identity: person.uid });
        assert.equal(roleBindings.length, 1);
        await bindings.deleteRoleBinding({ uid: roleBindings[0]?.uid ?? "" });
        await assert.rejects(createRoot(), tooMany(person.uid));
        await other.client(GroupsService).createGroup({ group: { name: "root" } });
      });
      await groups.deleteGroup({ uid: second.uid });
      await createRoot();
    });
  });
});

describe("what belongs to an organisation", () => {
  const rule = (limit: number, plural: string, more = 1) =>
    `the organisation's limit of ${plural} is ${limit}, and ${more} more would exceed it`;

  it("is counted in all of its groups, and refused to those alone who may create it", async () => {
    const { roles } = await usageOf(store, world.root);
    await setLimits(store, world.root, { roles });
    const full = overQuota(`group:${world.root}`, "roles", rule(roles, "roles"));
    const role = { name: "role", capabilities: ["CAP_IAM_GROUPS_LIST"] };
    const viewer = await world.createBound("viewer");
    for (const group of [world.root, world.grandchild]) {
      assert.deepEqual((await world.owner.rest("POST", `/roles/${group}`, role)).outcome, full);
      for (const other of [viewer, world.foreignOwner]) {
        const response = await other.rest("POST", `/roles/${group}`, role);
        assert.deepEqual(response.outcome, permissionDenied(`roles.create at ${group}`));
      }
    }
    assert.equal((await restAs(world.url)("POST", `/roles/${world.root}`, role)).status, 401);
    assert.equal((await world.foreignOwner.rest("POST", `/roles/${world.foreign}`, role)).status, 200);
    await setLimits(store, world.root, { roles: undefined });
    assert.equal((await world.owner.rest("POST", `/roles/${world.grandchild}`, role)).status, 200);
  });

  it("is told of groups to nobody who may not create there, although the method has no scope", async () => {
    const { groups } = await usageOf(store, world.root);
    await setLimits(store, world.root, { groups });
    const full = overQuota(`group:${world.root}`, "groups", rule(groups, "groups"));
    assert.deepEqual((await world.owner.rest("POST", `/groups/${world.child}`, { name: "a" })).outcome, full);
    const foreign = await world.foreignOwner.rest("POST", `/groups/${world.child}`, { name: "a" });
    assert.deepEqual(foreign.outcome, permissionDenied(`groups.create at ${world.child}`));
    await setLimits(store, world.root, { groups: undefined });
  });

  it("counts the items of a batch, each once, and none that exist", async () => {
    const [roleUid = "", ...people] = [
      builtinRoleUid("viewer"),
      ...Array.from({ length: 4 }, () => randomIds.newUid()),
    ];
    const batch = (...uids: (string | undefined)[]) =>
      world.owner.rest("POST", "/roleBindings:batchCreate", {
        parent: world.child,
        roleUid,
        requests: uids.map((identityUid) => ({ roleBinding: { identityUid } })),
      });
    const [a, b, c, d] = people;
    const { bindings } = await usageOf(store, world.root);
    const limit = bindings + 2;
    await setLimits(store, world.root, { bindings: limit });
    const full = (more: number) => overQuota(`group:${world.root}`, "bindings", rule(limit, "role bindings", more));
    assert.deepEqual((await batch(a, b, c)).outcome, full(3));
    assert.equal((await usageOf(store, world.root)).bindings, bindings);
    assert.equal((await batch(a, b, a, b, a)).status, 200);
    assert.equal((await batch(a, b)).status, 200);
    assert.deepEqual((await batch(a, c, d)).outcome, full(2));
    const again = await world.owner.rest("POST", `/roleBindings/${world.child}`, { identityUid: a, roleUid });
    assert.equal(again.status, 200, again.text);
    const v1 = restAs(world.url, world.owner.token, "/iam/v1");
    assert.equal((await v1("POST", `/rolebindings/${world.child}`, { identity: b, role: roleUid })).status, 200);
    const other = await v1("POST", `/rolebindings/${world.child}`, { identity: c, role: roleUid });
    assert.deepEqual(other.outcome, full(1));
    await setLimits(store, world.root, { bindings: undefined });
  });

  for (const protocol of ["grpc", "grpc-web", "connect"] as const satisfies readonly Protocol[]) {
    it(`is refused over ${protocol} with the same detail`, async () => {
      const { tags } = await usageOf(store, world.root);
      const repo = await world.repo({ name: `repo-${protocol}` });
      await setLimits(store, world.root, { tags });
      await withConnection(protocol, async (connection) => {
        const tag = { name: "latest", digest: digestOf("a") };
        const error = await connection.client(TagsService).createTag({ parent: repo, tag }).catch(ConnectError.from);
        assert.ok(error instanceof ConnectError);
        assert.equal(error.code, Code.ResourceExhausted);
        const description = rule(tags, "tags");
        assert.equal(error.rawMessage, `Resource exhausted: tags: ${description}`);
        assert.deepEqual(
          quotaViolations(error).map((one) => [one.subject, one.description]),
          [[`group:${world.root}`, description]],
        );
        assert.equal(error.findDetails(QuotaFailureSchema).length, 1);
      });
      await setLimits(store, world.root, { tags: undefined });
    });
  }
});

describe("in a full organisation", () => {
  it("tags are moved and repos changed by what would otherwise create them", async () => {
    const repo = await world.repo({ name: "moved" });
    await world.tag(repo, "latest");
    const { repos, tags } = await usageOf(store, world.root);
    await setLimits(store, world.root, { repos, tags });
    assert.equal(await world.tag(repo, "latest", "b"), await world.tag(repo, "latest", "c"));
    await withConnection("grpc", async (connection) => {
      const v1 = connection.client(Registry);
      assert.equal((await v1.createTag({ repoId: repo, tag: { name: "latest" } })).digest, digestOf("c"));
      const changed = await v1.createRepo({ parentId: world.root, repo: { name: "moved", description: "new" } });
      assert.deepEqual([changed.id, changed.description], [repo, "new"]);
      for (const refused of [
        () => v1.createTag({ repoId: repo, tag: { name: "other" } }),
        () => v1.createRepo({ parentId: world.root, repo: { name: "other" } }),
        () => v1.createRepo({ parentId: world.root, repo: { name: "moved" }, preventExisting: true }),
      ]) {
        await assert.rejects(refused, (error: unknown) => (error as ConnectError).code === Code.ResourceExhausted);
      }
      // Limits may have been lowered to less than there is.
      await setLimits(store, world.root, { repos: 0, tags: 0 });
      assert.equal((await v1.createTag({ repoId: repo, tag: { name: "latest" } })).digest, digestOf("c"));
      assert.equal((await v1.createRepo({ parentId: world.root, repo: { name: "moved" } })).id, repo);
    });
    await setLimits(store, world.root, { repos: undefined, tags: undefined });
  });

  it("what a registry reports is recorded and counted all the same", async () => {
    const { repos, tags } = await usageOf(store, world.root);
    await setLimits(store, world.root, { repos: 0, tags: 0 });
    const event = {
      action: "push",
      path: `${world.root}/pushed`,
      tag: "v1",
      digest: digestOf("a"),
      actor: "",
      request: { method: "PUT", remoteAddress: "", userAgent: "" },
    } as const;
    const nowMs = Date.now();
    const context = { ids: randomIds, nowMs, source: { method: "test", remoteAddress: "" } };
    const applied = await store.write((tx) => applyEvents(tx, [{ ...event, id: "push-1", timeMs: nowMs }], context));
    assert.deepEqual(applied, { changed: 2, dropped: 0 });
    const later = await usageOf(store, world.root);
    assert.deepEqual([later.repos, later.tags], [repos + 1, tags + 1]);
    await setLimits(store, world.root, { repos: undefined, tags: undefined });
  });
});

it("version 1 shows two quotas of a root, as they hold for it, and version 2 none", async () => {
  const readLimits = async (base: string, uid: string) => {
    const rest = restAs(world.url, world.owner.token, base);
    if (!base.endsWith("v1")) return (await rest("GET", `/groups/${uid}`)).json?.resourceLimits;
    const { items } = (await rest("GET", `/groups?id=${uid}`)).json as { items: { resourceLimits: object }[] };
    return items[0]?.resourceLimits;
  };
  assert.deepEqual(await readLimits("/iam/v1", world.root), { idps: 100, repositories: 10_000 });
  assert.deepEqual(await readLimits("/iam/v1", world.child), {});
  await setLimits(store, world.root, { repos: 7, tags: 8 });
  assert.deepEqual(await readLimits("/iam/v1", world.root), { idps: 100, repositories: 7 });
  for (const base of ["/iam/v2", "/iam/v2beta1"]) assert.deepEqual(await readLimits(base, world.root), {});
  const put = await restAs(world.url, world.owner.token, "/iam/v1")("PUT", `/groups/${world.root}`, { name: "ours" });
  assert.deepEqual(put.json?.resourceLimits, { idps: 100, repositories: 7 });
  // The value of one quota is none of the other.
  const swapped = { name: "ours", resourceLimits: { idps: 7, repositories: 100 } };
  const rest = restAs(world.url, world.owner.token, "/iam/v1");
  assert.equal((await rest("PUT", `/groups/${world.root}`, swapped)).status, 403);
  await setLimits(store, world.root, { repos: undefined, tags: undefined });
});

function withConnection(protocol: Protocol, work: (connection: Connection) => Promise<void>): Promise<void> {
  return as(world.owner.token, work, protocol);
}

async function as(
  token: string,
  work: (connection: Connection) => Promise<void>,
  protocol: Protocol = "grpc",
): Promise<void> {
  const connection = connectTo({ baseUrl: world.url, protocol, token: staticToken(token) });
  try {
    await work(connection);
  } finally {
    connection.close();
  }
}
