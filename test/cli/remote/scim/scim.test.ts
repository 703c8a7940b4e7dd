// `arbor scim` against a running service.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { describeStatus } from "../../../../src/cli/remote/scim/status.js";
import { builtinRoleUid, randomIds } from "../../../../src/kernel/ids.js";
import { scimUserKind } from "../../../../src/store/iam/scim-users.js";
import { scimUserRow } from "../../../support/rows.js";
import { insertScimGroup, insertScimUser } from "../../../support/scim-people.js";
import { type CliWorld, startCliWorld } from "../iam/cli-world.js";

let world: CliWorld;
let provider: string;
before(async () => {
  world = await startCliWorld();
  const made = await world.json(
    ...["identity-providers", "create", "--parent", world.root, "--name", "staff"],
    ...["--default-role", builtinRoleUid("viewer"), "--oidc-issuer", "https://login.example", "--oidc-client-id", "id"],
    "--oidc-pkce-enabled",
  );
  provider = String(made.uid);
});
after(() => world?.stop());

const run = (...args: string[]) => world.arbor({}, "scim", ...args);
async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await run(...args, "-o", "json");
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe("arbor scim", () => {
  it("generates, replaces and revokes the token, by the name of the provider as well", async () => {
    const early = await run("enable", "staff");
    assert.match(early.stderr, /the directory has no token yet: generate one first/);
    const first = await json("token", "generate", "staff");
    assert.match(String(first.token), /^cgscim_[0-9a-f]{64}$/);
    assert.equal(first.identityProviderUid, provider);
    assert.match((await run("token", "generate", "staff")).stderr, /there is a valid SCIM token/);
    assert.match((await run("token", "rotate", provider)).stderr, /--yes: is required/);
    const second = await json("token", "rotate", provider, "--overlap", "30m", "--expires", "never", "--yes");
    assert.deepEqual([second.requestedOverlap, second.expireTime], ["1800s", undefined]);
    assert.notEqual(second.token, first.token);
    assert.match((await run("token", "rotate", provider, "--overlap", "soon", "--yes")).stderr, /--overlap: must be/);
    const status = await run("status", "staff");
    assert.match(status.stdout, /^token {11}valid, and so is the former one, never expires$/m);
    assert.match(status.stdout, /^former token {4}until 20/m);
    assert.equal((await run("token", "revoke", "staff", "--yes")).code, 0);
    assert.match((await run("status", "staff")).stdout, /^token {11}revoked since 20/m);
    const third = await json("token", "generate", "staff", "--expires", "90d");
    assert.ok(Date.parse(String(third.expireTime)) - Date.now() < 91 * 24 * 3_600_000);
  });

  it("turns SCIM on with two owners, and off", async () => {
    assert.match((await run("enable", "staff")).stderr, /needs at least two owners/);
    const other = await world.service.identity();
    await world.service.bind(other.uid, "owner", world.root);
    assert.equal((await json("enable", "staff")).enabled, true);
    assert.match((await run("status", "staff")).stdout, /^SCIM {12}enabled$/m);
    // A response over Connect leaves false out.
    assert.notEqual((await json("disable", "staff")).enabled, true);
    assert.match((await run("status", "staff")).stdout, /^SCIM {12}disabled$/m);
  });

  it("lists the people, and filters them", async () => {
    const { store } = world.service.app.installation;
    for (const [userName, active] of [
      ["ann@x.example", true],
      ["bob@x.example", false],
    ] as const) {
      const row = scimUserRow(randomIds.newUid(provider), { userName, active });
      await store.write((tx) => tx.table(scimUserKind).insert(row));
    }
    const names = async (...args: string[]) => {
      const { scimUsers = [] } = (await json("users", "staff", ...args)) as { scimUsers?: { userName: string }[] };
      return scimUsers.map(({ userName }) => userName).toSorted();
    };
    assert.deepEqual(await names(), ["ann@x.example", "bob@x.example"]);
    assert.deepEqual(await names("--user-name", "ANN@x.example"), ["ann@x.example"]);
    assert.deepEqual([await names("--no-active"), await names("--active")], [["bob@x.example"], ["ann@x.example"]]);
    assert.deepEqual(await names("--page-size", "1", "--page-all"), ["ann@x.example", "bob@x.example"]);
    const table = (await run("users", "staff")).stdout;
    assert.match(table, /^USER NAME +ACTIVE +EXTERNAL ID +UPDATED +IDENTITY +UID/);
    assert.match((await run("status", "staff")).stdout, /^people {10}2: 1 active, 1 inactive; 0 have logged in$/m);
  });
});

