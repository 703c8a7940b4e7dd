// Names in place of uids, against a real service.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { ANONYMOUS_UID, builtinRoleUid, randomIds } from "../../../../src/kernel/ids.js";
import { roleBindingKind } from "../../../../src/store/iam/role-bindings.js";
import { spawn } from "../../../support/child-process.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../../support/project.js";
import { type CliWorld, startCliWorld } from "../iam/cli-world.js";

let world: CliWorld;
let platform: string;
let ci: string;
let ada: string;

before(async () => {
  world = await startCliWorld();
  platform = await createGroup(world.root, "platform");
  ci = (await world.service.identity({ name: "ci" }, platform)).uid;
  ada = (await world.service.identity({ name: "Ada", email: "ada@acme.example" })).uid;
  await join(ada, world.root);
});
after(() => world?.stop());

/** Binds a person who has accepted it, so that the organisation sees the address. */
async function join(identityUid: string, groupUid: string): Promise<void> {
  const nowMs = Date.now();
  const uid = randomIds.newUid(groupUid);
  const row = {
    uid,
    groupUid,
    identityUid,
    roleUid: builtinRoleUid("viewer"),
    automatic: false,
    managedByUid: null,
    endTimeMs: null,
    pending: false,
  };
  await world.service.app.installation.store.write((tx) =>
    tx.table(roleBindingKind).insert({ ...row, accepted: true, createTimeMs: nowMs, updateTimeMs: nowMs }),
  );
}

async function createGroup(parent: string, name: string): Promise<string> {
  return String((await world.json("groups", "create", "--parent", parent, "--name", name)).uid);
}

async function uidOf(...args: readonly string[]): Promise<unknown> {
  return (await world.json(...args)).uid;
}

const assumed = ["--issuer", "https://ci.example", "--subject", "repo:acme"];

/** How a command fails. */
async function fail(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await world.iam(...args);
  assert.notEqual(code, 0, stdout);
  return stderr;
}

