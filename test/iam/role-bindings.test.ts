// Role bindings over REST: one by one, in batches, and found again.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid, personUid } from "../../src/kernel/ids.js";
import { invalid } from "../contract/expectations.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const [viewer, editor] = ["viewer", "editor"].map(builtinRoleUid) as [string, string];
const uidRule = (field: string) => `${field} must be a uid, such as the service assigns`;

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

let people = 0;
const person = () => personUid("https://issuer.example", `${people++}`);
const create = (body: object, group = world.child) => world.owner.rest("POST", `/roleBindings/${group}`, body);
const createBinding = async (identityUid = person(), roleUid = viewer, group = world.child): Promise<string> => {
  const { status, json, text } = await create({ identityUid, roleUid }, group);
  assert.equal(status, 200, text);
  return String(json?.uid);
};

describe("a binding", () => {
  it("shows identity, role and group, and of people who never joined the uid alone", async () => {
    const identityUid = person();
    const { json } = await create({ identityUid, roleUid: viewer });
    const { uid, createTime, ...rest } = json ?? {};
    assert.deepEqual(rest, {
      identity: { uid: identityUid, name: "", description: "", subject: "", issuer: "" },
      group: { uid: world.child, name: "group", description: "" },
      role: { uid: viewer, name: "viewer", description: "Viewer Role (built-in)" },
      managedBy: "MANAGED_BY_MANUAL",
    });
    assert.deepEqual((await world.owner.rest("GET", `/roleBindings/${uid}`)).json, json);
  });

  it("changes by the keys present, by masks, and never its group", async () => {
    const [who, other] = [person(), person()];
    const uid = await createBinding(who);
    const patch = async (query: string, body: object) => {
      const { json, text, status } = await world.owner.rest("PATCH", `/roleBindings/${uid}${query}`, body);
      assert.equal(status, 200, text);
      const { identity, role, group } = json as Record<"identity" | "role" | "group", { uid: string }>;
      assert.equal(group.uid, world.child);
      return [identity.uid, role.uid];
    };
    assert.deepEqual(await patch("", { roleUid: editor }), [who, editor]);
    assert.deepEqual(await patch("?updateMask=identityUid", { identityUid: other, roleUid: viewer }), [other, editor]);
    assert.deepEqual(await patch("?updateMask=*", { identityUid: who, roleUid: viewer }), [who, viewer]);
    assert.deepEqual(await patch("?updateMask=group.uid,createTime", {}), [who, viewer]);
    const { outcome } = await world.owner.rest("PATCH", `/roleBindings/${uid}?updateMask=*`, { roleUid: viewer });
    assert.deepEqual(outcome, invalid(["identityUid", "identityUid is required"]));
  });

  it("cannot become one that is there", async () => {
    const who = person();
    const uid = await createBinding(who, viewer);
    await createBinding(who, editor);
    const { status, json } = await world.owner.rest("PATCH", `/roleBindings/${uid}`, { roleUid: editor });
    assert.deepEqual([status, json?.message], [409, `Already exists: role binding: ${uid}`]);
  });
});

describe("a batch", () => {
  const batch = (body: object) =>
    world.owner.rest("POST", "/roleBindings:batchCreate", { parent: world.child, ...body });
  const items = (count: number) => Array.from({ length: count }, () => ({ roleBinding: { identityUid: person() } }));
  it("of 25 is created in order, with its role as the default", async () => {
    const requests = items(25).map((item, i) =>
      i === 3 ? { roleBinding: { ...item.roleBinding, roleUid: viewer }, parent: world.child } : item,
    );
    const { json, text, status } = await batch({ requests, roleUid: viewer });
    assert.equal(status, 200, text);
    const made = json?.roleBindings as { identity: { uid: string }; role: { uid: string } }[];
    assert.deepEqual(
      made.map(({ identity }) => identity.uid),
      requests.map((one) => one.roleBinding.identityUid),
    );
    assert.ok(made.every(({ role }) => role.uid === viewer));
  });
});

describe("lists of bindings", () => {
  it("filter by identity, group and role, all of which must hold", async () => {
    const group = await world.group();
    const inner = await world.group(group);
    const [ann, ben] = [person(), person()];
    const uids = {
      a: await createBinding(ann, viewer, group),
      b: await createBinding(ben, viewer, group),
      c: await createBinding(ann, editor, group),
      d: await createBinding(ann, viewer, inner),
    };
    const rows: readonly [query: string, names: string][] = [
      [`uidp.descendants_of=${group}`, "abcd"],
      [`uidp.children_of=${group}`, "abc"],
      [`group=${group}`, "abc"],
      [`group=${inner}`, "d"],
      [`identity=${ann}`, "acd"],
      [`identity=${ann}&group=${group}`, "ac"],
      [`identity=${ann}&role=${viewer}`, "ad"],
      [`role=${editor}&uidp.descendants_of=${group}`, "c"],
      [`identity=${ben}&role=${editor}`, ""],
      [`uidp.ids=${uids.b}&uidp.ids=${uids.d}&identity=${ann}`, "d"],
      [`identity=${ann}&order_by=created_at`, "acd"],
      [`identity=${ann}&order_by=created_at%20desc`, "acd"],
    ];
    for (const [query, names] of rows) {
      const { json } = await world.owner.rest("GET", `/roleBindings?${query}`);
      const found = ((json?.roleBindings ?? []) as { uid: string }[]).map(
        ({ uid }) => Object.entries(uids).find(([, one]) => one === uid)?.[0] ?? uid,
      );
      assert.deepEqual([found.sort().join(""), json?.totalCount], [names, String(names.length)], query);
    }
    for (const field of ["identity", "group", "role"]) {
      const { outcome } = await world.owner.rest("GET", `/roleBindings?${field}=nonsense`);
      assert.deepEqual(outcome, invalid([field, uidRule(field)]));
    }
    assert.equal((await world.owner.rest("GET", "/roleBindings?order_by=name")).status, 400);
  });
});