describe("arbor scim groups", () => {
  it("lists the groups with the ids that mappings name them by, their members and their mappings", async () => {
    const { store } = world.service.app.installation;
    const { named, unnamed } = await store.write(async (tx) => {
      const people = [await insertScimUser(tx, provider), await insertScimUser(tx, provider)].map(({ uid }) => uid);
      return {
        named: await insertScimGroup(tx, provider, { displayName: "Ops", externalId: "ops-7" }, people),
        unnamed: await insertScimGroup(tx, provider, { displayName: "Dev\u001b[2J" }, people.slice(1)),
      };
    });
    const id = unnamed.uid.slice(-16);
    const mapped = ["group-mappings", "create", "--parent", provider, "--scope", world.root];
    const mapping = await world.json(...mapped, "--external-group-id", "ops-7", "--role", builtinRoleUid("viewer"));
    // A name is no id.
    await world.json(...mapped, "--external-group-id", "Ops", "--role", builtinRoleUid("viewer"));
    const { groups, totalCount } = (await json("groups", "staff")) as {
      groups: { group: Record<string, string>; members: string; mappings?: string[] }[];
      totalCount: string;
    };
    const listed = groups.map(({ group, members, mappings = [] }) => [
      group.uid,
      group.externalGroupId,
      members,
      mappings,
    ]);
    assert.deepEqual(
      new Set(listed),
      new Set([
        [named.uid, "ops-7", "2", [mapping.uid]],
        [unnamed.uid, id, "1", []],
      ]),
    );
    assert.equal(totalCount, "2");
    const paged = (await json("groups", "staff", "--page-size", "1", "--page-all")) as { groups: object[] };
    assert.deepEqual(paged.groups, groups);
    const table = (await run("groups", "staff")).stdout;
    assert.match(table, /^NAME +MEMBERS +MAPPINGS +UPDATED +EXTERNAL GROUP/);
    assert.ok(!table.includes("\u001b"));
    assert.match((await run("status", "staff")).stdout, /^groups {10}2$/m);
  });
});

it("the state says of whom something needs attention, and how many more there are", () => {
  const unlinked = [{ identity: "i", name: "Ann\u001b[2J", email: "a@x" }];
  const rejected = [{ userName: "last@x", externalId: "7", rejectTime: "2026-01-31T12:00:00Z" }];
  const work = [
    { kind: "SCIM_WORK_KIND_GROUP", uid: "g", name: "Ops" },
    { kind: "SCIM_WORK_KIND_PERSON", uid: "p", name: "Ann", fullQuota: "bindings" },
    { kind: "SCIM_WORK_KIND_MEMBERS", uid: "gone" },
  ];
  const left = { work, workCount: "9" };
  const text = describeStatus({ people: "5", rejected, rejectedPeople: "1", unlinked, unlinkedPeople: "25", ...left });
  assert.match(
    text,
    /^9 things to do.*:\n {2}role bindings of the members of Ops\n {2}role bindings of Ann: the quota bindings is full\n {2}former members of gone\n {2}and 6 more\n/m,
  );
  assert.match(text, /^1 person of whom a change is rejected, .*\n {2}last@x \(7\) since 2026-01-31T12:00:00Z\n/m);
  assert.match(text, /^25 people who have logged in, .*\n {2}i Ann.* a@x\n {2}and 24 more\n/m);
  assert.ok(!text.includes("\u001b"));
});
