// The operator's commands for quotas, beside a service that runs, and what the
// command of its clients says of a full one.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Host, type Organisation, type Service, startHost, startService } from "../../e2e/process.js";
import { tempDir } from "../../support/temp-dir.js";
import { osvRecord } from "../../vulnerabilities/osv-kit.js";

const data = tempDir();
let host: Host;
let service: Service;
let acme: Organisation;
let token: string;

before(async () => {
  host = startHost();
  acme = await host.bootstrap(data, "acme.example");
  service = await startService(data, "--quotas", "repos=7", "--log-level", "error");
  const { stdout } = await host.run(["admin", "token", "--identity", acme.identity, "--data", data]);
  token = stdout.trim();
});
after(async () => {
  await service.stop();
  host.close();
});

const quota = (command: string, group: string, ...rest: readonly string[]) =>
  host.run(["admin", "quota", command, "--data", data, "--group", group, ...rest]);
const iam = (...args: readonly string[]) => host.run(["iam", ...args], { ARBOR_API: service.url, ARBOR_TOKEN: token });

/** The line of a quota, as `list --json` prints it. */
async function listQuota(name: string, env?: Readonly<Record<string, string>>): Promise<unknown> {
  const { stdout } = await host.run(["admin", "quota", "list", "--data", data, "--group", acme.group, "--json"], env);
  const lines = stdout.trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as { quota: string }).find((one) => one.quota === name);
}

describe("arbor admin quota", () => {
  it("list shows what there is and may be, by the settings it is given", async () => {
    const { code, stdout, stderr } = await quota("list", acme.group);
    assert.deepEqual([code, stderr], [0, ""]);
    const [header, ...rows] = stdout.trimEnd().split("\n");
    assert.match(header ?? "", /^QUOTA +USED +LIMIT +SET FOR$/);
    assert.equal(rows.length, 15);
    assert.ok(rows.some((row) => /^bindings +1 +50000 +all$/.test(row)));
    assert.deepEqual(await listQuota("repos", { ARBOR_QUOTAS: "repos=7" }), {
      quota: "repos",
      limit: 7,
      own: false,
      used: 0,
    });
  });

  it("set holds with the next call, says in the client's words what is full, and is audited", async () => {
    assert.equal((await iam("groups", "create", "--parent", acme.group, "--name", "one")).code, 0);
    assert.deepEqual(await quota("set", acme.group, "groups=1", "tags=5"), { code: 0, stdout: "", stderr: "" });
    assert.deepEqual(await listQuota("groups"), { quota: "groups", limit: 1, own: true, used: 1 });
    const { code, stdout, stderr } = await iam("groups", "create", "--parent", acme.group, "--name", "two");
    const rule = "the organisation's limit of groups is 1, and 1 more would exceed it";
    assert.deepEqual([code, stdout], [7, ""]);
    assert.equal(stderr, `arbor: Resource exhausted: groups: ${rule}\n`);
    assert.equal((await quota("set", acme.group, "groups=default")).code, 0);
    assert.deepEqual(await listQuota("groups"), { quota: "groups", limit: 10_000, own: false, used: 1 });
    assert.deepEqual(await listQuota("tags"), { quota: "tags", limit: 5, own: true, used: 0 });
    assert.equal((await iam("groups", "create", "--parent", acme.group, "--name", "two")).code, 0);
    const log = await host.run(["audit", "list", "--data", data, "--root", acme.group, "--json"]);
    const rows = log.stdout
      .trimEnd()
      .split("\n")
      .map(
        (line) => JSON.parse(line) as { type: string; subjectUid: string; body?: { before: object; after: object } },
      );
    const set = rows.filter(({ type }) => type === "arbor.quota.set.v1");
    assert.deepEqual(
      set.map(({ subjectUid }) => subjectUid),
      [acme.group, acme.group],
    );
    // The newest comes first.
    assert.deepEqual(
      set.map(({ body }) => [body?.before, body?.after]),
      [
        [{ groups: 1, tags: 5 }, { tags: 5 }],
        [{}, { groups: 1, tags: 5 }],
      ],
    );
  });

  it("refuses what is no quota, no limit or no root group, and changes nothing", async () => {
    const before = await listQuota("roles");
    const child = JSON.parse(
      (await iam("groups", "create", "--parent", acme.group, "--name", "c", "-o", "json")).stdout,
    );
    const names =
      "groups, identities, roles, bindings, invites, providers, mappings, subscriptions, repos, tags, advisories, " +
      "overlays, overlayBindings, scimUsers, scimGroups";
    const rule = (text: string) =>
      `arbor: ${text}: must be NAME=LIMIT, and NAME one of ${names}; see arbor admin quotas set --help\n`;
    const number =
      "arbor: roles: must be a whole number from 0 to 2147483647, or default; see arbor admin quotas set --help\n";
    for (const [group, text, code, message] of [
      [acme.group, "roots=3", 2, rule("roots=3")],
      [acme.group, "roles", 2, rule("roles")],
      [acme.group, "toString=1", 2, rule("toString=1")],
      [acme.group, "roles=-1", 2, number],
      [acme.group, "roles=2147483648", 2, number],
      [acme.group, "roles=1e3", 2, number],
      [child.uid, "roles=1", 6, "arbor: Precondition failed: quotas belong to organisations: name a root group\n"],
      ["0".repeat(40), "roles=1", 5, `arbor: Not found: group: there is no group ${"0".repeat(40)}\n`],
    ] as const) {
      assert.deepEqual(await quota("set", group, text), { code, stdout: "", stderr: message });
    }
    assert.deepEqual(await listQuota("roles"), before);
  });

  it("holds for calls, not for imports on the host, which count", async () => {
    assert.equal((await quota("set", acme.group, "advisories=0")).code, 0);
    const file = join(tempDir(), "record.json");
    writeFileSync(file, JSON.stringify(osvRecord("TEST-2024-1")));
    const imported = await host.run(["advisories", "import", file, "--data", data, "--group", acme.group]);
    assert.equal(imported.code, 0, imported.stderr);
    assert.deepEqual(await listQuota("advisories"), { quota: "advisories", limit: 0, own: true, used: 1 });
  });
});
