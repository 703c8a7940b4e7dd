// Role bindings in version 1, beside version 2: over REST and gRPC.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { RoleBindings } from "#gen/chainguard/platform/iam/role_binding_pb.js";
import { type Client, type Connection, connectTo, staticToken } from "../../../src/client/index.js";
import { builtinRoleUid, personUid, randomIds } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { invalid, permissionDenied } from "../../contract/expectations.js";
import { type Rest, restAs } from "../../contract/rest.js";
import { bindingRow, identityRow } from "../../support/rows.js";
import { type IamWorld, type Somebody, startIamWorld } from "../iam-world.js";

type Fields = Readonly<Record<string, unknown>>;

const [viewer, editor] = ["viewer", "editor"].map(builtinRoleUid) as [string, string];

let world: IamWorld;
let v1: Rest;
let v2: Rest;
let grpc: Client<typeof RoleBindings>;
const connections: Connection[] = [];
before(async () => {
  world = await startIamWorld();
  v1 = restV1(world.owner);
  v2 = world.owner.rest;
  grpc = grpcAs(world.owner);
});
after(async () => {
  for (const connection of connections) connection.close();
  await world.stop();
});

const restV1 = ({ token }: Somebody) => restAs(world.url, token, "/iam/v1");
const grpcAs = ({ token }: Somebody) => {
  const connection = connectTo({ baseUrl: world.url, token: staticToken(token) });
  connections.push(connection);
  return connection.client(RoleBindings);
};
let people = 0;
const person = () => personUid("https://issuer.example", `${people++}`);
const response = async (call: ReturnType<Rest>): Promise<Fields> => {
  const { status, json, text } = await call;
  assert.equal(status, 200, text);
  return json ?? {};
};
const createBinding = async (identity = person(), role = viewer, group = world.child) =>
  String((await response(v1("POST", `/rolebindings/${group}`, { identity, role }))).id);
const readList = async (query: string, by = v1) =>
  (await response(by("GET", `/rolebindings?${query}`))).items as Fields[];
const inV1 = async (id: string): Promise<Fields> => (await readList(`id=${id}`))[0] ?? {};
const idsOf = (items: readonly Fields[]) => items.map(({ id }) => id);
const countIn = async (group: string) => (await readList(`uidp.childrenOf=${group}`)).length;
const grantsInV2 = async (uid: string) => {
  const { identity, group, role } = await response(v2("GET", `/roleBindings/${uid}`));
  return [identity, group, role].map((one) => (one as { uid: string }).uid);
};

