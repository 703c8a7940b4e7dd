// `arbor auth sessions` and `arbor auth logout` against a real service: the logins of a person, on two machines.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { changeCredentials, setLogin } from "../../../../src/cli/remote/auth/credentials-file.js";
import { createTokens } from "../../../../src/issuer/tokens.js";
import { randomIds } from "../../../../src/kernel/ids.js";
import { ask, queryOf } from "../../../issuer/sts/ask.js";
import { runCommand } from "../../../support/command.js";
import { type Harness, startHarness } from "../../../support/harness.js";
import { tempDir } from "../../../support/temp-dir.js";

let service: Harness;
before(async () => {
  service = await startHarness();
});
after(() => service.stop());

/** A machine of a person, with a login of its own. */
async function logIn(person: { readonly uid: string; readonly token: string }, skewMs = 0) {
  const ARBOR_CREDENTIALS = join(tempDir(), "credentials.json");
  const { keys, store } = service.app.installation;
  const tokens = createTokens({ keys, ids: randomIds, issuer: service.url });
  const refreshToken = await store.write((tx) =>
    tokens.createRefreshToken(tx, person.uid, { audience: service.url }, Date.now() + skewMs),
  );
  const login = { token: person.token, refreshToken };
  await changeCredentials(ARBOR_CREDENTIALS, (stored) => setLogin(stored, service.url, login));
  const env = { ARBOR_CREDENTIALS, ARBOR_API: service.url };
  return { refreshToken, auth: (...args: readonly string[]) => runCommand(["auth", ...args], env) };
}

async function isAlive(refreshToken: string): Promise<boolean> {
  const path = `/sts/exchange_refresh_token?${queryOf({ aud: service.url })}`;
  return (await ask(service.url, path, { method: "POST", bearer: refreshToken })).status === 200;
}

describe("arbor auth sessions", () => {
  it("lists the logins of a person, says which is that of this machine, and ends another", async () => {
    const person = await service.identity();
    const laptop = await logIn(person);
    const stolen = await logIn(person, -60_000);
    const { code, stdout, stderr } = await laptop.auth("sessions", "list");
    assert.deepEqual([code, stderr], [0, ""]);
    const [header, ...rows] = stdout.trimEnd().split("\n");
    assert.match(header ?? "", /^CLIENT +LOGGED IN +EXPIRES +THIS MACHINE +LIMITED TO +ID$/);
    assert.deepEqual(
      rows.map((row) => / yes /.test(row)),
      [true, false],
      stdout,
    );
    const id = rows[1]?.split(" ").at(-1) ?? "";
    assert.deepEqual(await laptop.auth("sessions", "revoke", id, "--yes"), {
      code: 0,
      stdout: `revoked ${id}\n`,
      stderr: "",
    });
    assert.equal(await isAlive(stolen.refreshToken), false);
    const chosen = await laptop.auth("sessions", "list", "--columns", "id,expireTime");
    assert.match(chosen.stdout, /^ID +EXPIRES\n[0-9a-zA-Z_-]+ +\d{4}-\S+\n$/);
    const { sessions } = JSON.parse((await laptop.auth("sessions", "list", "-o", "json")).stdout);
    assert.equal(sessions.length, 1);
    assert.equal(await isAlive(laptop.refreshToken), true);
  });

  it("cannot end what is not one's own", async () => {
    const [one, other] = [await logIn(await service.identity()), await logIn(await service.identity())];
    const [session] = JSON.parse((await one.auth("sessions", "list", "-o", "json")).stdout).sessions;
    const { code, stderr } = await other.auth("sessions", "revoke", session.id, "--yes");
    assert.deepEqual([code, stderr], [5, `arbor: Not found: session: there is no session ${session.id}\n`]);
    assert.equal(await isAlive(one.refreshToken), true);
    const { stdout } = await one.auth("sessions", "revoke", session.id, "--yes", "-o", "wide");
    assert.equal(stdout, `revoked ${session.id}\n`);
  });
});

describe("arbor auth logout", () => {
  it("ends the login at the service, and no other", async () => {
    const person = await service.identity();
    const [laptop, other] = [await logIn(person), await logIn(person)];
    const { code, stdout, stderr } = await laptop.auth("logout");
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^removed the login at /);
    assert.equal(await isAlive(laptop.refreshToken), false);
    assert.equal(await isAlive(other.refreshToken), true);
    assert.equal((await laptop.auth("token")).code, 3);
  });
});
