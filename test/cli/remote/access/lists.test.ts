// The lists of `arbor access`: what an identity may do, who may do something, and what has a name.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AccessWorld, startAccessWorld } from "./access-world.js";

let world: AccessWorld;
before(async () => {
  world = await startAccessWorld();
});
after(() => world?.stop());

type Row = Readonly<Record<string, unknown>>;

async function json(args: readonly string[], token = world.token): Promise<Readonly<Record<string, readonly Row[]>>> {
  const { code, stdout, stderr } = await world.arbor({ ARBOR_TOKEN: token }, "access", ...args, "-o", "json");
  assert.deepEqual([code, stderr], [0, ""]);
  return JSON.parse(stdout) as Readonly<Record<string, readonly Row[]>>;
}

describe("arbor access list", () => {
  it("lists what the caller may do, unless another identity is named", async () => {
    const own = await world.arbor({}, "access", "list");
    assert.deepEqual([own.code, own.stderr], [0, ""]);
    assert.match(
      own.stdout,
      /^GROUP +ROLE +CAPABILITIES +EFFECT +ORIGIN +DIRECTORY +BINDING\nacme\.example +owner +\d+ +/,
    );
    assert.deepEqual(await world.arbor({}, "access", "list", "me"), own);
    const other = await world.arbor({}, "access", "list", "acme.example/team/ci");
    assert.match(other.stdout, /\nteam +viewer +\d+ +counts +bound +- +\S+\n$/);
    const ada = await world.arbor({}, "access", "list", "ada@acme.example");
    assert.match(ada.stdout, /\nteam +editor +\d+ +counts +joined +- +\S+\n$/);
  });

  it("lists grants at a group and below it alone", async () => {
    const of = async (...args: readonly string[]) => (await json(["list", "me", ...args])).grants?.length;
    assert.deepEqual([await of("--group", "acme.example"), await of("--group", "acme.example/team")], [1, 0]);
    assert.equal(await of("--filter", "group=acme.example/team"), 0);
  });

  it("prints a page, and says how to go on; all pages with --page-all", async () => {
    const { uid, token } = await world.service.identity({ name: "many" }, world.root);
    const groups: string[] = [];
    for (let i = 0; i < 7; i++) {
      const { uid: group } = await world.json("groups", "create", "--parent", world.root, "--name", `many ${i}`);
      groups.push(String(group));
      await world.service.bind(uid, "viewer", String(group));
    }
    const page = await world.arbor(
      { ARBOR_TOKEN: token },
      "access",
      "list",
      "--page-size",
      "3",
      "--columns",
      "group.uid",
    );
    assert.equal(page.stdout.trimEnd().split("\n").length, 4);
    const [, next = ""] = /^arbor: there are more: --page-all, or --page-token (\S+)\n$/.exec(page.stderr) ?? [];
    const rest = await json(["list", "--page-token", next], token);
    assert.equal(rest.grants?.length, 4);
    const all = await json(["list", "many", "--page-all", "--page-size", "2"]);
    assert.deepEqual(
      all.grants?.map(({ group }) => (group as Row).uid),
      groups.sort(),
    );
  });

  it("shows of others what lists of role bindings show", async () => {
    const stranger = await world.service.identity({}, world.root);
    assert.deepEqual((await json(["list", world.ci.uid], stranger.token)).grants, []);
    // The control: with the right to list them it is there.
    assert.equal((await json(["list", world.ci.uid], world.ada.token)).grants?.length, 1);
  });
});

