// `arbor admin master-key rotate` and `retire` beside servers under load.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { openInstallation } from "../../src/app/installation.js";
import { resolveSettings } from "../../src/config/config.js";
import { createTickets } from "../../src/issuer/oauth/tickets.js";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { type Rest, restAs } from "../contract/rest.js";
import { Agent, alice, PROGRAM } from "../issuer/oauth/login-kit.js";
import { spawn } from "../support/child-process.js";
import { runCommand } from "../support/command.js";
import { freePort } from "../support/free-port.js";
import { type OidcProvider, startOidcProvider } from "../support/oidc-provider.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { chooseScale } from "../support/scale.js";
import { tempDir } from "../support/temp-dir.js";
import { type Organisation, type Service, startService } from "./process.js";

/** Where the data of the servers is. */
export interface RotationStorage {
  /** The flags of all servers and commands. */
  readonly flags: readonly string[];
  readonly keyFile: string;
  readonly data: string;
  readonly nodes: number;
  /** The flags with which the key is rotated in one step. */
  readonly rotate: readonly string[];
}

/** How many logins are open while the key is rotated. */
const OPEN_LOGINS = 400;
const MINUTE_MS = 60_000;
/** How many providers with a client secret there are. */
const PROVIDERS = 3;

/** Registers the tests. */
export function masterKeySuite(name: string, createStorage: () => Promise<RotationStorage>): void {
  describe(name, () => {
    let storage: RotationStorage;
    let provider: OidcProvider;
    let organisation: Organisation;
    let token: string;
    let services: Service[] = [];
    let serverFlags: string[];
    let listen: string;

    before(async () => {
      storage = await createStorage();
      provider = await startOidcProvider({ account: alice });
      const files = tempDir();
      const { issuer, clientId, clientSecret = "" } = provider;
      const clientSecretFile = join(files, "client.secret");
      writeFileSync(clientSecretFile, clientSecret, { mode: 0o600 });
      const loginProviders = join(files, "login-providers.json");
      writeFileSync(loginProviders, JSON.stringify([{ name: "test", title: "T", issuer, clientId, clientSecretFile }]));
      listen = `127.0.0.1:${await freePort()}`;
      serverFlags = [
        ...["--login-providers", loginProviders, "--trusted-issuers", issuer, "--registration", "open"],
        ...["--base-url", `http://${listen}`, "--metrics-listen", "off", "--no-access-log"],
        ...storage.flags,
      ];
      provider.allowRedirect(`http://${listen}/oauth/callback`);
      const made = await arbor("bootstrap", "--org", "acme.example", "--base-url", `http://${listen}`, "--json");
      assert.equal(made.code, 0, made.stderr);
      organisation = JSON.parse(made.stdout) as Organisation;
      token = organisation.token;
      const first = await startService(storage.data, "--listen", listen, ...serverFlags);
      services = [first];
      for (let i = 0; i < PROVIDERS; i++) {
        assert.equal((await createProvider(restAs(first.url, token), `kept ${i}`)).status, 200);
      }
      while (services.length < storage.nodes) services.push(await startService(storage.data, ...serverFlags));
    });
    after(async () => {
      for (const service of services) await service.stop();
      await provider.stop();
    });

    const arbor = (...args: readonly string[]) => runCommand([...args, "--data", storage.data, ...storage.flags]);
    const createProvider = (rest: Rest, name: string) =>
      rest("POST", `/identityProviders/${organisation.group}`, {
        ...{ name, defaultRole: builtinRoleUid("viewer") },
        oidc: { issuer: provider.issuer, clientId: "x", clientSecret: "a client secret" },
      });
    const keysIn = () => readFileSync(storage.keyFile, "utf8").trim().split("\n");

    // Opens logins as of earlier, each sealed with the key of now.
    async function openLogins(): Promise<void> {
      const flags = Object.fromEntries(
        ["--data", storage.data, ...storage.flags].flatMap((flag, i, all) =>
          i % 2 === 0 ? [[flag.slice(2).replace(/-(\w)/g, (_, letter) => letter.toUpperCase()), all[i + 1]]] : [],
        ),
      );
      const { store, masterKey, close } = await openInstallation({
        mode: "update",
        settings: resolveSettings({ flags, env: {} }),
      });
      const tickets = createTickets(masterKey);
      for (let i = 0; i < OPEN_LOGINS; i += 50) {
        await store.write(async (tx) => {
          for (let n = i; n < i + 50; n++) {
            await tickets.put(
              tx,
              "authorization",
              `secret ${n} ${Math.random()}`,
              {} as never,
              Date.now() + 10 * MINUTE_MS,
            );
          }
        });
      }
      await close();
    }

    /** Calls all servers until `work` is done; resolves to how many calls there were and what failed. */
    async function underLoad(
      work: () => Promise<unknown>,
    ): Promise<{ calls: number; logins: number; failures: string[] }> {
      const result = { calls: 0, logins: 0, failures: [] as string[] };
      let isDone = false;
      const note = (what: string, isGood: boolean, response: unknown) => {
        result.calls++;
        if (!isGood) result.failures.push(`${what}: ${JSON.stringify(response).slice(0, 500)}`);
      };
      const callers = services.map(async ({ url }, node) => {
        const rest = restAs(url, token);
        for (let i = 0; !isDone; i++) {
          const first = await rest("GET", "/groups?pageSize=1&orderBy=name");
          const pageToken = String(first.json?.nextPageToken ?? "");
          note("list", first.status === 200, first);
          if (pageToken !== "") {
            const next = await rest(
              "GET",
              `/groups?pageSize=1&orderBy=name&pageToken=${encodeURIComponent(pageToken)}`,
            );
            note("page", next.status === 200, next);
          }
          const group = await rest("POST", `/groups/${organisation.group}`, { name: `group ${node} ${i}` });
          note("create", group.status === 200, group);
          const idp = await createProvider(rest, `p ${node} ${i}`);
          note("client secret", idp.status === 200, idp);
          if (idp.status === 200) {
            const { uid } = (idp.json?.identityProvider ?? idp.json) as { uid: string };
            const gone = await rest("DELETE", `/identityProviders/${uid}`);
            note("delete", gone.status === 200, gone);
          }
          await delay(10);
        }
      });
      const people = Array.from({ length: 2 }, async () => {
        while (!isDone) {
          const agent = new Agent();
          const query = new URLSearchParams({
            exit: "redirect",
            redirect: `${PROGRAM}?token=true&error=true`,
            client_id: "any",
          });
          const page = await agent.decide(await agent.get(`http://${listen}/oauth?${query}`));
          note("login", page.program?.has("token") === true, [page.status, page.url, page.text.slice(0, 200)]);
          result.logins++;
        }
      });
      await delay(300);
      await work().finally(() => {
        isDone = true;
      });
      await Promise.all([...callers, ...people]);
      return result;
    }

    test("a rotation fails no call, and everything is encrypted with the new key afterwards", async (t) => {
      await openLogins();
      const before = keysIn();
      assert.equal(before.length, 1);
      const { calls, logins, failures } = await underLoad(async () => {
        const { code, stdout, stderr } = await runArbor("admin", "master-key", "rotate", ...storage.rotate);
        assert.equal(code, 0, stderr);
        assert.match(stdout, /^encrypted again: [1-9]\d* keys, [1-9]\d* client secrets, [1-9]\d* logins\n/);
        const rotated = keysIn();
        assert.deepEqual([rotated.length, rotated[1]], [2, before[0]]);
        // At once: servers may not have read the file of the rotation yet.
        const retired = await arbor("admin", "master-key", "retire", "--yes");
        assert.equal(retired.code, 0, retired.stderr);
        assert.deepEqual(keysIn(), rotated.slice(0, 1));
        for (const service of services) await service.waitForLog('"keys":1,"msg":"the master key file was read again"');
      });
      t.diagnostic(`${calls} calls and logins, ${logins} of them logins, ${failures.length} failed`);
      assert.deepEqual(failures.slice(0, 2), [], `${failures.length} of ${calls}`);
      assert.ok(calls > 50 && logins > 3, `${calls} calls, ${logins} logins`);
      const checked = await arbor("check");
      assert.match(checked.stdout, /^keys: sound$/m, checked.stdout);
      const listed = await arbor("audit", "list", "--root", "", "--json");
      assert.match(listed.stdout, /arbor\.master-key\.rotated\.v1/);
    });

    test("killed at any point, it is run again", async (t) => {
      await openLogins();
      const { failures, calls } = await underLoad(async () => {
        for (const pauseMs of [0, 40, 10, 80, 5, 160, 20, 320].slice(0, chooseScale(8, 1))) {
          await killAfter(pauseMs);
          assert.equal(keysIn().length, 2, "one new key at most");
          const { stdout } = await arbor("check");
          assert.match(stdout, /^keys: sound$/m, `killed after ${pauseMs} ms: ${stdout}`);
          const completed = await arbor("admin", "master-key", "retire", "--yes");
          assert.equal(completed.code, 0, completed.stderr);
          t.diagnostic(`killed after ${pauseMs} ms; then ${completed.stdout.split("\n")[0]}`);
          await openLogins();
        }
        await killAfter(0);
        const again = await arbor("admin", "master-key", "rotate", ...storage.rotate);
        assert.equal(again.code, 0, again.stderr);
        assert.equal(keysIn().length, 2, "no further key");
        assert.equal((await arbor("admin", "master-key", "retire", "--yes")).code, 0);
      });
      assert.deepEqual(failures.slice(0, 2), [], `${failures.length} of ${calls}`);
      assert.equal(keysIn().length, 1);
      assert.match((await arbor("check")).stdout, /^keys: sound$/m);
    });

    test("control: with the old key deleted too early nothing starts, and servers that run say so and go on", async () => {
      await openLogins();
      const [old] = keysIn();
      writeFileSync(storage.keyFile, `${Buffer.alloc(32, 9).toString("base64")}\n`, { mode: 0o600 });
      const { code, stderr } = await arbor("admin", "keys", "list");
      assert.equal(code, 6);
      assert.match(stderr, /--master-key-file: \S+ does not open what is stored \(master-key-check\)\n$/);
      for (const service of services) {
        const line = await service.waitForLog("the master key file cannot be used: the keys before stay in use");
        assert.match(String(line.problem), /does not open what is stored/);
      }
      const { failures } = await underLoad(() => delay(500));
      assert.deepEqual(failures.slice(0, 2), []);
      writeFileSync(storage.keyFile, `${old}\n`, { mode: 0o600 });
    });

    // As a process of its own, which can be killed.
    function start(...args: readonly string[]) {
      const all = [...scriptArguments("src/main.ts"), ...args, "--data", storage.data, ...storage.flags];
      return spawn(process.execPath, all, { cwd: PROJECT, env: environmentWithoutSettings(), stdio: "pipe" });
    }

    async function runArbor(...args: readonly string[]) {
      const child = start(...args);
      const output = { stdout: "", stderr: "" };
      for (const stream of ["stdout", "stderr"] as const) {
        child[stream].on("data", (chunk: Buffer) => {
          output[stream] += chunk.toString();
        });
      }
      const [code] = await once(child, "close");
      return { code: code as number | null, ...output };
    }

    // Kills the command so long after its first line, which it writes when the file has the new key, unless it ends before.
    async function killAfter(pauseMs: number): Promise<void> {
      const child = start("admin", "master-key", "rotate", ...storage.rotate);
      const closed = once(child, "close");
      await Promise.race([once(child.stderr, "data"), once(child.stdout, "data"), closed]);
      await delay(pauseMs);
      child.kill("SIGKILL");
      const [code, signal] = await closed;
      if (pauseMs === 0 || signal !== null) assert.equal(signal, "SIGKILL");
      else assert.equal(code, 0);
    }
  });
}