describe("a name in place of a uid", () => {
  it("of a group is its path, from an organisation of the caller", async () => {
    assert.equal(await uidOf("groups", "get", "acme.example"), world.root);
    assert.equal(await uidOf("groups", "get", "acme.example/platform"), platform);
    const below = await createGroup("acme.example/platform", "web shop");
    assert.equal(below.startsWith(`${platform}/`), true);
    assert.equal(await uidOf("groups", "get", "acme.example/platform/web shop"), below);
    const listed = await world.json("groups", "list", "--descendants-of", "acme.example/platform");
    assert.deepEqual(
      (listed.groups as { uid: string }[]).map(({ uid }) => uid),
      [below],
    );
    assert.equal(
      (await world.json("groups", "update", "acme.example/platform", "--description", "x")).description,
      "x",
    );
  });

  it("of an identity, a role and a provider is the path of the group and the name, or a name that is unique", async () => {
    assert.equal(await uidOf("identities", "get", "acme.example/platform/ci"), ci);
    assert.equal(await uidOf("identities", "get", "ci"), ci);
    assert.equal(await uidOf("roles", "get", "viewer"), builtinRoleUid("viewer"));
    const flags = ["--name", "deployer", "--capability", "groups.list"];
    const own = String((await world.json("roles", "create", "--parent", "acme.example", ...flags)).uid);
    assert.equal(await uidOf("roles", "get", "deployer"), own);
    assert.equal(await uidOf("roles", "get", "acme.example/deployer"), own);
    const binding = await world.json(
      ...["role-bindings", "create", "--parent", "acme.example/platform"],
      ...["--identity-uid", "acme.example/platform/ci", "--role-uid", "deployer"],
    );
    assert.deepEqual([(binding.identity as { uid: string }).uid, (binding.role as { uid: string }).uid], [ci, own]);
  });

  it("of a person is a confirmed e-mail address among the bindings that the caller may list", async () => {
    const listed = await world.json("role-bindings", "list", "--identity", "ada@acme.example");
    assert.deepEqual(
      (listed.roleBindings as { identity: { uid: string } }[]).map(({ identity }) => identity.uid),
      [ada],
    );
    const eve = await world.service.identity({ emailUnverified: "eve@acme.example" });
    await join(eve.uid, world.root);
    assert.match(await fail("role-bindings", "list", "--identity", "eve@acme.example"), /no person has the e-mail/);
  });

  it("of a repo is the path of its group and its name, and of a tag the name after a colon", async () => {
    const made = await world.registry("repos", "create", "--parent", "acme.example", "--name", "app", "-o", "json");
    const { uid } = JSON.parse(made.stdout) as { uid: string };
    const digest = `sha256:${"0".repeat(64)}`;
    for (const name of ["latest", "20250131", "sha256-00"]) {
      const flags = ["--parent", "acme.example/app", "--name", name, "--digest", digest, "-o", "json"];
      const tag = await world.registry("tags", "create", ...flags);
      assert.equal(tag.code, 0, tag.stderr);
      const shown = await world.registry("tags", "get", `acme.example/app:${name}`, "-o", "json");
      assert.deepEqual(JSON.parse(shown.stdout), JSON.parse(tag.stdout), shown.stderr);
    }
    assert.equal(JSON.parse((await world.registry("repos", "get", "app", "-o", "json")).stdout).uid, uid);
    const readme = await world.registry("repos", "tags-summary", "acme.example/app");
    assert.equal(readme.code, 0, readme.stderr);
    assert.match((await world.registry("tags", "get", "latest")).stderr, /a repo, a colon and a tag/);
  });

  it("is compared byte by byte", async () => {
    for (const name of [
      "Acme.example",
      "acme.example ",
      "acme.exampl",
      "acme.example/Platform",
      "acme.example//platform",
    ]) {
      assert.match(
        await fail("groups", "get", name),
        /no group is named .* where you have roles; to list: arbor iam groups list/,
      );
    }
    for (const role of ["Viewer", "viewer "]) assert.match(await fail("roles", "get", role), /arbor iam roles list/);
    assert.match(await fail("role-bindings", "list", "--identity", "Ada@acme.example"), /arbor iam role-bindings list/);
  });

  it("may be that of several groups, of which the creation warns and an error tells the times", async () => {
    const parent = await createGroup(world.root, "twins");
    const first = await createGroup(parent, "twin");
    const args = ["groups", "create", "--parent", "acme.example/twins", "--name", "twin", "-o", "json"];
    const { code, stdout, stderr } = await world.iam(...args);
    assert.equal(code, 0, stderr);
    const rule = "commands need the uid in place of a name of several";
    assert.equal(stderr, `arbor: warning: another group here has the same name: ${first}; ${rule}\n`);
    const twice = await fail("groups", "get", "acme.example/twins/twin");
    const lines = twice.split("\n");
    assert.match(lines[0] ?? "", /acme\.example\/twins\/twin is the name of several; give a uid:$/);
    for (const uid of [first, String((JSON.parse(stdout) as { uid: string }).uid)]) {
      assert.match(twice, new RegExp(`\n  group ${uid}, created \\d{4}-\\S+Z\n`));
    }
    const third = await world.iam(...args);
    assert.match(third.stderr, /^arbor: warning: 2 others here have the same name: \S+, \S+; /);
  });

  it("that several have is an error with their uids", async () => {
    const other = await world.service.identity({ name: "ci" }, world.root);
    const twice = await fail("identities", "get", "ci");
    assert.match(twice, /ci is the name of several/);
    assert.match(twice, /; give the path of the group before it, or a uid:\n/);
    for (const uid of [ci, other.uid]) assert.match(twice, new RegExp(`  identity ${uid}, created \\d{4}-\\S+Z\n`));
    const third = await world.iam("identities", "create", "--parent", "acme.example", "--name", "ci", ...assumed);
    assert.equal(third.code, 0, third.stderr);
    const warning = `arbor: warning: another identity here has the same name: ${other.uid}; `;
    assert.ok(third.stderr.startsWith(warning), third.stderr);
    const path = await fail("identities", "get", "acme.example/ci");
    assert.match(path, /acme\.example\/ci is the name of several; give a uid:\n/);
    assert.equal(
      (await world.iam("identities", "delete", third.stdout.match(/[0-9a-f]{40}\/[0-9a-f]+/)?.[0] ?? "", "--yes")).code,
      0,
    );
    assert.equal(await uidOf("identities", "get", "acme.example/ci"), other.uid);
    const namesake = await world.service.identity({ email: "two@acme.example" });
    const another = await world.service.identity({ email: "two@acme.example" });
    for (const { uid } of [namesake, another]) await join(uid, platform);
    const people = await fail("role-bindings", "list", "--identity", "two@acme.example");
    for (const { uid } of [namesake, another]) assert.ok(people.includes(uid), people);
  });

  it("is not looked up for what begins with 40 hex digits", async () => {
    const named = world.root.replace(/./g, "a");
    await createGroup(world.root, named);
    assert.match(await fail("groups", "get", named), /Permission denied: groups\.list at a{40} /);
    assert.match(await fail("groups", "get", `${named}/platform`), /uid: uid must be a uid/);
    assert.equal(
      await uidOf("groups", "get", `acme.example/${named}`)
        .then(String)
        .then((uid) => uid.slice(0, 40)),
      world.root,
    );
  });

  it("is an error for kinds without names, which says how to list them", async () => {
    assert.match(await fail("role-bindings", "get", "ada"), /no uid, .*role binding.* arbor iam role-bindings list/);
  });

  it("of an organisation of others never resolves, although everybody may see it", async () => {
    const foreign = await world.service.organisation("open.example");
    await world.service.bind(ANONYMOUS_UID, "registry.pull", foreign.group);
    const flags = ["repos", "create", "--parent", foreign.group, "--name", "shared", "-o", "json"];
    const made = await world.arbor({ ARBOR_TOKEN: foreign.token }, "registry", ...flags);
    const { uid } = JSON.parse(made.stdout) as { uid: string };
    const theirs = { ARBOR_TOKEN: foreign.token };
    const control = await world.arbor(theirs, "registry", "repos", "get", "open.example/shared", "-o", "json");
    assert.equal(JSON.parse(control.stdout).uid, uid, "the control: it has the name");
    for (const name of ["shared", "open.example/shared"]) {
      const { code, stderr } = await world.registry("repos", "get", name);
      assert.equal(code, 5);
      assert.match(stderr, /no repo is named/);
      const anonymous = await world.arbor({ ARBOR_TOKEN: "" }, "registry", "repos", "get", name);
      assert.equal(anonymous.code, 3, anonymous.stderr);
    }
    const own = await world.registry("repos", "create", "--parent", "acme.example", "--name", "shared", "-o", "json");
    const shown = await world.registry("repos", "get", "shared", "-o", "json");
    assert.equal(shown.stdout, own.stdout);
  });

  it("that two organisations of the caller have is an error with their uids", async () => {
    const { token } = await world.service.identity({ name: "stranger" });
    const create = ["iam", "groups", "create", "--name", "acme.example", "-o", "json"];
    const made = await world.arbor({ ARBOR_TOKEN: token }, ...create);
    const same = { group: (JSON.parse(made.stdout) as { uid: string }).uid };
    assert.equal(await uidOf("groups", "get", "acme.example"), world.root);
    const binding = await world.service.bind(world.owner, "viewer", same.group);
    const both = await fail("groups", "get", "acme.example");
    for (const uid of [world.root, same.group]) assert.ok(both.includes(uid), both);
    await world.arbor({}, "auth", "bindings", "drop", binding, "--yes");
    assert.equal(await uidOf("groups", "get", "acme.example"), world.root);
  });

  it("begins with a group to which the caller is bound, or with its organisation", async () => {
    const { uid, token } = await world.service.identity({ name: "narrow" }, platform);
    await world.service.bind(uid, "viewer", platform);
    for (const path of ["platform", "acme.example/platform"]) {
      const { code, stdout, stderr } = await world.iamWith({ ARBOR_TOKEN: token }, "groups", "get", path, "-o", "json");
      assert.equal(code, 0, stderr);
      assert.equal(JSON.parse(stdout).uid, platform);
    }
  });
});

