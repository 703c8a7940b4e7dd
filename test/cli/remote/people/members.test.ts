// `arbor members list`: who holds roles in a group, and where from; and when an identity that never was seen was last seen.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid } from "../../../../src/kernel/ids.js";
import { identityKind } from "../../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../../src/store/iam/role-bindings.js";
import { type CliWorld, startCliWorld } from "../iam/cli-world.js";

interface Member {
  readonly uid: string;
  readonly kind: string;
  readonly name: string;
  readonly lastSeenTime: string;
  readonly roles: readonly { readonly name: string; readonly groupUid: string; readonly inherited: boolean }[];
}

let world: CliWorld;
let team: string;
before(async () => {
  world = await startCliWorld();
  team = String((await world.json("groups", "create", "--parent", world.root, "--name", "team")).uid);
});
after(() => world?.stop());

async function list(group: string, env: Readonly<Record<string, string>> = {}): Promise<readonly Member[]> {
  const { code, stdout, stderr } = await world.arbor(env, "members", "list", "--group", group, "-o", "json");
  assert.deepEqual([code, stderr], [0, ""]);
  return (JSON.parse(stdout) as { members: readonly Member[] }).members;
}

describe("arbor members list", () => {
  it("lists people and workloads with their roles, those from above, and when workloads were last seen", async () => {
    const ada = await world.service.identity({ name: "Ada" });
    const builder = await world.service.identity({ name: "builder", createTimeMs: 1_000, lastSeenTimeMs: 5_000 }, team);
    const idle = await world.service.identity({ name: "idle", createTimeMs: 1_000, lastSeenTimeMs: 1_000 }, team);
    const above = await world.service.identity({ name: "above", createTimeMs: 1, lastSeenTimeMs: 9_000 }, world.root);
    const stranger = await world.service.identity({ name: "stranger" }, world.root);
    await world.service.bind(ada.uid, "viewer", team);
    await world.service.bind(ada.uid, "editor", world.root);
    await world.service.bind(builder.uid, "editor", team);
    await world.service.bind(above.uid, "viewer", world.root);
    const members = new Map((await list(team)).map((member) => [member.uid, member]));
    assert.deepEqual(
      [...members.keys()].sort(),
      [world.owner, ada.uid, builder.uid, idle.uid, above.uid].sort(),
      "nobody else",
    );
    assert.equal(members.has(stranger.uid), false);
    const rolesOf = (uid: string) =>
      members
        .get(uid)
        ?.roles.map(({ name, groupUid }) => `${name} ${groupUid}`)
        .sort();
    assert.deepEqual(rolesOf(ada.uid), [`editor ${world.root}`, `viewer ${team}`]);
    assert.deepEqual(rolesOf(builder.uid), [`editor ${team}`]);
    assert.deepEqual(rolesOf(idle.uid), []);
    assert.equal(members.get(world.owner)?.kind, "host", "as `arbor admin identities list`");
    assert.deepEqual([members.get(ada.uid)?.kind, members.get(builder.uid)?.kind], ["person", "workload"]);
    const seen = [builder.uid, above.uid, idle.uid].map((uid) => members.get(uid)?.lastSeenTime);
    assert.deepEqual(seen, ["1970-01-01T00:00:05.000Z", "1970-01-01T00:00:09.000Z", ""]);

    const { stdout } = await world.arbor({}, "members", "list", "--group", team);
    const [header, ...rows] = stdout.trimEnd().split("\n");
    assert.match(header ?? "", /^NAME +E-MAIL +KIND +ROLES +LAST SEEN +UID$/);
    assert.match(rows.find((row) => row.endsWith(ada.uid)) ?? "", / editor from acme\.example, viewer\b/);
    assert.match(rows.find((row) => row.endsWith(idle.uid)) ?? "", /^idle +- +workload +- +- +\S+$/);

    const columns = await world.arbor({}, "members", "list", "--group", team, "--columns", "name,LAST SEEN");
    assert.match(columns.stdout, /^NAME +LAST SEEN\n/);
    assert.match(columns.stdout, /^idle +-$/m);
  });

  it("names a person of whom one binding is accepted and another is not, whichever comes first", async () => {
    for (const [pendingIn, acceptedIn] of [
      [team, world.root],
      [world.root, team],
    ] as const) {
      const { uid } = await world.service.identity({ name: "Grace" });
      await world.service.bind(uid, "viewer", pendingIn);
      const accepted = await world.service.bind(uid, "editor", acceptedIn);
      const { store } = world.service.app.installation;
      const binding = { identityUid: uid, roleUid: builtinRoleUid("editor"), accepted: true, pending: false };
      await store.write((tx) => tx.table(roleBindingKind).update(accepted, binding, Date.now()));
      const member = (await list(team)).find((one) => one.uid === uid);
      assert.deepEqual([member?.name, member?.roles.length], ["Grace", 2]);
    }
  });

  it("shows people when they themselves were last seen, and nobody else", async () => {
    const own = String((await world.json("groups", "create", "--parent", world.root, "--name", "own")).uid);
    const [eve, mallory] = [
      await world.service.identity({ name: "Eve" }),
      await world.service.identity({ name: "Mal" }),
    ];
    for (const { uid } of [eve, mallory]) await world.service.bind(uid, "viewer", own);
    for (const [caller, other] of [
      [eve, mallory],
      [mallory, eve],
    ] as const) {
      const members = await list(own, { ARBOR_TOKEN: caller.token });
      const seen = (uid: string) => members.find((member) => member.uid === uid)?.lastSeenTime;
      assert.match(seen(caller.uid) ?? "", /^\d{4}-\d\d-\d\dT/);
      assert.equal(seen(other.uid), "");
    }
  });

  it("reads all pages", async () => {
    const crowd = String((await world.json("groups", "create", "--parent", world.root, "--name", "crowd")).uid);
    for (let i = 0; i < 205; i++) {
      const { uid } = await world.service.identity({ name: `worker ${i}` }, i % 2 === 0 ? crowd : world.root);
      await world.service.bind(uid, "viewer", crowd);
    }
    const workers = (await list(crowd)).filter(({ name }) => name.startsWith("worker "));
    assert.equal(workers.length, 205);
  });

  it("shows no more than the lists of the API, and says which capability is missing", async () => {
    const { uid, token } = await world.service.identity({}, world.root);
    const denied = await world.arbor({ ARBOR_TOKEN: token }, "members", "list", "--group", team);
    assert.equal(denied.code, 4);
    assert.match(denied.stderr, /GetGroup needs the capability groups\.list/);
    await world.service.bind(uid, "viewer", team);
    const members = await list(team, { ARBOR_TOKEN: token });
    // What is bound above is not visible to somebody who is bound here alone.
    assert.equal(
      members.some(({ roles }) => roles.some(({ inherited }) => inherited)),
      false,
    );
  });
});

