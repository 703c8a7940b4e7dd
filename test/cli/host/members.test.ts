// `arbor bootstrap` again, and the lists with which an operator finds an owner whose uid was lost, beside a running service.
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  type Finished,
  type Host,
  type Organisation,
  type Service,
  startHost,
  startService,
} from "../../e2e/process.js";
import { tempDir } from "../../support/temp-dir.js";

const data = tempDir();
let host: Host;
let service: Service;
let acme: Organisation;
let deployer: string;

before(async () => {
  host = startHost();
  acme = await host.bootstrap(data, "acme.example");
  await host.bootstrap(data, "other.example");
  service = await startService(data, "--log-level", "error");
  const { stdout } = await onHost("admin", "token", "--identity", acme.identity);
  const env = { ARBOR_API: service.url, ARBOR_TOKEN: stdout.trim() };
  const flags = ["--name", "deployer", "--issuer", "https://ci.example", "--subject", "main", "-o", "json"];
  const made = await host.run(["iam", "identities", "create", "--parent", acme.group, ...flags], env);
  assert.equal(made.code, 0, made.stderr);
  deployer = (JSON.parse(made.stdout) as { uid: string }).uid;
});
after(async () => {
  await service?.stop();
  host?.close();
});

const onHost = (...args: readonly string[]): Promise<Finished> => host.run([...args, "--data", data]);
const parse = ({ stdout }: Finished) =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { uid: string; name: string; kind?: string; roles?: { roleName: string }[] });

describe("arbor bootstrap", () => {
  it("says how to go on, without the token", async () => {
    const { code, stdout, stderr } = await onHost("bootstrap", "--org", "third.example");
    assert.equal(code, 0, stderr);
    const {
      group = "",
      identity = "",
      token = "",
    } = Object.fromEntries(stdout.split("\n").map((line) => line.split(": ") as [string, string]));
    assert.match(stderr, /\n {2}start: +arbor serve --data \S+ --login-providers FILE/);
    assert.ok(stderr.includes(`arbor iam group-invites create --api ${service.url} --parent ${group} `), stderr);
    assert.ok(stderr.includes(`arbor auth login --api ${service.url} --invite-file FILE`), stderr);
    assert.ok(stderr.includes(`arbor admin token --identity ${identity} --data ${data}`), stderr);
    assert.ok(stderr.includes(`ARBOR_API=${service.url} ARBOR_TOKEN=… arbor iam groups list`), stderr);
    assert.ok(!stderr.includes(token));
    const listed = await host.run(["iam", "groups", "list"], { ARBOR_API: service.url, ARBOR_TOKEN: token });
    assert.match(listed.stdout, /third\.example/);
  });

  it("writes the token to a new file for its owner alone, and does not print it", async () => {
    const file = join(tempDir(), "owner.json");
    const { code, stdout, stderr } = await onHost("bootstrap", "--org", "written.example", "--write", file, "--json");
    assert.equal(code, 0, stderr);
    const { token, audience, ...uids } = JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.ok(token !== undefined && !`${stdout}${stderr}`.includes(token));
    assert.deepEqual(JSON.parse(stdout), { ...uids, audience });
    assert.match(stderr, /the token is in \/\S+owner\.json\n/);
    const listed = await host.run(["iam", "groups", "list"], { ARBOR_API: service.url, ARBOR_TOKEN: token ?? "" });
    assert.match(listed.stdout, /written\.example/);
  });

  it("changes nothing where the file of the token exists or cannot be created, and leaves none where nothing was created", async () => {
    const directory = tempDir();
    const [file, link, target] = ["file", "link", "target"].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(file, "kept");
    symlinkSync(target, link);
    for (const path of [file, link, join(directory, "missing", "owner.json")]) {
      const { code, stdout, stderr } = await onHost("bootstrap", "--org", "unwritten.example", "--write", path);
      assert.deepEqual([code, stdout], [2, ""], stderr);
      assert.match(stderr, /^arbor: --write: \/\S+ (exists already, and a secret|cannot be created \(ENOENT\))/);
    }
    assert.equal(readFileSync(file, "utf8"), "kept");
    assert.ok(!existsSync(target));
    const again = join(directory, "again");
    assert.equal((await onHost("bootstrap", "--org", "acme.example", "--write", again)).code, 6);
    assert.ok(!existsSync(again));
    // The control: the name is free.
    assert.equal((await onHost("bootstrap", "--org", "unwritten.example", "--write", again)).code, 0);
    // Run again as it was, it says how to go on.
    const { code, stderr } = await onHost("bootstrap", "--org", "unwritten.example", "--write", again);
    assert.match(stderr, /its token: arbor admin token --identity /);
    assert.equal(code, 6);
  });

  it("does not ask for login providers that the settings have", async () => {
    const providers = join(data, "providers.json");
    writeFileSync(providers, "[]");
    const args = ["bootstrap", "--org", "sixth.example", "--data", data];
    const { code, stderr } = await host.run(args, { ARBOR_LOGIN_PROVIDERS: providers });
    assert.equal(code, 0, stderr);
    assert.match(stderr, /\n {2}start: +arbor serve --data \S+\n/);
  });

  it("names the owner by e-mail address, and a half or a double owner is rejected", async () => {
    const made = await onHost("bootstrap", "--org", "fourth.example", "--owner-email", "ada@example.org", "--json");
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stderr, /arbor auth login --api \S+ {3}\(ada@example\.org becomes an owner, within 7 days\)/);
    assert.ok((JSON.parse(made.stdout) as { groupInvite?: string }).groupInvite);
    const both = ["--owner-email", "b@example.org", "--owner-issuer", "https://i.example", "--owner-subject", "1"];
    const double = await onHost("bootstrap", "--org", "fifth.example", ...both);
    assert.deepEqual([double.code, double.stdout], [2, ""]);
    assert.match(double.stderr, /--owner-subject and --owner-email name two owners/);
    const noAddress = await onHost("bootstrap", "--org", "fifth.example", "--owner-email", "b");
    assert.deepEqual(
      [noAddress.code, noAddress.stderr],
      [2, "arbor: Invalid argument: owner-email: owner-email must be an e-mail address\n"],
    );
  });

  it("of an organisation that exists names its uid, its owners, and a command that prints a token", async () => {
    const { code, stdout, stderr } = await onHost("bootstrap", "--org", "acme.example");
    assert.deepEqual([code, stdout], [6, ""]);
    assert.deepEqual(stderr.split("\n"), [
      `organisation acme.example is the group ${acme.group}`,
      `  owner ${acme.identity} (tokens from this host alone); its token: arbor admin token --identity ${acme.identity} --data ${data}`,
      `  its identities: arbor admin identities list --org ${acme.group} --data ${data}`,
      "arbor: the organisation acme.example exists already: nothing was changed, and the lines above say how to go on",
      "",
    ]);
    const [, command = ""] = /its token: arbor (.*)/.exec(stderr) ?? [];
    const printed = await host.run(command.split(" "));
    const headers = { authorization: `Bearer ${printed.stdout.trim()}` };
    assert.equal((await fetch(`${service.url}/iam/v2beta1/groups/${acme.group}`, { headers })).status, 200);
  });
});

