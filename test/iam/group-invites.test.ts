// Group invites over REST: their code is shown once, to the creator alone.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { invalid } from "../contract/expectations.js";
import { restAs } from "../contract/rest.js";
import { startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const viewer = builtinRoleUid("viewer");
const ttlRule = "ttl must be more than 0 and at most 365 days";

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const create = (body: object, group = world.child) => world.owner.rest("POST", `/groupInvites/${group}`, body);
const createInvite = async (body: object = {}, group = world.child) => {
  const { status, json, text } = await create({ roleUid: viewer, ttl: "3600s", ...body }, group);
  assert.equal(status, 200, text);
  return json as {
    uid: string;
    keyId: string;
    code: string;
    expirationTime: string;
    email: string;
    singleUse: boolean;
  };
};
const hoursLeft = (time: string) => (Date.parse(time) - Date.now()) / 3_600_000;

describe("an invite", () => {
  const cases: readonly { name: string; body: object; broken: readonly [string, string] }[] = [
    { name: "no role", body: { ttl: "60s" }, broken: ["roleUid", "roleUid is required"] },
    {
      name: "what is no role",
      body: { ttl: "60s", roleUid: "viewer" },
      broken: ["roleUid", "roleUid must be a built-in role or one of the group or above it"],
    },
    { name: "no time to live", body: { roleUid: viewer }, broken: ["ttl", "ttl is required"] },
    ...["0s", "-1s", "31536001s", "0.0001s"].map((ttl) => ({
      name: `a time to live of ${ttl}`,
      body: { roleUid: viewer, ttl },
      broken: ["ttl", ttlRule] as const,
    })),
    ...["x", "a b@c", "a@b@c", "@b", "a@"].map((email) => ({
      name: `the address ${email}`,
      body: { roleUid: viewer, ttl: "60s", email },
      broken: ["email", "email must be an e-mail address"] as const,
    })),
  ];
  for (const { name, body, broken } of cases) {
    it(`with ${name} is rejected`, async () => {
      assert.deepEqual((await create(body)).outcome, invalid(broken));
    });
  }

  it("shows its role, and its code once", async () => {
    const { json } = await create({ roleUid: viewer, ttl: "3600s", email: "a@b.example", singleUse: true });
    const { uid, code, keyId, role, expirationTime } = json as {
      uid: string;
      code: string;
      keyId: string;
      role: { name: string };
      expirationTime: string;
    };
    assert.match(uid, new RegExp(`^${world.child}/[0-9a-f]{16}$`));
    assert.equal(role.name, "viewer");
    assert.ok(Math.abs(hoursLeft(expirationTime) - 1) < 0.1);
    const content = JSON.parse(Buffer.from(code, "base64url").toString()) as { grp: string; kid: string; sec: string };
    assert.deepEqual([content.grp, content.kid], [world.child, keyId]);
    assert.match(content.sec, /^[0-9a-f]{32}$/, "128 bits");
    const others = [
      await world.owner.rest("GET", `/groupInvites/${uid}`),
      await world.owner.rest("GET", "/groupInvites"),
      await world.owner.rest("PATCH", `/groupInvites/${uid}`, { email: "c@d.example" }),
    ];
    for (const { status, text } of others) {
      assert.equal(status, 200, text);
      assert.ok(!text.includes(content.sec) && !text.includes(code), text);
    }
    assert.equal(others[0]?.json?.code, "");
    const codes = await Promise.all(Array.from({ length: 20 }, () => createInvite()));
    assert.equal(new Set(codes.map((one) => one.code)).size, 20);
  });

  it("is in the database without its secret", async () => {
    const data = tempDir();
    const harness = await startHarness({ data });
    const { group, token } = await harness.organisation("sealed");
    const { json } = await restAs(harness.url, token)("POST", `/groupInvites/${group}`, {
      roleUid: viewer,
      ttl: "60s",
      email: "findme@b.example",
    });
    await harness.stop();
    const code = String(json?.code);
    const { sec } = JSON.parse(Buffer.from(code, "base64url").toString()) as { sec: string };
    const files = readdirSync(data).map((name) => readFileSync(join(data, name)));
    assert.ok(files.some((bytes) => bytes.includes("findme@b.example")));
    for (const bytes of files) assert.ok(!bytes.includes(sec) && !bytes.includes(code));
  });

  it("changes its address, use and time to live, not its role", async () => {
    const { uid } = await createInvite({ email: "a@b.example" });
    const patch = async (body: object, query = "") => {
      const { status, json, text } = await world.owner.rest("PATCH", `/groupInvites/${uid}${query}`, body);
      assert.equal(status, 200, text);
      return json as {
        email: string;
        singleUse: boolean;
        roleUid: string;
        role: { uid: string };
        expirationTime: string;
      };
    };
    assert.equal((await patch({ email: "" })).email, "");
    assert.equal((await patch({ email: "c@d.example", singleUse: true }, "?updateMask=singleUse")).email, "");
    const longer = await patch({ ttl: "36000s", roleUid: viewer });
    assert.ok(Math.abs(hoursLeft(longer.expirationTime) - 10) < 0.1);
    assert.deepEqual([longer.singleUse, longer.role.uid], [true, viewer]);
    const { outcome } = await world.owner.rest("PATCH", `/groupInvites/${uid}?updateMask=*`, { email: "x@y.example" });
    assert.deepEqual(outcome, invalid(["ttl", "ttl is required"]));
    const ruled = invalid(["roleUid", "roleUid cannot change: create another invite"]);
    for (const query of ["", "?updateMask=roleUid", "?updateMask=*"]) {
      const body = { ttl: "36000s", roleUid: builtinRoleUid("editor") };
      assert.deepEqual((await world.owner.rest("PATCH", `/groupInvites/${uid}${query}`, body)).outcome, ruled, query);
    }
    await patch({ email: "", roleUid: builtinRoleUid("editor") }, "?updateMask=email");
  });

  it("is listed newest first and found by its key", async () => {
    const group = await world.group();
    const all: { uid: string; keyId: string }[] = [];
    for (let i = 0; i < 3; i++) {
      world.harness.skewMs = i * 1_000;
      all.push(await createInvite({}, group));
    }
    world.harness.skewMs = 0;
    const uids = all.map(({ uid }) => uid);
    const rows: readonly [query: string, uids: readonly (string | undefined)[]][] = [
      ["", [...uids].reverse()],
      ["&order_by=created_at", uids],
      ["&order_by=uid%20desc", [...uids].sort().reverse()],
      [`&key_id=${all[1]?.keyId}`, [uids[1]]],
      ["&keyId=nonsense", []],
    ];
    for (const [query, expected] of rows) {
      const { json } = await world.owner.rest("GET", `/groupInvites?uidp.children_of=${group}${query}`);
      assert.deepEqual(
        ((json?.groupInvites ?? []) as { uid: string }[]).map(({ uid }) => uid),
        expected,
        query,
      );
      assert.equal(json?.totalCount, String(expected.length));
    }
    assert.equal((await world.owner.rest("GET", "/groupInvites?order_by=email")).status, 400);
  });
});
