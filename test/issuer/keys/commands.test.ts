// The commands for keys, beside a service that runs.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Host, type Organisation, type Service, startHost, startService } from "../../e2e/process.js";
import { tempDir } from "../../support/temp-dir.js";
import { waitUntil } from "../../support/wait-until.js";

const data = tempDir();
let host: Host;
let service: Service;
let acme: Organisation;

interface KeyLine {
  readonly kid: string;
  readonly purpose: string;
  readonly state: string;
  readonly createTime: string;
  readonly nextTime: string | null;
}

before(async () => {
  host = startHost();
  acme = await host.bootstrap(data, "acme.example");
  service = await startService(data, "--log-level", "error");
  // A server plans how long its keys sign soon after it is ready.
  await waitUntil(async () => (await listKeys("api-token"))[0]?.nextTime !== null);
});

after(async () => {
  host?.close();
  await service?.stop();
});

const keys = (...args: readonly string[]) => host.run(["admin", "keys", ...args, "--data", data]);

async function must(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await keys(...args);
  assert.equal(code, 0, stderr);
  return stdout;
}

async function listKeys(purpose: string): Promise<readonly KeyLine[]> {
  const rows = (await must("list", "--json")).trim().split("\n");
  return rows.map((row) => JSON.parse(row) as KeyLine).filter((row) => row.purpose === purpose);
}

async function newToken(): Promise<string> {
  const { stdout } = await host.run(["admin", "token", "--identity", acme.identity, "--data", data]);
  return stdout.trim();
}

async function statusFor(token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${service.url}/iam/v2beta1/groups/${acme.group}`, { headers })).status;
}

describe("arbor admin keys", () => {
  it("list shows where every key stands, the newest first", async () => {
    const table = (await must("list")).trimEnd().split("\n");
    assert.match(table[0] ?? "", /^PURPOSE +STATE +CREATED +NEXT +KID$/);
    // One of each purpose, and that of the registry which comes next.
    assert.equal(table.length, 6);
    for (const line of table.slice(1)) {
      assert.match(
        line,
        /^(?:(?:api-token|page-token|audit|registry) +active|registry +pending) +\d{4}-\S+Z +(-|\d{4}-\S+Z) +[\w:-]{16,60}$/,
      );
    }
    const [key, ...others] = await listKeys("api-token");
    assert.ok(key);
    assert.deepEqual(others, []);
    // The service has planned how long it signs.
    const signsMs = Date.parse(key.nextTime ?? "") - Date.parse(key.createTime);
    assert.ok(Math.abs(signsMs - 30 * 24 * 3_600_000) < 60_000, `${signsMs} ms`);
    assert.deepEqual(
      (await listKeys("audit")).map(({ state, nextTime }) => [state, nextTime]),
      [["active", null]],
    );
  });

  it("rotate has a new key of API tokens wait, once", async () => {
    const [active] = await listKeys("api-token");
    const first = await keys("rotate", "--purpose", "api-token");
    const again = await keys("rotate", "--purpose", "api-token");
    assert.match(first.stdout, /^[\w-]{43}\n$/);
    assert.equal(again.stdout, first.stdout);
    const when = "arbor: servers use it once they have published it for as long as others keep keys (--jwks-max-age)\n";
    assert.equal(first.stderr, when);
    assert.equal(again.stderr, `arbor: a rotation is under way already, and this is its key\n${when}`);
    const states = (await listKeys("api-token")).map(({ kid, state }) => [kid, state]);
    assert.deepEqual(states, [
      [first.stdout.trim(), "pending"],
      [active?.kid, "active"],
    ]);
    const token = await newToken();
    const { kid } = JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString());
    assert.equal(kid, active?.kid);
    const planned = await waitUntil(async () => {
      const [next] = await listKeys("api-token");
      return next?.nextTime ? next : undefined;
    });
    const waitMs = Date.parse(planned.nextTime ?? "") - Date.parse(planned.createTime);
    assert.ok(waitMs >= 330_000 && waitMs < 360_000, `${waitMs} ms`);
    const jwks = (await (await fetch(`${service.url}/.well-known/jwks.json`)).json()) as { keys: { kid: string }[] };
    assert.deepEqual(
      jwks.keys.map((key) => key.kid),
      states.map(([kid]) => kid),
    );
  });

  it("rotate puts a key for page tokens or the log to use at once", async () => {
    for (const purpose of ["page-token", "audit"]) {
      const { stdout, stderr } = await keys("rotate", "--purpose", purpose);
      assert.equal(stderr, "");
      const states = (await listKeys(purpose)).map(({ kid, state }) => [kid, state]);
      assert.equal(states.length, 2);
      assert.deepEqual(states[0], [stdout.trim(), "active"]);
      assert.equal(states[1]?.[1], "verify");
    }
  });

  it("revoke ends the key in use at once on a server that runs, and another signs", async () => {
    const token = await newToken();
    assert.equal(await statusFor(token), 200);
    const active = (await listKeys("api-token")).find(({ state }) => state === "active");
    const lines = (await must("revoke", active?.kid ?? "", "--yes", "--jwks-max-age", "1m")).split("\n");
    const now = (await listKeys("api-token")).find(({ state }) => state === "active");
    assert.deepEqual(lines, [
      `${active?.kid} is removed; it was active`,
      `${now?.kid} is new and signs API tokens at once`,
      "running servers refuse what the removed key signed, from now on",
      "others may trust it, and not know the new one, for as long as they keep keys: up to 60 s (--jwks-max-age)",
      "",
    ]);
    assert.equal(await statusFor(token), 401);
    assert.equal(await statusFor(await newToken()), 200);
  });

  it("revoke ends a key that waits, and signs nothing new", async () => {
    const [pending, active] = (await listKeys("api-token")).toSorted((a, b) => b.state.localeCompare(a.state));
    assert.deepEqual([pending?.state, active?.state], ["pending", "active"]);
    const text = await must("revoke", pending?.kid ?? "", "--yes");
    assert.match(text, /^\S+ is removed; it was pending\nrunning servers .*\nothers may trust it for .* 300 s /);
    assert.deepEqual(
      (await listKeys("api-token")).map(({ kid }) => kid),
      [active?.kid],
    );
  });

  it("revoke rejects keys of other purposes", async () => {
    const [audit] = await listKeys("audit");
    const failure = (code: number, text: string) => ({ code, stdout: "", stderr: `arbor: ${text}\n` });
    const rule = `key ${audit?.kid} is for audit; only keys for api-token can be revoked`;
    assert.deepEqual(await keys("revoke", audit?.kid ?? "", "--yes"), failure(6, `Precondition failed: ${rule}`));
    assert.deepEqual(await keys("revoke", "nothing", "--yes"), failure(5, "Not found: key: there is no key nothing"));
  });

  it("leave a row in the audit log for each key that was made or removed", async () => {
    const { stdout } = await host.run(["audit", "list", "--json", "--data", data]);
    const types = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).type);
    assert.deepEqual(
      types.filter((type) => type.startsWith("arbor.key.")),
      ["revoked", "revoked", "rotated", "rotated", "rotated"].map((what) => `arbor.key.${what}.v1`),
    );
  });
});
