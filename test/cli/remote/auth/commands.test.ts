import assert from "node:assert/strict";
import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, it, type TestContext } from "node:test";
import {
  changeCredentials,
  readCredentials,
  type StoredLogin,
  setLogin,
} from "../../../../src/cli/remote/auth/credentials-file.js";
import { type Host, startHost } from "../../../e2e/process.js";
import { tempDir } from "../../../support/temp-dir.js";
import { jwt, startLoginService } from "./login-service.js";

describe("arbor auth", () => {
  let host: Host;
  let file: string;
  before(() => {
    host = startHost();
  });
  after(() => host.close());
  beforeEach(() => {
    file = join(tempDir(), "credentials.json");
  });

  const auth = (...args: string[]) => host.run(["auth", ...args], { ARBOR_CREDENTIALS: file });
  const keep = (api: string, login: StoredLogin) => changeCredentials(file, (now) => setLogin(now, api, login));

  async function logIn(test: TestContext) {
    const service = await startLoginService(test);
    const login = service.newLogin(3600);
    await keep(service.url, login);
    return { service, login, api: ["--api", service.url] };
  }

  const commands = [
    ["token"],
    ["token", "--audience", "https://other.example.com"],
    ["status"],
    ["status", "-o", "json"],
  ];
  for (const command of commands) {
    it(`${command.join(" ")} says how to log in when nobody is`, async () => {
      const api = "https://platform.example.com";
      const { code, stdout, stderr } = await auth(...command, "--api", `${api}/`);
      assert.deepEqual([code, stdout], [3, ""]);
      assert.equal(stderr, `arbor: not logged in to ${api}; run: arbor auth login --api ${api}\n`);
    });
  }

  const addresses: [api: string, rule: string][] = [
    ["http://platform.example.com", "must be https: a token is never sent in cleartext to platform.example.com"],
    ["http://127.0.0.1.example.com", "must be https: a token is never sent in cleartext to 127.0.0.1.example.com"],
    ["http://localhost.example.com:80", "must be https: a token is never sent in cleartext to localhost.example.com"],
    ["platform.example.com", "must be an absolute URL"],
    ["ftp://platform.example.com", "must be an http or https URL"],
    ["https://ada:se-cret@platform.example.com", "must not contain credentials"],
    ["https://platform.example.com/?a=b", "must not have a query or fragment"],
  ];
  for (const [api, rule] of addresses) {
    it(`takes no credentials to ${api}`, async () => {
      const all = [
        ["login", "--no-browser"],
        ["token"],
        ["status"],
        ["logout"],
        ["configure-docker", "--registry", "r"],
      ];
      for (const command of all) {
        const { code, stdout, stderr } = await auth(...command, "--api", api);
        assert.deepEqual(
          [code, stdout, stderr],
          [2, "", `arbor: --api: ${rule}; see arbor auth ${command[0]} --help\n`],
        );
      }
      assert.equal(existsSync(file), false);
    });
  }

  it("token prints the token, and renews it when it must", async (test) => {
    const { service, login, api } = await logIn(test);
    assert.deepEqual(await auth("token", ...api), { code: 0, stdout: `${login.token}\n`, stderr: "" });
    const own = await auth("token", ...api, "--audience", `${service.url}/`);
    assert.equal(own.stdout, `${login.token}\n`);
    await keep(service.url, { ...login, token: jwt({ exp: 0 }) });
    const { stdout } = await auth("token", ...api);
    assert.equal(stdout, `${(await readCredentials(file)).logins.get(service.url)?.token}\n`);
    const other = await auth("token", ...api, "--audience", "https://other.example.com");
    assert.equal(other.code, 0);
    assert.notEqual(other.stdout, stdout);
  });

  it("token takes the service from the environment", async (test) => {
    const { service, login } = await logIn(test);
    const env = { ARBOR_CREDENTIALS: file, ARBOR_API: service.url };
    assert.equal((await host.run(["auth", "token"], env)).stdout, `${login.token}\n`);
    const wrong = await host.run(["auth", "token"], { ...env, ARBOR_API: "http://platform.example.com" });
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /^arbor: ARBOR_API: must be https: /);
  });

  it("no command reads a file that is open to others", async (test) => {
    const { api } = await logIn(test);
    chmodSync(file, 0o644);
    for (const command of [["login", "--no-browser"], ["token"], ["status"], ["logout"]]) {
      const { code, stdout, stderr } = await auth(...command, ...api);
      assert.deepEqual([code, stdout], [6, ""]);
      assert.match(stderr, /^arbor: the credentials file \S+ is open to other users; run: chmod 600 \S+\n$/);
    }
  });

  it("status shows what the service says and what is stored, without secrets", async (test) => {
    const { service, login, api } = await logIn(test);
    const { code, stdout, stderr } = await auth("status", ...api, "-o", "json");
    assert.deepEqual([code, stderr], [0, ""]);
    const { expireTime, renewableUntil, ...rest } = JSON.parse(stdout);
    assert.deepEqual(rest, {
      api: service.url,
      credential: "login",
      identity: "person",
      name: "Ada \u001b[31mLovelace",
      issuer: service.url,
      renewedWith: "refresh token",
      credentialsFile: file,
      accepted: true,
    });
    for (const time of [expireTime, renewableUntil]) {
      assert.ok(Math.abs(Date.parse(time) - Date.now() - 3_600_000) < 60_000, time);
    }
    const table = await auth("status", ...api);
    assert.match(table.stdout, /^FIELD +VALUE\napi +http/);
    assert.match(table.stdout, /\nname +Ada \\u001b\[31mLovelace\n/);
    for (const text of [stdout, table.stdout]) {
      assert.ok(!text.includes("\u001b") && !text.includes(login.token) && !text.includes(login.refreshToken));
    }
  });

  it("status renews what the service refuses", async (test) => {
    const { service, login, api } = await logIn(test);
    service.refused.add(login.token);
    const { code, stdout } = await auth("status", ...api, "-o", "json");
    assert.equal(code, 0);
    assert.equal(JSON.parse(stdout).accepted, true);
    assert.notEqual((await readCredentials(file)).logins.get(service.url)?.token, login.token);
  });

  it("status shows what is stored when the service does not answer, or refuses", async (test) => {
    const { service, login, api } = await logIn(test);
    service.fault = [401, { code: 16, message: "Unauthenticated: no" }];
    const refused = await auth("status", ...api, "-o", "json");
    assert.equal(refused.code, 3);
    assert.match(refused.stderr, /^arbor: the login at \S+ has ended; run: arbor auth login /);
    assert.equal(JSON.parse(refused.stdout).accepted, false);
    assert.equal(JSON.parse(refused.stdout).identity, "person");
    await keep(service.url, { token: login.token });
    await service.stop();
    const away = await auth("status", ...api, "-o", "json");
    assert.equal(away.code, 8);
    assert.match(
      away.stderr,
      /^arbor: \S+ cannot be reached: nothing listens there \(ECONNREFUSED\)\n {2}is the service running/,
    );
    assert.equal(JSON.parse(away.stdout).renewedWith, "nothing");
    assert.equal("accepted" in JSON.parse(away.stdout), false, "nobody was asked");
  });

  const note =
    "arbor: ARBOR_TOKEN is set, and commands use it instead of the login; to use the login: unset ARBOR_TOKEN\n";

  it("status shows the token of ARBOR_TOKEN without a login, and otherwise the login with a note", async (test) => {
    const service = await startLoginService(test);
    const api = ["--api", service.url];
    const { token } = service.newLogin(3600);
    const status = () => host.run(["auth", "status", ...api, "-o", "json"], { ...env, ARBOR_TOKEN: token });
    const env = { ARBOR_CREDENTIALS: file };
    const alone = await status();
    assert.deepEqual([alone.code, alone.stderr], [0, ""]);
    const { expireTime, ...rest } = JSON.parse(alone.stdout);
    assert.ok(Date.parse(expireTime) > Date.now());
    assert.deepEqual(rest, {
      api: service.url,
      credential: "ARBOR_TOKEN",
      identity: "person",
      name: "Ada \u001b[31mLovelace",
      issuer: service.url,
      renewedWith: "nothing",
      accepted: true,
    });
    await keep(service.url, service.newLogin(3600));
    const both = await status();
    assert.deepEqual([both.code, both.stderr, JSON.parse(both.stdout).credential], [0, note, "login"]);
    await changeCredentials(file, (now) => setLogin(now, service.url, undefined));
    service.fault = [401, { code: 16, message: "Unauthenticated: authorization: a valid bearer token is required" }];
    const refused = await status();
    assert.deepEqual([refused.code, JSON.parse(refused.stdout).accepted], [3, false]);
    assert.match(
      refused.stderr,
      /a valid bearer token is required\n(?:.*\n)* {2}set ARBOR_TOKEN to a new token, or unset it/,
    );
    await service.stop();
    const away = await status();
    assert.deepEqual([away.code, "accepted" in JSON.parse(away.stdout)], [8, false]);
  });

  it("logout says that ARBOR_TOKEN stays in use", async (test) => {
    const { api } = await logIn(test);
    const ended = await host.run(["auth", "logout", ...api], { ARBOR_CREDENTIALS: file, ARBOR_TOKEN: "a.b.c" });
    assert.deepEqual([ended.code, ended.stderr], [0, note]);
  });

  it("logout forgets one login and says so", async (test) => {
    const { service, api } = await logIn(test);
    await keep("https://other.example.com", { token: "a.b.c" });
    const first = await auth("logout", ...api);
    assert.deepEqual(first, { code: 0, stdout: `removed the login at ${service.url} from ${file}\n`, stderr: "" });
    const second = await auth("logout", ...api);
    assert.deepEqual(second, { code: 0, stdout: `there was no login at ${service.url} in ${file}\n`, stderr: "" });
    assert.deepEqual([...(await readCredentials(file)).logins.keys()], ["https://other.example.com"]);
    assert.equal(service.count("POST /oauth/revoke"), 1);
  });

  it("logout forgets a login that the service cannot end, and says so without its secret", async (test) => {
    const { service, login, api } = await logIn(test);
    service.fault = [400, { error: "invalid_request", error_description: `no ${login.refreshToken}` }];
    const refused = await auth("logout", ...api);
    assert.equal(refused.code, 0);
    assert.match(
      refused.stderr,
      /^arbor: the login was not ended at the service, where it ends at 20\S+: no \[secret\]\n$/,
    );
    assert.equal((await readCredentials(file)).logins.size, 0);
    const { refreshToken } = service.newLogin(60);
    await keep(service.url, { token: login.token, refreshToken });
    await service.stop();
    const away = await auth("logout", ...api);
    assert.deepEqual([away.code, away.stdout], [0, `removed the login at ${service.url} from ${file}\n`]);
    assert.match(
      away.stderr,
      /^arbor: the login was not ended .*: \S+ cannot be reached: nothing listens there \(ECONNREFUSED\)\n$/,
    );
    assert.equal((await readCredentials(file)).logins.size, 0);
  });
});
