// The redirect URI to register at an organisation's provider, which tables show and which is no field of the API.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { builtinRoleUid } from "../../../../src/kernel/ids.js";
import { type CliWorld, startCliWorld } from "./cli-world.js";

let world: CliWorld;
before(async () => {
  world = await startCliWorld();
});
after(() => world?.stop());

test("tables of identity providers show their redirect URIs, as they are made, alone and in lists", async () => {
  const idp = ["--default-role", builtinRoleUid("viewer"), "--oidc-issuer", "https://login.example"];
  const made = await world.iam(
    ...["identity-providers", "create", "--parent", world.root, "--name", "login", ...idp],
    ...["--oidc-client-id", "id", "--oidc-client-secret-file", world.file("s3cr3t")],
  );
  assert.equal(made.code, 0, made.stderr);
  const uid = /uid +(\S+)/.exec(made.stdout)?.[1] ?? "";
  const uri = `${world.service.url}/oauth/callback/${uid}`;
  const line = new RegExp(`^redirect URI +${uri}$`, "m");
  assert.match(made.stdout, line);
  assert.match((await world.iam("identity-providers", "get", uid)).stdout, line);
  assert.match((await world.iam("identity-providers", "update", uid, "--name", "other")).stdout, line);
  const list = await world.iam("identity-providers", "list");
  assert.match(list.stdout, /REDIRECT URI +UID$/m);
  assert.ok(list.stdout.includes(uri), list.stdout);
  assert.equal(JSON.stringify(await world.json("identity-providers", "get", uid)).includes("callback"), false);
  assert.equal((await world.iam("groups", "get", world.root)).stdout.includes("callback"), false);
});
