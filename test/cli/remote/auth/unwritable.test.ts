// A credentials file whose directory is read-only or full: what needs nothing stored goes on, and what does ends before a
// refresh token is used. Root mounts small file systems; others take the right to write.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { Code } from "@connectrpc/connect";
import { findStoredToken, issueTokenFor, logoutCommand } from "../../../../src/cli/remote/auth/credentials.js";
import { changeCredentials, type StoredLogin, setLogin } from "../../../../src/cli/remote/auth/credentials-file.js";
import { loginCommand } from "../../../../src/cli/remote/auth/login.js";
import { spawnSync } from "../../../support/child-process.js";
import { tempDir } from "../../../support/temp-dir.js";
import { jwt, startLoginService } from "./login-service.js";
import { commandErrorOf } from "./process.js";

const RENEWAL = "POST /sts/exchange_refresh_token";
const EXCHANGE = "GET /sts/exchange";
const isRoot = process.getuid?.() === 0;

const mount = (...args: readonly string[]) => spawnSync("mount", args, { stdio: "ignore" }).status === 0;

interface Directory {
  readonly path: string;
  /** Makes it so. */
  readonly spoil: () => void;
  readonly restore: () => void;
}

/** Creates a directory that can be made read-only; undefined where that is not possible. */
function createReadOnly(t: TestContext): Directory | undefined {
  const path = tempDir();
  if (!isRoot) {
    t.after(() => chmodSync(path, 0o700));
    return { path, spoil: () => chmodSync(path, 0o500), restore: () => chmodSync(path, 0o700) };
  }
  if (!mount("-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", path)) return undefined;
  t.after(() => spawnSync("umount", [path]));
  const remount = (how: string) => assert.ok(mount("-o", `remount,${how}`, path));
  return { path, spoil: () => remount("ro"), restore: () => remount("rw") };
}

/** Creates a directory that can be filled; undefined without root. */
function createFull(t: TestContext): Directory | undefined {
  const path = tempDir();
  if (!isRoot || !mount("-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", path)) return undefined;
  t.after(() => spawnSync("umount", [path]));
  const filler = join(path, "filler");
  const spoil = () => void spawnSync("dd", ["if=/dev/zero", `of=${filler}`, "bs=4k"], { stdio: "ignore" });
  return { path, spoil, restore: () => rmSync(filler) };
}

for (const { what, create, reason } of [
  { what: "read-only", create: createReadOnly, reason: /read-only file system \(EROFS\)|permission denied/ },
  { what: "full", create: createFull, reason: /no space left \(ENOSPC\)/ },
]) {
  describe(`a ${what} configuration directory`, () => {
    async function start(t: TestContext, login: (tokenFile: string) => Partial<StoredLogin>) {
      const directory = create(t);
      if (directory === undefined) return undefined;
      const service = await startLoginService(t);
      const file = join(directory.path, "arbor", "credentials.json");
      mkdirSync(join(directory.path, "arbor"), { mode: 0o700 });
      process.env.ARBOR_CREDENTIALS = file;
      const tokenFile = join(tempDir(), "oidc-token");
      writeFileSync(tokenFile, "first\n");
      const stored = { ...service.newLogin(-60), ...login(tokenFile) };
      await changeCredentials(file, (now) => setLogin(now, service.url, stored));
      const before = readFileSync(file, "utf8");
      if (!isRoot) chmodSync(join(directory.path, "arbor"), 0o500);
      directory.spoil();
      const restore = () => {
        directory.restore();
        if (!isRoot) chmodSync(join(directory.path, "arbor"), 0o700);
      };
      return { service, file, before, stored, restore };
    }
    const skipped = "needs root and mount";

    it("does not keep a refresh token from being used later, and the error names the file", async (t) => {
      const begun = await start(t, () => ({}));
      if (begun === undefined) return t.skip(skipped);
      const { service, file, before, restore } = begun;
      for (const work of [
        async () => (await findStoredToken(service.url))?.token(),
        () => issueTokenFor(service.url, "https://other.example.com"),
        () => logoutCommand({ api: service.url }),
        () => loginCommand({ api: service.url, browser: false, headless: true }),
      ]) {
        const { code, message } = await commandErrorOf(work());
        assert.ok([Code.Unavailable, Code.FailedPrecondition].includes(code as number), message);
        assert.ok(message.startsWith(`the credentials file ${file} cannot be written: `), message);
        assert.match(message, reason);
      }
      assert.equal(service.count(RENEWAL), 0, "the refresh token is good for one use");
      assert.equal(readFileSync(file, "utf8"), before);
      // Control: once there is room, the same login goes on.
      restore();
      assert.ok(await (await findStoredToken(service.url))?.token());
      assert.equal(service.count(RENEWAL), 1);
    });

    it("leaves a token in use that is still valid", async (t) => {
      const token = jwt({ iat: 0, exp: Math.floor(Date.now() / 1000) + 250 });
      const begun = await start(t, () => ({ token }));
      if (begun === undefined) return t.skip(skipped);
      assert.equal(await (await findStoredToken(begun.service.url))?.token(), token);
      assert.equal(begun.service.requests.length, 0);
    });

    it("lets an identity go on with a token that is not stored", async (t) => {
      const identity = "0123456789abcdef0123456789abcdef01234567/4567";
      const begun = await start(t, (tokenFile) => ({
        token: jwt({ exp: 0 }),
        workload: { identity, tokenFile },
      }));
      if (begun === undefined) return t.skip(skipped);
      const { service, file, before } = begun;
      assert.ok(await (await findStoredToken(service.url))?.token());
      assert.ok(await issueTokenFor(service.url, "https://other.example.com"));
      assert.equal(service.count(EXCHANGE), 2);
      assert.equal(readFileSync(file, "utf8"), before);
    });
  });
}