/** Runs `arbor` on a terminal, which `script` makes, and answers its question. */
async function onTerminal(reply: string, ...args: readonly string[]): Promise<{ code: number | null; shown: string }> {
  const words = [process.execPath, ...scriptArguments("src/main.ts"), ...args].map((word) => `'${word}'`);
  const child = spawn("script", ["-qec", words.join(" "), "/dev/null"], {
    cwd: PROJECT,
    env: { ...environmentWithoutSettings(), ARBOR_API: world.service.url, ARBOR_TOKEN: world.token },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const { stdin, stdout } = child;
  assert.ok(stdin !== null && stdout !== null);
  let shown = "";
  stdout.on("data", (chunk: Buffer) => {
    shown += chunk.toString();
    if (shown.includes("[y/N]") && !stdin.writableEnded) stdin.end(`${reply}\n`);
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, shown };
}

describe("a deletion by name", () => {
  it("shows name and uid on a terminal, also of what is given by its uid, and asks", async () => {
    const uid = await createGroup(world.root, "asked");
    for (const [text, shown] of [
      ["acme.example/asked", "acme.example/asked"],
      [uid, "asked"],
    ] as const) {
      const asked = await onTerminal("n", "iam", "groups", "delete", text);
      assert.ok(asked.shown.includes(`Delete group ${shown} (${uid})? [y/N]`), asked.shown);
      assert.match(asked.shown, /nothing was deleted/);
      assert.equal(await uidOf("groups", "get", uid), uid);
    }
    const { code, shown } = await onTerminal("y", "iam", "groups", "delete", "acme.example/asked");
    assert.deepEqual([code, shown.includes(`deleted ${uid}`)], [0, true], shown);
  });

  it("shows who has which role where, for a role binding", async () => {
    const listed = await world.json("role-bindings", "list", "--identity", "ada@acme.example");
    const [binding] = listed.roleBindings as { uid: string }[];
    const { shown } = await onTerminal("n", "iam", "role-bindings", "delete", binding?.uid ?? "");
    const what = `ada@acme.example as viewer in acme.example (${binding?.uid})`;
    assert.ok(shown.includes(`Delete role binding ${what}? [y/N]`), shown);
  });

  it("needs --yes without a terminal, and then deletes", async () => {
    const uid = await createGroup(world.root, "short-lived");
    assert.match(await fail("groups", "delete", "acme.example/short-lived"), /--yes: is required without a terminal/);
    assert.equal(await uidOf("groups", "get", uid), uid);
    const { stdout } = await world.iam("groups", "delete", "acme.example/short-lived", "--yes");
    assert.equal(stdout, `deleted ${uid}\n`);
  });

  it("needs --yes for pull tokens too", async () => {
    const flags = ["auth", "pull-token"];
    const made = await world.arbor({}, ...flags, "create", "--group", "acme.example", "--name", "old", "-o", "json");
    assert.equal(made.code, 0, made.stderr);
    const { username } = JSON.parse(made.stdout) as { username: string };
    const asked = await world.arbor({}, ...flags, "revoke", "pull-token-old");
    assert.deepEqual([asked.code, /--yes/.test(asked.stderr)], [2, true]);
    const revoked = await world.arbor({}, ...flags, "revoke", "pull-token-old", "--yes");
    assert.equal(revoked.stdout, `revoked ${username}\n`);
  });
});
