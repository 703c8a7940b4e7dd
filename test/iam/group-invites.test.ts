// The code of a group invite is shown once, to the creator alone. What requests may say is in test/contract/rules.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { restAs } from "../contract/rest.js";
import { startHarness } from "../support/harness.js";
import { tempDir } from "../support/temp-dir.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const viewer = builtinRoleUid("viewer");

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
});
