// Groups and roles in version 1, beside the same ones in version 2: over REST
// and gRPC, by clients generated from the protos.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Code } from "@connectrpc/connect";
import { Groups, OrgKind } from "#gen/chainguard/platform/iam/group_pb.js";
import { Roles } from "#gen/chainguard/platform/iam/role_pb.js";
import { GroupsService as Stable } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { type Connection, connectTo, staticToken } from "../../../src/client/index.js";
import { verifyGroup } from "../../../src/iam/operator/operate.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { type Expected, invalid, notPermittedField, precondition } from "../../contract/expectations.js";
import { type Rest, restAs } from "../../contract/rest.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";

let world: IamWorld;
let connection: Connection;
let v1: Rest;
let v2: Rest;

before(async () => {
  world = await startIamWorld();
  connection = connectTo({ baseUrl: world.url, token: staticToken(world.owner.token) });
  v1 = restAs(world.url, world.owner.token, "/iam/v1");
  v2 = restAs(world.url, world.owner.token, "/iam/v2");
});
after(async () => {
  connection.close();
  await world.stop();
});

const idsOf = (items: readonly { id: string }[]) => items.map(({ id }) => id);
const readList = async (rest: Rest, query: string) =>
  idsOf(((await rest("GET", query)).json as { items: { id: string }[] }).items);

describe("groups", () => {
  it("created in one version are visible in the other, under both service names", async () => {
    const made = await v1("POST", `/groups/${world.child}`, { name: "one", description: "of v1" });
    const { id, createdAt, updatedAt, ...shown } = made.json as Record<string, string>;
    assert.deepEqual(shown, { name: "one", description: "of v1", resourceLimits: {}, verified: false });
    for (const service of [GroupsService, Stable]) {
      const seen = await connection.client(service).getGroup({ uid: id ?? "" });
      assert.deepEqual([seen.uid, seen.name, seen.description], [id, "one", "of v1"]);
    }
    assert.equal((await v2("GET", `/groups/${id}`)).json?.createTime, createdAt);

    const stable = await connection.client(Stable).createGroup({ parent: world.child, group: { name: "two" } });
    const { items } = await connection.client(Groups).list({ id: stable.uid });
    assert.deepEqual(
      items.map((item) => [item.id, item.name, item.createdAt, item.updatedAt]),
      [[stable.uid, "two", stable.createTime, stable.updateTime]],
    );
    assert.ok(updatedAt);
  });

  it("lose the fields that an update omits in version 1, and keep them in version 2", async () => {
    const group = await world.group();
    const put = await v1("PUT", `/groups/${group}`, { name: "renamed", description: "d", verified: false });
    assert.deepEqual([put.json?.name, put.json?.description, put.json?.verified], ["renamed", "d", false]);
    assert.equal((await v2("PATCH", `/groups/${group}`, { name: "again" })).json?.description, "d");
    const reset = await connection.client(Groups).update({ id: group, name: "whole" });
    assert.deepEqual([reset.name, reset.description], ["whole", ""]);
    assert.deepEqual((await v1("PUT", `/groups/${group}`, { description: "d" })).outcome, {
      ...invalid(["name", "name must match ^[a-z0-9 ._-]{1,}$: name is required"]),
    });
    assert.equal((await v2("GET", `/groups/${group}`)).json?.name, "whole");
  });

  it("keep the fields of the operator after an update of version 1", async () => {
    const { organisation } = world.harness;
    const { group, token } = await organisation("acme.example");
    const ids = { ids: randomIds, nowMs: Date.now() };
    await world.write((tx) => verifyGroup(tx, group, "ORG_KIND_CUSTOMER", ids));
    const put = (body: object) => restAs(world.url, token, "/iam/v1")("PUT", `/groups/${group}`, body);
    const { json } = await put({ name: "acme.example", verified: false });
    assert.deepEqual([json?.verified, json?.kind], [true, "ORG_KIND_CUSTOMER"]);
    assert.deepEqual(json?.resourceLimits, { idps: 100, repositories: 10_000 });
    assert.deepEqual((await put(json ?? {})).json?.kind, "ORG_KIND_CUSTOMER", "what was read is accepted");
    const by = (command: string) => `is set by the operator alone, with \`arbor admin ${command}\``;
    const quota = by("quotas set");
    const rejected: readonly (readonly [body: object, expected: Expected])[] = [
      [{ kind: 1 }, notPermittedField(["kind", `kind ${by("groups verify UID --kind KIND")}`])],
      [{ resourceLimits: { idps: 101 } }, notPermittedField(["resourceLimits.idps", `idps ${quota}`])],
      [{ resourceLimits: { clusters: 9 } }, notPermittedField(["resourceLimits.clusters", `clusters ${quota}`])],
      [{ status: 3 }, invalid(["status", "status is set by the service alone"])],
    ];
    for (const [body, expected] of rejected) {
      assert.deepEqual((await put({ name: "acme.example", description: "lost", ...body })).outcome, expected);
    }
    const created = await v1("POST", `/groups/${world.child}`, { name: "x", verified: true });
    assert.deepEqual(created.outcome, notPermittedField(["verified", `verified ${by("groups verify UID")}`]));
    const overGrpc = connection.client(Groups).create({ parent: world.child, group: { name: "x", kind: 2 } });
    await assert.rejects(overGrpc, { code: Code.PermissionDenied });
    const renamed = await restAs(world.url, token, "/iam/v1")("PUT", `/groups/${group}`, { name: "other" });
    assert.deepEqual(renamed.outcome, precondition("GROUP_VERIFIED", "cannot rename a verified group"));
    const seen = await connectOnce(token, (client) => client.list({ id: group }));
    assert.equal(seen.items[0]?.kind, OrgKind.CUSTOMER);
    assert.equal(seen.items[0]?.description, "", "a rejected update changes nothing");
  });

  it("are listed without pages, ancestors first, by id, name and parent", async () => {
    const top = await world.group();
    const below: string[] = [];
    for (const parent of [top, top, top]) below.push(await world.group(parent));
    const deep = await world.group(below[0]);
    const all = [top, ...below, deep].sort();
    const under = (query: string) => readList(v1, `/groups?${query}`);
    assert.deepEqual(
      (await under("")).filter((id) => all.includes(id)),
      all,
    );
    assert.deepEqual(await under(`uidp.descendantsOf=${top}`), all.slice(1));
    assert.deepEqual(await under(`uidp.childrenOf=${top}`), [...below].sort());
    assert.deepEqual(await under("uidp.childrenOf=%2F"), [world.root]);
    assert.deepEqual(await under("uidp.inRoot=true"), [world.root]);
    assert.deepEqual(await under(`id=${deep}`), [deep]);
    assert.deepEqual(await under(`id=${deep}&uidp.ids=${top}`), []);
    assert.deepEqual(await under(`id=${randomIds.newUid(world.root)}`), []);
    await v1("PUT", `/groups/${deep}`, { name: "deep one" });
    assert.deepEqual(await under("name=deep%20one"), [deep]);
    assert.deepEqual((await v1("GET", "/groups?id=NO")).outcome, {
      ...invalid(["id", "id must be an id, such as the service assigns"]),
    });
  });

  it("leave the same audit rows by either version", async () => {
    const made = await v1("POST", `/groups/${world.root}`, { name: "audited" });
    const id = String(made.json?.id);
    await v2("PATCH", `/groups/${id}`, { description: "x" });
    await v1("DELETE", `/groups/${id}`);
    const { store } = world.harness.app.installation;
    const rows = (await store.read((tx) => tx.audit.listNewest(3, world.root))).filter(
      ({ subjectUid }) => subjectUid === id,
    );
    assert.deepEqual(
      rows.map(({ type, method }) => [type, method.split(".").at(-2) === "v2" ? "v2" : "v1"]).reverse(),
      [
        ["dev.chainguard.api.iam.group.created.v1", "v1"],
        ["dev.chainguard.api.iam.group.updated.v1", "v2"],
        ["dev.chainguard.api.iam.group.deleted.v1", "v1"],
      ],
    );
  });

  async function connectOnce<T>(token: string, ask: (client: ReturnType<typeof clientOf>) => Promise<T>): Promise<T> {
    const own = connectTo({ baseUrl: world.url, token: staticToken(token) });
    try {
      return await ask(clientOf(own));
    } finally {
      own.close();
    }
  }
  const clientOf = (own: Connection) => own.client(Groups);
});