describe("arbor access subjects", () => {
  it("lists who may, with what lets them", async () => {
    const { code, stdout, stderr } = await world.arbor(
      {},
      ...["access", "subjects", "RolesService/GetRole", "--group", "acme.example/team"],
    );
    assert.equal(code, 0);
    assert.match(stderr, /^arbor: of the method itself: .*roles\.list.*\n$/);
    const [header, ...rows] = stdout.trimEnd().split("\n");
    assert.match(header ?? "", /^NAME +E-MAIL +KIND +BY +UNCONFIRMED +UID$/);
    const find = (uid: string) => rows.find((row) => row.includes(uid)) ?? "";
    assert.match(find(world.ada.uid), /^Ada +ada@acme\.example +identity +editor in team +- +\S+$/);
    assert.match(find(world.ci.uid), /^ci +- +identity +viewer in team +- +\S+$/);
    assert.match(find(world.owner), / owner in acme\.example +- +\S+$/);
    const may = await json(["subjects", "groups.delete", "--group", "acme.example/team"]);
    assert.deepEqual(
      may.subjects?.map(({ identity }) => (identity as Row).uid),
      [world.owner],
    );
  });

  it("lists the rules that would let further people", async () => {
    const oidc = ["--oidc-issuer", "https://idp.example", "--oidc-client-id", "id", "--oidc-pkce-enabled"];
    const made = await world.json(
      ...[
        "identity-providers",
        "create",
        "--parent",
        world.root,
        "--name",
        "staff",
        "--default-role",
        "viewer",
        ...oidc,
      ],
    );
    const mapping = ["--external-group-id", "builders", "--role", "owner", "--scope", world.root];
    await world.json("group-mappings", "create", "--parent", String(made.uid), ...mapping);
    await world.json(...["group-invites", "create", "--parent", world.team, "--role", "viewer", "--ttl", "1h"]);
    const { stdout } = await world.arbor({}, "access", "subjects", "groups.list", "--group", world.team);
    assert.match(stdout, /\nbuilders +- +mapping +owner in acme\.example +- +\S+\n/);
    assert.match(stdout, /\nstaff +- +provider +viewer in acme\.example +- +\S+\n/);
    assert.match(stdout, /\n- +- +invite +viewer in team +- +\S+\n/);
  });

  it("fills a page although the service has shorter ones", async () => {
    const crowd = String((await world.json("groups", "create", "--parent", world.root, "--name", "crowd")).uid);
    const uids: string[] = [];
    for (let i = 0; i < 12; i++) {
      const { uid } = await world.service.identity({ name: `worker ${i}` }, crowd);
      await world.service.bind(uid, "viewer", crowd);
      uids.push(uid);
    }
    // Bindings of identities that are gone: the service reads them, and leaves them out.
    for (let i = 1; i <= 4; i++) await world.service.bind(`${crowd}/000000000000000${i}`, "viewer", crowd);
    const query = `resource=${crowd}&actions=groups.list&page_size=5`;
    const short = await fetch(`${world.service.url}/access/v1/subjects?${query}`, {
      headers: { authorization: `Bearer ${world.token}` },
    });
    assert.ok(((await short.json()) as { subjects: unknown[] }).subjects.length < 5, "the control");
    const where = ["subjects", "groups.list", "--group", crowd];
    const first = await json([...where, "--page-size", "5"]);
    assert.equal(first.subjects?.length, 5);
    const rest = await json([...where, "--page-token", String(first.nextPageToken)]);
    const all = [...(first.subjects ?? []), ...(rest.subjects ?? [])];
    const found = all.flatMap(({ identity }) => (identity === undefined ? [] : [(identity as Row).uid]));
    assert.deepEqual(
      uids.filter((uid) => !found.includes(uid)),
      [],
    );
    assert.equal(new Set(found).size, found.length);
  });

  it("needs the right to list role bindings, and a place", async () => {
    const stranger = await world.service.identity({}, world.root);
    const as = { ARBOR_TOKEN: stranger.token };
    const denied = await world.arbor(as, "access", "subjects", "groups.list", "--group", world.team);
    assert.deepEqual([denied.code, denied.stdout], [4, ""]);
    const { code, stderr } = await world.arbor({}, "access", "subjects", "GroupsService/ListGroups");
    assert.equal(code, 2);
    assert.match(stderr, /--group: give either --group or --resource/);
  });
});

describe("arbor access search", () => {
  it("finds groups, identities and repos by the beginning of their names", async () => {
    const group = String((await world.json("groups", "create", "--parent", world.team, "--name", "find-group")).uid);
    const { uid: identity } = await world.service.identity({ name: "find-me" }, group);
    const made = await world.registry("repos", "create", "--parent", group, "--name", "find-repo", "-o", "json");
    const { uid: repo } = JSON.parse(made.stdout) as { uid: string };
    const { stdout } = await world.arbor({}, "access", "search", "find-");
    const expected = [
      ["NAME", "KIND", "GROUP", "UID"],
      ["find-group", "group", world.team, group],
      ["find-me", "identity", group, identity],
      ["find-repo", "repo", group, repo],
    ];
    assert.deepEqual(
      stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.split(/ +/)),
      expected,
    );
    const found = async (...args: readonly string[]) =>
      (await json(["search", "find-", ...args])).resources?.map(({ uid }) => uid);
    assert.deepEqual(await found("--kind", "repo"), [repo]);
    assert.deepEqual(await found("--filter", "kind=identity"), [identity]);
    assert.deepEqual(await found("--group", "acme.example/team/find-group"), [identity, repo]);
    assert.deepEqual(await found("--page-all", "--page-size", "1"), [group, identity, repo]);
    const one = await world.arbor({}, "access", "search", "find-", "--page-size", "2");
    assert.equal(one.stdout.trimEnd().split("\n").length, 3);
    assert.match(one.stderr, /^arbor: there are more: /);
  });

  it("rejects an empty text, and finds nothing of others", async () => {
    const { code, stderr } = await world.arbor({}, "access", "search", "");
    assert.equal(code, 2);
    assert.match(stderr, /prefix: prefix is required/);
    const stranger = await world.service.identity({}, world.root);
    assert.deepEqual((await json(["search", "team"], stranger.token)).resources, []);
    assert.equal((await json(["search", "team"])).resources?.length, 1);
  });
});