describe("an identity that was never used", () => {
  it("has no time at which it was last seen, in lists of identities and of pull tokens", async () => {
    const idle = await world.service.identity({ name: "unused", createTimeMs: 1_000, lastSeenTimeMs: 1_000 }, team);
    const used = await world.service.identity({ name: "used", createTimeMs: 1_000, lastSeenTimeMs: 5_000 }, team);
    const { stdout } = await world.iam("identities", "list", "--children-of", team);
    const rowOf = (uid: string) => stdout.split("\n").find((row) => row.endsWith(uid)) ?? "";
    assert.match(rowOf(used.uid), /1970-01-01T00:00:05\.000Z/);
    assert.notEqual(rowOf(idle.uid), "");
    assert.doesNotMatch(rowOf(idle.uid), /1970/);

    const get = async (uid: string, format: string) =>
      (await world.iam("identities", "get", uid, "-o", format)).stdout.includes("lastSeenTime");
    const shown = [await get(idle.uid, "table"), await get(used.uid, "table"), await get(idle.uid, "json")];
    assert.deepEqual(shown, [false, true, true], "JSON is that of the API, which always has the time");

    const made = await world.arbor({}, "auth", "pull-tokens", "create", "--group", team, "--name", "ci", "-o", "json");
    assert.equal(made.code, 0, made.stderr);
    const list = () => world.arbor({}, "auth", "pull-tokens", "list", "--group", team, "-o", "json");
    const [token] = JSON.parse((await list()).stdout).pullTokens;
    assert.equal(token.lastSeenTime, "");
    const filters = ["--filter", `group=${team}`, "--columns", "name,createTime"];
    const chosen = await world.arbor({}, "auth", "pull-tokens", "list", ...filters);
    assert.match(chosen.stdout, /^NAME +CREATED\npull-token-ci +\d{4}-\S+\n$/);
    const { store } = world.service.app.installation;
    await store.write((tx) => tx.table(identityKind).updateLastSeen(token.uid, Date.now() + 60_000));
    const [seen] = JSON.parse((await list()).stdout).pullTokens;
    assert.match(seen.lastSeenTime, /^\d{4}-/);
  });
});
