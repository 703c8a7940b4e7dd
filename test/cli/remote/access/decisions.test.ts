// `arbor can` and `arbor access explain`: what they answer, with which exit code, and what they leave out.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AccessWorld, startAccessWorld } from "./access-world.js";

let world: AccessWorld;
before(async () => {
  world = await startAccessWorld();
});
after(() => world?.stop());

const YES = { code: 0, stdout: "yes\n", stderr: "" };
const no = (...missing: readonly string[]) => ({ code: 1, stdout: `no: lacks ${missing.join(" and ")}\n`, stderr: "" });
const at = ["--group", "acme.example/team"];

describe("arbor can", () => {
  it("answers for the caller, by the name of a method or of capabilities", async () => {
    for (const what of [
      "GroupsService/UpdateGroup",
      "GroupsService.UpdateGroup",
      "chainguard.platform.iam.v2beta1.GroupsService/UpdateGroup",
      "iam.Groups/Update",
      "groups.update",
      "groups.update,groups.delete",
    ]) {
      assert.deepEqual(await world.arbor({}, "can", "me", what, ...at), YES, what);
    }
    const mine = (...args: readonly string[]) => world.arbor({ ARBOR_TOKEN: world.ci.token }, "can", "me", ...args);
    assert.deepEqual(await mine("GroupsService/UpdateGroup", "--group", world.team), no("groups.update"));
    assert.deepEqual(await mine("groups.list,groups.update", "--group", world.team), no("groups.update"));
    assert.deepEqual(await mine("groups.list", "--group", world.team), YES);
  });

  it("takes names of identities, groups and resources", async () => {
    for (const identity of ["acme.example/team/ci", "ci", world.ci.uid]) {
      assert.deepEqual(await world.arbor({}, "can", identity, "groups.list", ...at), YES, identity);
      assert.deepEqual(await world.arbor({}, "can", identity, "groups.delete", ...at), no("groups.delete"));
    }
    assert.deepEqual(await world.arbor({}, "can", "ada@acme.example", "repo.create", ...at), YES);
    // The workload itself is a resource of the group.
    const resource = ["--resource", "acme.example/team/ci"];
    assert.deepEqual(await world.arbor({}, "can", "ada@acme.example", "identity.list", ...resource), YES);
    assert.deepEqual(
      await world.arbor({}, "can", "ada@acme.example", "identity.delete", ...resource),
      no("identity.delete"),
    );
  });

  it("takes an identity that is called me by its path", async () => {
    const { uid } = await world.service.identity({ name: "me" }, world.team);
    await world.service.bind(uid, "viewer", world.team);
    assert.deepEqual(await world.arbor({}, "can", "me", "groups.delete", ...at), YES);
    assert.deepEqual(await world.arbor({}, "can", "acme.example/team/me", "groups.delete", ...at), no("groups.delete"));
  });

  it("prints the response for programs, with the same exit code", async () => {
    const { code, stdout, stderr } = await world.arbor({}, "can", world.ci.uid, "groups.update", ...at, "-o", "json");
    assert.deepEqual([code, stderr], [1, ""]);
    const { allowed, missingCapabilities } = JSON.parse(stdout) as { allowed: boolean; missingCapabilities: string[] };
    assert.deepEqual([allowed, missingCapabilities], [false, ["groups.update"]]);
  });

  it("says what the answer leaves out, on standard error", async () => {
    const stranger = "9".repeat(40);
    const unconfirmed = await world.arbor({}, "can", stranger, "groups.list", ...at);
    assert.deepEqual([unconfirmed.code, unconfirmed.stdout], [1, "no: lacks groups.list\n"]);
    assert.match(unconfirmed.stderr, /^arbor: unconfirmed: .*\n$/);

    // Ada sees the bindings of the team and none above it.
    const asAda = { ARBOR_TOKEN: world.ada.token };
    const partial = await world.arbor(asAda, "can", world.ci.uid, "groups.update", "--group", world.team);
    assert.deepEqual([partial.code, partial.stdout], [1, "no: lacks groups.update\n"]);
    assert.match(partial.stderr, /^arbor: partial: .*\n$/);
    const json = await world.arbor(asAda, "can", world.ci.uid, "groups.update", "--group", world.team, "-o", "json");
    assert.deepEqual([json.stderr, JSON.parse(json.stdout).partial], ["", true]);

    const rule = await world.arbor({}, "can", "me", "GroupsService/ListGroups");
    assert.deepEqual([rule.code, rule.stdout], [0, "yes\n"]);
    assert.match(rule.stderr, /^arbor: of the method itself: .*groups\.list.*\n$/);
  });

  it("says who may not ask, what is unknown, and what is missing", async () => {
    const stranger = await world.service.identity({}, world.root);
    const asStranger = { ARBOR_TOKEN: stranger.token };
    const denied = await world.arbor(asStranger, "can", world.ci.uid, "groups.list", "--group", world.team);
    assert.deepEqual([denied.code, denied.stdout], [4, ""]);
    assert.match(denied.stderr, /^arbor: Permission denied: role_bindings\.list at /);
    for (const [args, code, text] of [
      [
        ["me", "groups.updat", ...at],
        2,
        /there is no capability groups\.updat: a capability must be one of .*groups\.up/,
      ],
      [["me", "GroupsService/UpdateGrup", ...at], 2, /did you mean GroupsService\/UpdateGroup\?/],
      [["me", "updategroup", ...at], 2, /did you mean GroupsService\/UpdateGroup\?/],
      [["me", "groups.update"], 2, /--group: give either --group or --resource/],
      [["me", "groups.update", ...at, "--resource", world.team], 2, /--group: give either --group or --resource/],
      [["me", "GroupsService/UpdateGroup"], 2, /resource: resource is required/],
      [["nobody", "groups.update", ...at], 5, /no identity is named nobody/],
      [["me", "groups.update", "--group", "acme.example/none"], 5, /no group is named acme\.example\/none/],
      [["", "groups.update", ...at], 2, /identity: is empty/],
    ] as const) {
      const failed = await world.arbor({}, "can", ...args);
      assert.deepEqual([failed.code, failed.stdout], [code, ""], failed.stderr);
      assert.match(failed.stderr, text);
    }
    const anonymous = await world.arbor({ ARBOR_TOKEN: "" }, "can", "me", "groups.update", "--group", world.team);
    assert.deepEqual([anonymous.code, anonymous.stdout], [3, ""]);
  });
});