describe("a binding", () => {
  it("of version 1 is one of version 2, in the group of the request", async () => {
    const [one, other] = [person(), person()];
    const { createdAt, updatedAt, ...shown } = await response(
      v1("POST", `/rolebindings/${world.child}`, { identity: one, role: viewer, group: world.child }),
    );
    assert.deepEqual(shown, { id: shown.id, identity: one, group: world.child, role: viewer });
    assert.ok(createdAt === updatedAt && Math.abs(Date.parse(String(createdAt)) - Date.now()) < 60_000);
    assert.deepEqual(await grantsInV2(String(shown.id)), [one, world.child, viewer]);
    const roleBinding = { identity: other, role: editor, group: world.grandchild };
    const { id, group } = await grpc.create({ parent: world.grandchild, roleBinding });
    assert.equal(group, world.grandchild);
    assert.deepEqual(await grantsInV2(id), [other, world.grandchild, editor]);
    assert.equal(await createBinding(one), shown.id, "made again it is the one that is there");
  });

  it("of version 2 is one of version 1, with its group and its role", async () => {
    const identityUid = await world.identity();
    const { uid, createTime } = await response(
      v2("POST", `/roleBindings/${world.child}`, { identityUid, roleUid: viewer }),
    );
    const { claimMatchIssuer, claimMatchSubject, ...shown } = await inV1(String(uid));
    assert.deepEqual(shown, {
      id: uid,
      group: { id: world.child, name: "group", description: "", resourceLimits: {}, verified: false },
      identity: identityUid,
      role: { id: viewer, name: "viewer", description: "Viewer Role (built-in)", capabilities: [] },
      ...{ email: "", emailUnverified: "", createdAt: createTime, updatedAt: createTime },
    });
    const [item] = (await grpc.list({ id: String(uid) })).items;
    assert.deepEqual([item?.id, item?.group?.id, item?.identity], [uid, world.child, identityUid]);
    assert.deepEqual([item?.role?.name, item?.claimMatchSubject], ["viewer", claimMatchSubject]);
    assert.equal(claimMatchIssuer, "https://issuer.example");
  });

  it("is replaced by an update, except its group", async () => {
    const [one, other] = [person(), person()];
    const id = await createBinding(one);
    const put = (body: object) => v1("PUT", `/rolebindings/${id}`, body);
    world.harness.skewMs += 1_000;
    const { createdAt, updatedAt, ...shown } = await response(
      put({ identity: other, role: editor, group: world.child }),
    );
    assert.deepEqual(shown, { id, identity: other, group: world.child, role: editor });
    assert.ok(Date.parse(String(updatedAt)) - Date.parse(String(createdAt)) >= 1_000);
    assert.equal((await inV1(id)).updatedAt, updatedAt);
    await response(v2("PATCH", `/roleBindings/${id}`, { roleUid: viewer }));
    assert.equal(((await inV1(id)).role as Fields).id, viewer);
    const { identity, role } = await grpc.update({ id, identity: one, role: editor });
    assert.deepEqual([identity, role, await grantsInV2(id)], [one, editor, [one, world.child, editor]]);
    const elsewhere = { identity: other, role: viewer, group: world.root };
    const ruled = "group must be the group in which the binding is created";
    assert.deepEqual((await put(elsewhere)).outcome, invalid(["group", ruled]));
    const created = await v1("POST", `/rolebindings/${world.child}`, elsewhere);
    assert.deepEqual(created.outcome, invalid(["group", ruled]));
    const fitting = { identity: other, role: viewer };
    await assert.rejects(grpc.createBatch({ parent: world.child, roleBindings: [fitting, elsewhere] }), (error) => {
      assert.match(String(error), /roleBindings\[1\]\.group: group must be the group/);
      return true;
    });
    assert.deepEqual((await put({ role: viewer })).outcome, invalid(["identity", "identity is required"]));
    assert.deepEqual((await put({ identity: one })).outcome, invalid(["role", "role is required"]));
    assert.deepEqual(await grantsInV2(id), [one, world.child, editor]);
  });
});

describe("a batch", () => {
  const batch = (body: unknown, group = world.child, by = v1) =>
    by("POST", `/rolebindings/batch/${group}`, JSON.stringify(body));
  const items = (count: number) => Array.from({ length: count }, () => ({ identity: person(), role: viewer }));

  it("is an array over REST, answered in its order", async () => {
    const sent = [...items(24), { identity: person(), role: editor, group: world.child }];
    const { roleBindings } = (await response(batch(sent))) as { roleBindings: Record<string, string>[] };
    assert.deepEqual(
      roleBindings.map(({ identity, role, group }) => ({ identity, role, group })),
      sent.map((one) => ({ ...one, group: world.child })),
    );
    const last = roleBindings.at(-1);
    assert.deepEqual(await grantsInV2(last?.id ?? ""), [last?.identity, world.child, editor]);
    const two = items(2);
    const answered = await grpc.createBatch({ parent: world.grandchild, roleBindings: two });
    assert.deepEqual(
      answered.roleBindings.map(({ identity }) => identity),
      two.map(({ identity }) => identity),
    );
    assert.equal(await countIn(world.grandchild), 3);
  });

  const uidRule = "role must be a uid, such as the service assigns";
  const known = "identity must be a person or an identity of the organisation";
  const stranger = randomIds.newUid(personUid("i", "s"));
  const one = { identity: personUid("i", "s"), role: viewer };
  const refused: readonly [what: string, body: unknown, ...broken: (readonly [field: string, rule: string])[]][] = [
    ["an empty array", [], ["roleBindings", "roleBindings is required"]],
    ["26 of them", items(26), ["roleBindings", "roleBindings must be at most 25"]],
    ["an object", { roleBindings: [one] }, ["roleBindings", "roleBindings must be a JSON array"]],
    ["text in it", [one, "x"], ["roleBindings[1]", "roleBindings[1] must be a JSON object"]],
    [
      "a number for a role",
      [one, { ...one, role: 3 }],
      ["roleBindings[1].role", "roleBindings[1].role must be a string"],
    ],
    ["a role that is no uid", [one, { ...one, role: "x" }], ["roleBindings[1].role", uidRule]],
    ["nobody's identity", [one, { ...one, identity: stranger }], ["roleBindings[1].identity", known]],
    [
      "an empty one",
      [one, {}],
      ["roleBindings[1].identity", "identity is required"],
      ["roleBindings[1].role", "role is required"],
    ],
  ];
  for (const [what, body, ...broken] of refused) {
    it(`of ${what} is rejected as a whole`, async () => {
      const group = await world.group();
      assert.deepEqual((await batch(body, group)).outcome, invalid(...broken));
      assert.equal(await countIn(group), 0);
    });
  }
});