describe("the lists of the operator", () => {
  it("show organisations with their owners, a page at a time", async () => {
    const all = parse(await onHost("admin", "organisations", "list", "--json"));
    assert.ok(all.some(({ uid, name }) => uid === acme.group && name === "acme.example"));
    const [first, second] = all;
    const page = await onHost("admin", "organisations", "list", "--page-size", "1");
    assert.ok(page.stdout.includes(first?.uid ?? "-"), page.stdout);
    assert.equal(page.stdout.trimEnd().split("\n").length, 2);
    assert.equal(page.stderr, `arbor: there may be more: --page-token ${first?.uid}\n`);
    const next = await onHost(
      "admin",
      "organisations",
      "list",
      "--page-size",
      "1",
      "--page-token",
      first?.uid ?? "",
      "--json",
    );
    assert.equal(parse(next)[0]?.uid, second?.uid);
  });

  it("show who is in an organisation or bound in it, by its name or its uid, and nobody else", async () => {
    for (const org of ["acme.example", acme.group]) {
      const rows = parse(await onHost("admin", "identities", "list", "--org", org, "--json"));
      assert.deepEqual(
        rows.map(({ uid, kind, roles }) => [uid, kind, roles?.map(({ roleName }) => roleName).join()]).sort(),
        [
          [acme.identity, "host", "owner"],
          [deployer, "workload", ""],
        ].sort(),
      );
    }
    const [first, second] = [acme.identity, deployer].sort();
    const page = await onHost("admin", "identities", "list", "--org", acme.group, "--page-size", "1");
    assert.match(page.stdout, /^NAME +E-MAIL +KIND +ROLES +LAST SEEN +UID\n/);
    assert.ok(page.stdout.includes(String(first)) && !page.stdout.includes(String(second)), page.stdout);
    const last = ["--page-size", "1", "--page-token", String(first), "--json"];
    assert.equal(parse(await onHost("admin", "identities", "list", "--org", acme.group, ...last))[0]?.uid, second);
  });

  it("show no time at which what was never used was last seen", async () => {
    const list = ["admin", "identities", "list", "--org", acme.group];
    const rows = parse(await onHost(...list, "--json")) as readonly { uid: string; lastSeenTime?: unknown }[];
    assert.deepEqual(
      rows.map(({ lastSeenTime }) => lastSeenTime),
      [null, null],
    );
    const { stdout } = await onHost(...list);
    const row = (uid: string) => stdout.split("\n").find((line) => line.endsWith(uid)) ?? "";
    assert.match(row(deployer), / never +\S+$/);
    assert.match(row(acme.identity), / owner +- +\S+$/, "tokens from the host are not counted");
  });

  it("reject what they do not know", async () => {
    const list = ["admin", "identities", "list", "--org"];
    const [unknown, missing, much, after] = await Promise.all([
      onHost(...list, "nobody.example"),
      onHost(...list, "0".repeat(40)),
      onHost(...list, acme.group, "--page-size", "1001"),
      onHost(...list, acme.group, "--page-token", "x"),
    ]);
    assert.deepEqual([unknown.code, missing.code, much.code, after.code], [2, 5, 2, 2]);
    assert.match(unknown.stderr, /no organisation is named nobody\.example; arbor admin organisations list lists them/);
  });
});
