import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { Code } from "@connectrpc/connect";
import {
  changeCredentials,
  findCredentialsFile,
  readCredentials,
  setLogin,
} from "../../../../src/cli/remote/auth/credentials-file.js";
import { tempDir } from "../../../support/temp-dir.js";
import { commandErrorOf, script } from "./process.js";

const API = "https://platform.example.com";
const OTHER = "https://other.example.com";
const login = { token: "a.b.c", refreshToken: "cmVmcmVzaA==" };
const workload = { identity: "0123456789abcdef0123456789abcdef01234567/4567", tokenFile: "/var/run/token" };

const newFile = () => join(tempDir(), "deeper", "arbor", "credentials.json");
const keep = (file: string, api = API, token = login.token) =>
  changeCredentials(file, (now) => setLogin(now, api, { ...login, token }));

describe("the credentials file", () => {
  it("is where the environment says", () => {
    const standard = join(homedir(), ".config/arbor/credentials.json");
    const cases: [Record<string, string>, string][] = [
      [{}, standard],
      [{ XDG_CONFIG_HOME: "/etc/me" }, "/etc/me/arbor/credentials.json"],
      [{ XDG_CONFIG_HOME: "relative" }, standard],
      [{ XDG_CONFIG_HOME: "" }, standard],
      [{ XDG_CONFIG_HOME: "/etc/me", ARBOR_CREDENTIALS: "/tmp/c.json" }, "/tmp/c.json"],
      [{ ARBOR_CREDENTIALS: "c.json" }, join(process.cwd(), "c.json")],
    ];
    for (const [env, expected] of cases) assert.equal(findCredentialsFile(env), expected, JSON.stringify(env));
  });

  it("is empty before there is one, and looking does not make it", async () => {
    const file = newFile();
    assert.deepEqual(await readCredentials(file), { logins: new Map(), registries: new Map() });
    assert.throws(() => statSync(dirname(file)), { code: "ENOENT" });
  });

  it("is its owner's alone, whatever the umask, and so is its directory", async () => {
    const file = newFile();
    const before = process.umask(0);
    try {
      await keep(file);
    } finally {
      process.umask(before);
    }
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.equal(statSync(dirname(file)).mode & 0o777, 0o700);
    assert.deepEqual(readdirSync(dirname(file)), ["credentials.json"], "nothing else is left");
  });

  it("gives back what was put in, by service", async () => {
    const file = newFile();
    const registries = new Map([
      ["registry.example.com:5000", { api: API }],
      ["[::1]:5000", { api: OTHER, workload }],
    ]);
    await keep(file);
    await changeCredentials(file, (now) => ({ ...setLogin(now, OTHER, { token: "d.e.f", workload }), registries }));
    const logins = new Map<string, object>([
      [API, login],
      [OTHER, { token: "d.e.f", workload }],
    ]);
    assert.deepEqual(await readCredentials(file), { logins, registries });
    await changeCredentials(file, (now) => setLogin(now, API, undefined));
    assert.deepEqual([...(await readCredentials(file)).logins.keys()], [OTHER]);
  });

  for (const mode of [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o777]) {
    it(`is neither read nor changed with mode ${mode.toString(8)}`, async () => {
      const file = newFile();
      await keep(file);
      chmodSync(file, mode);
      for (const attempt of [readCredentials, keep]) {
        const { code, message } = await commandErrorOf(attempt(file));
        assert.equal(code, Code.FailedPrecondition);
        assert.equal(message, `the credentials file ${file} is open to other users; run: chmod 600 ${file}`);
      }
      assert.equal(statSync(file).mode & 0o777, mode);
    });
  }

  it("is not read when it is another user's", { skip: process.getuid?.() !== 0 }, async () => {
    const file = newFile();
    await keep(file);
    chownSync(file, 12345, 12345);
    const { code, message } = await commandErrorOf(readCredentials(file));
    assert.equal(code, Code.FailedPrecondition);
    assert.equal(message, `the credentials file ${file} belongs to another user`);
  });

  const damaged = "is damaged; remove it and log in again";
  const texts: [what: string, text: string, says: string][] = [
    ["empty", "", damaged],
    ["cut short", `{"version":1,"logins":{"${API}":{"token":"se-cret`, damaged],
    ["a list", "[]", damaged],
    ["without version", `{"logins":{},"registries":{}}`, damaged],
    ["newer", `{"version":2,"logins":{}}`, "was written by a newer version of arbor"],
    ["with a login without token", `{"version":1,"logins":{"${API}":{"refreshToken":"se-cret"}}}`, damaged],
    ["with a token that is none", `{"version":1,"logins":{"${API}":{"token":"se-cret\\r\\nx: y"}}}`, damaged],
    ["with half a workload", `{"version":1,"logins":{"${API}":{"token":"t","workload":{"identity":"i"}}}}`, damaged],
    ["with a registry of nobody", `{"version":1,"registries":{"registry.example.com":{}}}`, damaged],
  ];
  for (const [what, text, says] of texts) {
    it(`is refused and kept when it is ${what}, without a word of what is in it`, async () => {
      const file = newFile();
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text, { mode: 0o600 });
      for (const attempt of [readCredentials, keep]) {
        const { code, message } = await commandErrorOf(attempt(file));
        assert.equal(code, Code.FailedPrecondition);
        assert.equal(message, `the credentials file ${file} ${says}`);
      }
      assert.equal(readFileSync(file, "utf8"), text);
    });
  }

  it("holds the old or the new, and can be changed again, when a process is killed before the rename", async () => {
    const file = newFile();
    await keep(file);
    const before = readFileSync(file, "utf8");
    const { signal, stderr } = await script("killed-while-writing.ts", [file, OTHER]).ended;
    assert.equal(signal, "SIGKILL", stderr);
    assert.equal(readFileSync(file, "utf8"), before);
    const left = readdirSync(dirname(file));
    assert.deepEqual(left.sort(), ["credentials.json", "credentials.json.lock", "credentials.json.new"]);
    assert.equal(statSync(`${file}.new`).mode & 0o777, 0o600);
    await keep(file, OTHER, "g.h.i");
    assert.deepEqual([...(await readCredentials(file)).logins.keys()], [API, OTHER]);
    assert.deepEqual(readdirSync(dirname(file)), ["credentials.json"]);
  });

  it("loses nothing when many change it at once", async () => {
    const file = newFile();
    const apis = Array.from({ length: 12 }, (_, i) => `https://platform-${i}.example.com`);
    await Promise.all(apis.map((api) => keep(file, api)));
    assert.deepEqual([...(await readCredentials(file)).logins.keys()].sort(), apis.sort());
  });

  it("is left as it was when a change fails", async () => {
    const file = newFile();
    await keep(file);
    await assert.rejects(
      changeCredentials(file, () => Promise.reject(new Error("no"))),
      /^Error: no$/,
    );
    await keep(file, OTHER);
    assert.equal((await readCredentials(file)).logins.size, 2);
  });
});