describe("arbor access explain", () => {
  it("prints the answer and what grants it, and succeeds either way", async () => {
    const may = await world.arbor({}, "access", "explain", "ci", "GroupsService/GetGroup", ...at);
    assert.deepEqual([may.code, may.stderr], [0, ""]);
    const [answer, header, row, ...rest] = may.stdout.split("\n");
    assert.equal(answer, "yes");
    assert.match(header ?? "", /^GROUP +ROLE +CAPABILITIES +EFFECT +ORIGIN +DIRECTORY +BINDING$/);
    const binding = `${world.team}/[0-9a-f]{16}`;
    assert.match(row ?? "", new RegExp(`^team +viewer +groups\\.list +counts +bound +- +${binding}$`));
    assert.deepEqual(rest, [""]);

    const mayNot = await world.arbor({}, "access", "explain", "ci", "groups.update", ...at);
    assert.deepEqual(mayNot, { code: 0, stdout: "no: lacks groups.update\n", stderr: "" });
  });

  it("shows a right from a group above, and how it came about", async () => {
    const { uid } = await world.service.identity({ name: "Bea", email: "bea@acme.example" });
    await world.join(uid, "owner", world.root);
    const { stdout } = await world.arbor({}, "access", "explain", "bea@acme.example", "groups.update", ...at);
    assert.match(stdout, /^yes\n.*\nacme\.example +owner +groups\.update +counts +joined +- +\S+\n$/);
  });

  it("prints the response for programs, and chosen columns", async () => {
    const args = ["access", "explain", "ci", "groups.list", ...at];
    const { stdout } = await world.arbor({}, ...args, "-o", "json");
    const { allowed, neededCapabilities, grants } = JSON.parse(stdout) as Record<string, unknown>;
    assert.deepEqual([allowed, neededCapabilities], [true, ["groups.list"]]);
    assert.equal((grants as { role: { name: string } }[])[0]?.role.name, "viewer");
    const chosen = await world.arbor({}, ...args, "--columns", "role.name,group.uid");
    assert.match(chosen.stdout, new RegExp(`^yes\nROLE +GROUP.UID\nviewer +${world.team}\n$`));
  });
});