describe("roles", () => {
  it("have capabilities by name in version 1 and as numbers in version 2", async () => {
    const body = { name: "reader", capabilities: ["roles.list", "groups.list"] };
    const made = await v1("POST", `/roles/${world.child}`, body);
    assert.deepEqual(made.json?.capabilities, ["groups.list", "roles.list"]);
    const id = String(made.json?.id);
    const seen = await v2("GET", `/roles/${id}`);
    assert.deepEqual(seen.json?.capabilities, ["CAP_IAM_GROUPS_LIST", "CAP_IAM_ROLES_LIST"]);
    const capabilities = ["CAP_IAM_GROUPS_UPDATE"];
    await v2("PATCH", `/roles/${id}`, { capabilities });
    const { items } = await connection.client(Roles).list({ id });
    assert.deepEqual(items[0]?.capabilities, ["groups.update"]);
    assert.deepEqual((await v1("POST", `/roles/${world.child}`, { name: "x", capabilities: ["groups.fly"] })).outcome, {
      ...invalid(["capabilities", "capabilities must name capabilities that exist"]),
    });
  });

  it("lose what an update leaves out, but never all capabilities", async () => {
    const uid = await world.role(["groups.list"]);
    const put = await connection.client(Roles).update({ id: uid, name: "bare", capabilities: ["roles.list"] });
    assert.deepEqual([put.name, put.description, put.capabilities], ["bare", "", ["roles.list"]]);
    assert.deepEqual((await v1("PUT", `/roles/${uid}`, { name: "bare" })).outcome, {
      ...invalid(["capabilities", "capabilities must name at least one capability"]),
    });
    assert.equal((await connection.client(RolesService).getRole({ uid })).name, "bare");
  });

  it("are found by parent, where / stands for the built-in ones", async () => {
    const uid = await world.role(["groups.list"], world.grandchild);
    const { items } = await connection.client(Roles).list({ parent: "/", name: "viewer" });
    assert.deepEqual(
      items.map(({ name }) => name),
      ["viewer"],
    );
    assert.ok((await readList(v1, "/roles?parent=%2F")).length > 10);
    assert.deepEqual(await readList(v1, `/roles?parent=${world.grandchild}`), [uid]);
    assert.deepEqual(await readList(v1, `/roles?uidp.descendantsOf=${world.child}&parent=${world.grandchild}`), [uid]);
    for (const query of ["parent=NO", `parent=%2F&uidp.childrenOf=${world.child}`]) {
      assert.equal((await v1("GET", `/roles?${query}`)).status, 400);
    }
  });
});
