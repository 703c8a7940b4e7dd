// `arbor iam identities revoke-tokens` against a real service.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ask } from "../../../issuer/sts/ask.js";
import { claimsOf, type ExchangeWorld, startExchangeWorld } from "../../../issuer/sts/exchange-world.js";
import { makeProvider } from "../../../issuer/sts/provider-people.js";
import { runCommand } from "../../../support/command.js";
import { tempDir } from "../../../support/temp-dir.js";

let world: ExchangeWorld;
before(async () => {
  world = await startExchangeWorld();
});
after(() => world.stop());

const run = (...args: readonly string[]) =>
  runCommand(["iam", "identities", "revoke-tokens", ...args], { ARBOR_API: world.url, ARBOR_TOKEN: world.owner.token });
const isAccepted = async (token: string) => (await ask(world.url, "/auth/v1/ok", { bearer: token })).status === 200;
const idOf = (token: string) => String(claimsOf(token).jti);

function file(text: string): string {
  const path = join(tempDir(), "token");
  writeFileSync(path, text);
  return path;
}

describe("arbor iam identities revoke-tokens", () => {
  it("revokes all tokens of an identity by its name, and says so", async () => {
    const { uid, token } = await world.harness.identity({ name: "ci-of-all" }, world.root);
    const { code, stdout, stderr } = await run("ours/ci-of-all", "--yes");
    assert.deepEqual([code, stderr], [0, ""]);
    assert.equal(stdout, `revoked all tokens of ${uid}, and ended 0 sessions\n`);
    assert.equal(await isAccepted(token), false);
  });

  it("revokes one by its id, and prints JSON", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    const other = await world.harness.token(uid);
    const { code, stdout, stderr } = await run(uid, "--token-id", idOf(token), "--yes", "-o", "json");
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), { uid, tokenId: idOf(token), endedSessions: 0 });
    assert.deepEqual([await isAccepted(token), await isAccepted(other)], [false, true]);
  });

  it("reads id and identity of a leaked token from its file", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    const leaked = file(`${token}\n`);
    const { code, stdout, stderr } = await run("--leaked-token", leaked, "--yes");
    assert.deepEqual([code, stderr, stdout], [0, "", `revoked the token ${idOf(token)} of ${uid}\n`]);
    assert.equal(await isAccepted(token), false);
    const other = await world.harness.identity({}, world.root);
    const wrong = await run(other.uid, "--leaked-token", leaked, "--yes");
    assert.equal(wrong.code, 2, wrong.stderr);
    assert.ok(wrong.stderr.includes(uid));
    assert.equal(await isAccepted(other.token), true);
  });

  it("revokes those of a person of the organisation's provider, by its name", async () => {
    const provider = await makeProvider(world);
    const uid = await provider.signIn("employee");
    const token = await world.harness.token(uid);
    assert.equal((await run(uid, "--yes")).code, 4, "people are in no group");
    const { code, stderr } = await run(uid, "--identity-provider", "ours/directory", "--yes");
    assert.deepEqual([code, stderr], [0, ""]);
    assert.equal(await isAccepted(token), false);
  });

  it("revokes nothing where its flags do not say what", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    const empty = file("");
    const wrong: readonly (readonly string[])[] = [
      [],
      [uid],
      [uid, "--token-id", "", "--yes"],
      [uid, "--token-id", "x", "--leaked-token", file(token), "--yes"],
      ["--leaked-token", empty, "--yes"],
      ["--leaked-token", join(tempDir(), "missing"), "--yes"],
      ["--leaked-token", file("a.b.c"), "--yes"],
    ];
    for (const args of wrong) {
      const { code, stderr } = await run(...args);
      assert.equal(code, 2, `${args.join(" ")}: ${stderr}`);
      assert.doesNotMatch(stderr, new RegExp(token));
    }
    assert.equal(await isAccepted(token), true);
  });
});