describe("lists", () => {
  it("show of identities what version 2 shows", async () => {
    const group = await world.group();
    const known = { name: "ann", email: "ann@a.example", emailUnverified: "b@b.example", issuer: "https://i.example" };
    const insertBinding = async (relationship: object | undefined, accepted = false) => {
      const uid = randomIds.newUid(relationship && world.root);
      const values = relationship ? { relation: 1, relationship } : { ...known, subject: uid };
      const id = randomIds.newUid(group);
      await world.write(async (tx) => {
        await tx.table(identityKind).insert(identityRow(uid, values));
        await tx.table(roleBindingKind).insert(bindingRow(id, uid, viewer, { accepted }));
      });
      return { id, uid };
    };
    const patterns = { issuerPattern: "https://i\\.example/.*", subjectPattern: "s.*" };
    const [came, named, claims, keys, aws] = [
      await insertBinding(undefined, true),
      await insertBinding(undefined),
      await insertBinding({ claimMatch: patterns }),
      await insertBinding({ staticKeys: { issuer: "https://k.example", subject: "k", issuerKeys: "keys" } }),
      await insertBinding({ awsIdentity: { awsAccount: "123456789012", arn: "arn", userId: "u" } }),
    ];
    for (const [{ id, uid }, ...told] of [
      [came, "ann@a.example", "https://i.example", came.uid],
      [named, "", "", ""],
      [claims, "", patterns.issuerPattern, patterns.subjectPattern],
      [keys, "", "https://k.example", "k"],
      [aws, "", "", ""],
    ] as const) {
      const shown = await inV1(id);
      assert.equal(shown.identity, uid);
      assert.deepEqual([shown.email, shown.claimMatchIssuer, shown.claimMatchSubject], told);
      const { identity } = await response(v2("GET", `/roleBindings/${id}`));
      const { email = "", issuer = "", subject = "" } = identity as Fields;
      assert.deepEqual([email, issuer, subject], told);
    }
    assert.doesNotMatch((await v1("GET", "/rolebindings")).text, /b@b\.example/);
  });

  it("combine filters by group, and hide rows of others", async () => {
    const outer = await world.group();
    const inner = await world.group(outer);
    const [a, b] = [await createBinding(person(), viewer, outer), await createBinding(person(), viewer, inner)];
    const [within, other] = [restV1(await world.createBound("viewer", inner)), restV1(world.foreignOwner)];
    const inside = idsOf(await readList(`uidp.childrenOf=${inner}`));
    const rows: readonly [by: Rest, query: string, ids: readonly unknown[]][] = [
      [v1, `uidp.descendants_of=${outer}`, [a, ...inside]],
      [v1, `uidp.children_of=${outer}`, [a]],
      [v1, `uidp.childrenOf=${outer}&id=${b}`, []],
      [v1, `uidp.ids=${a}&id=${a}`, [a]],
      [v1, `id=${b}`, [b]],
      [v1, `id=${randomIds.newUid(outer)}`, []],
      [within, "", inside],
      [within, `id=${a}`, []],
      [other, `uidp.descendantsOf=${outer}`, []],
      [other, `id=${a}`, []],
    ];
    for (const [by, query, ids] of rows) {
      assert.deepEqual(idsOf(await readList(query, by)).sort(), [...ids].sort(), query);
    }
    const theirs = await grpcAs(world.foreignOwner).list({});
    assert.deepEqual(
      theirs.items.map(({ group }) => group?.id),
      [world.foreign],
    );
    const body = { identity: person(), role: viewer };
    for (const [method, path, right, at, sent] of [
      ["POST", `/rolebindings/${outer}`, "create", outer, body],
      ["POST", `/rolebindings/batch/${outer}`, "create", outer, [body]],
      ["PUT", `/rolebindings/${a}`, "update", a, body],
      ["DELETE", `/rolebindings/${a}`, "delete", a, undefined],
    ] as const) {
      assert.deepEqual((await other(method, path, sent)).outcome, permissionDenied(`role_bindings.${right} at ${at}`));
    }
  });
});
