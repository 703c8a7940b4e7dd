// What a plan changes, deletes and keeps. It makes no calls.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { Actual, ActualState } from "../../../../src/cli/remote/apply/model.js";
import { parseState } from "../../../../src/cli/remote/apply/parse.js";
import { makePlan } from "../../../../src/cli/remote/apply/plan.js";
import { builtinRoleUid } from "../../../../src/kernel/ids.js";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const root = "0".repeat(40);
const person = "1".repeat(40);
const caller = "2".repeat(40);
const below = (group: string, n: number) => `${group}/${String(n).padStart(16, "0")}`;
const team = below(root, 1);

const organisation: Actual = { kind: "group", uid: root, group: "/", name: "", values: { description: "" } };

function group(uid: string, name: string, parent = "/"): Actual {
  return { kind: "group", uid, group: parent, name, values: { description: "" } };
}

function identity(uid: string, name: string, parent = "/team", rest: Partial<Actual> = {}): Actual {
  const values = {
    description: "",
    company: "",
    claimMatch: { issuer: "https://a.example", subject: name },
    conditions: [],
  };
  return { kind: "identity", uid, group: parent, name, values, ...rest };
}

function role(uid: string, name: string, parent = "/team"): Actual {
  return { kind: "role", uid, group: parent, name, values: { description: "", capabilities: ["groups.list"] } };
}

function binding(uid: string, identityUid: string, roleUid: string, rest: Partial<Actual> = {}): Actual {
  const values = { endTime: null };
  return { kind: "role binding", uid, group: "/team", name: "", identityUid, roleUid, values, ...rest };
}

function state(resources: readonly Actual[], rest: Partial<ActualState> = {}): ActualState {
  return {
    organization: { uid: root, name: "acme.example" },
    resources: [organisation, ...resources],
    people: new Map([["bob@acme.example", new Set([person])]]),
    builtInRoles: new Map([["viewer", builtinRoleUid("viewer")]]),
    caller,
    occupied: new Map(),
    ...rest,
  };
}

function plan(file: object, actual: ActualState, isPrune = false) {
  const desired = parseState("f", JSON.stringify({ organization: "acme.example", ...file }));
  return makePlan(desired, actual, { isPrune, nowMs: NOW });
}

const shown = ({ changes }: ReturnType<typeof plan>) =>
  changes.map(({ action, kind, label }) => `${action} ${kind} ${label}`);
const kept = (made: ReturnType<typeof plan>) =>
  made.kept.map(({ kind, label, reason }) => `${kind} ${label}: ${reason}`);

const all = {
  groups: [{ path: "/" }, { path: "/team" }],
  roles: [],
  identities: [],
  roleBindings: [],
  subscriptions: [],
};
const viewer = builtinRoleUid("viewer");

describe("a plan", () => {
  it("creates what others refer to first", () => {
    const file = {
      subscriptions: [{ group: "/a/b", sink: "https://sink.example" }],
      roleBindings: [{ group: "/a/b", identity: "/a/b/ci", role: "/a/deployer" }],
      identities: [{ path: "/a/b/ci", claimMatch: { issuer: "https://a.example", subject: "x" } }],
      roles: [{ path: "/a/deployer", capabilities: ["CAP_REPO_LIST"] }],
      groups: [{ path: "/a/b" }, { path: "/a" }],
    };
    assert.deepEqual(shown(plan(file, state([]))), [
      "create group /a",
      "create group /a/b",
      "create role /a/deployer",
      "create identity /a/b/ci",
      "create role binding /a/b: /a/b/ci has /a/deployer",
      "create subscription /a/b: https://sink.example",
    ]);
  });

  it("changes the fields that differ, and leaves those that the file lacks", () => {
    const one = identity(below(team, 1), "ci");
    const actual = state([
      group(team, "team"),
      { ...one, values: { ...one.values, description: "kept", company: "x" } },
    ]);
    const made = plan({ identities: [{ path: "/team/ci", company: "" }] }, actual);
    assert.deepEqual(
      made.changes.map((change) => change.action === "update" && change.fields),
      [[{ field: "company", before: "x", after: "" }]],
    );
    assert.deepEqual(plan({ identities: [{ path: "/team/ci" }] }, actual).changes, []);
  });

  it("keeps the expiry of static keys that a file leaves out", () => {
    const keys = { issuer: "https://a.example", subject: "s", issuerKeys: "{}" };
    const values = { description: "", staticKeys: { ...keys, expirationTime: "2020-01-01T00:00:00.000Z" } };
    const actual = state([group(team, "team"), identity(below(team, 1), "ci", "/team", { values })]);
    assert.deepEqual(plan({ identities: [{ path: "/team/ci", staticKeys: keys }] }, actual).changes, []);
  });

  it("takes a role binding that has ended for done", () => {
    const actual = state([group(team, "team")]);
    const ended = { group: "/team", identity: "bob@acme.example", role: "viewer", endTime: "2025-01-01T00:00:00Z" };
    const made = plan({ roleBindings: [ended] }, actual);
    assert.deepEqual(made.changes, []);
    assert.match(made.notes[0] ?? "", /has ended at 2025-01-01T00:00:00\.000Z, and is not created/);
  });

  it("knows one identity by path and by uid", () => {
    const uid = below(team, 1);
    const actual = state([group(team, "team"), identity(uid, "ci"), binding(below(team, 2), uid, viewer)]);
    for (const text of ["/team/ci", uid, "acme.example/team/ci"])
      assert.deepEqual(
        plan({ roleBindings: [{ group: "/team", identity: text, role: "viewer" }] }, actual).changes,
        [],
      );
    assert.throws(
      () =>
        plan(
          {
            roleBindings: [
              { group: "/team", identity: uid, role: "viewer" },
              { group: "/team", identity: "/team/ci", role: viewer },
            ],
          },
          actual,
        ),
      /is the same role binding as that of line 1/,
    );
  });

  for (const [name, file, error] of [
    [
      "an unknown group",
      { identities: [{ path: "/x/ci" }] },
      /is in \/x, which neither the file nor the organisation has/,
    ],
    [
      "an unknown role",
      { roleBindings: [{ group: "/", identity: "bob@acme.example", role: "vewer" }] },
      /no built-in role vewer/,
    ],
    [
      "an unknown identity",
      { roleBindings: [{ group: "/", identity: "/x", role: "viewer" }] },
      /there is no identity \/x/,
    ],
    [
      "somebody who has not joined",
      { roleBindings: [{ group: "/", identity: "eve@acme.example", role: "viewer" }] },
      /nobody with the address eve@acme\.example .*arbor iam group-invites create/,
    ],
    [
      "a role above its group",
      {
        roleBindings: [{ group: "/", identity: "bob@acme.example", role: "/team/r" }],
        roles: [{ path: "/team/r", capabilities: ["groups.list"] }],
      },
      /f:1:\d+: a role is bound in its group or below/,
    ],
    ["an identity that nothing assumes", { identities: [{ path: "/team/new" }] }, /needs claimMatch, staticKeys/],
    [
      "keys in place of a claim match",
      {
        identities: [{ path: "/team/ci", staticKeys: { issuer: "https://a.example", subject: "s", issuerKeys: "{}" } }],
      },
      /cannot change from claimMatch to staticKeys/,
    ],
    [
      "conditions of an AWS identity",
      {
        identities: [
          {
            path: "/team/x",
            awsIdentity: { awsAccount: "123456789012", arn: "a", userId: "b" },
            conditions: [{ path: ["a"], exists: true }],
          },
        ],
      },
      /conditions, which apply to claimMatch and staticKeys alone/,
    ],
    [
      "one of several of a name",
      { identities: [{ path: "/team/twin" }] },
      /\/team\/twin is the name of several, with the uids \S+0003 and \S+0004/,
    ],
  ] as const) {
    it(`rejects ${name}`, () => {
      const actual = state([
        group(team, "team"),
        identity(below(team, 1), "ci"),
        identity(below(team, 3), "twin"),
        identity(below(team, 4), "twin"),
      ]);
      assert.throws(() => plan(file, actual), error);
    });
  }
});

describe("a plan with --prune", () => {
  it("deletes what the file lacks, what refers to others first", () => {
    const [ci, deployer] = [below(team, 1), below(team, 2)];
    const actual = state([
      group(team, "team"),
      group(below(team, 9), "empty", "/team"),
      identity(ci, "ci"),
      role(deployer, "deployer"),
      binding(below(team, 3), ci, deployer),
      binding(below(team, 4), person, viewer, { identityText: "bob@acme.example", roleText: "viewer" }),
    ]);
    assert.deepEqual(shown(plan(all, actual, true)), [
      "delete role binding /team: /team/ci has /team/deployer",
      "delete role binding /team: bob@acme.example has viewer",
      "delete identity /team/ci",
      "delete role /team/deployer",
      "delete group /team/empty",
    ]);
    assert.deepEqual(shown(plan(all, actual, false)), [], "nothing without the flag");
  });

  it("deletes no kind that the file has no section for, and nothing in groups that it does not list", () => {
    const other = below(root, 2);
    const actual = state([
      group(team, "team"),
      group(other, "other"),
      identity(below(team, 1), "ci"),
      role(below(other, 1), "r", "/other"),
    ]);
    const { identities: _, ...file } = all;
    const made = plan(file, actual, true);
    assert.deepEqual(shown(made), []);
    assert.deepEqual(kept(made), ["group /other: it has the role /other/r"]);
    // The control: with the section, and with the group, both go.
    const wider = { ...all, groups: [...all.groups, { path: "/other" }] };
    assert.deepEqual(shown(plan(wider, actual, true)), ["delete identity /team/ci", "delete role /other/r"]);
  });

  it("keeps what others manage, and what a role binding that stays needs", () => {
    const [ci, puller, mine] = [below(team, 1), below(team, 2), below(team, 3)];
    const operator = "3".repeat(40);
    const actual = state(
      [
        group(team, "team"),
        group(below(team, 8), "images", "/team"),
        group(below(team, 9), "parent", "/team"),
        group(below(below(team, 9), 1), "child", "/team/parent"),
        identity(ci, "ci"),
        identity(puller, "pull-token-x", "/team", { managedBy: "arbor auth pull-tokens" }),
        identity(mine, "me"),
        role(below(team, 4), "directory"),
        role(below(team, 5), "own"),
        binding(below(team, 10), person, below(team, 4), { managedBy: "a directory, by SCIM" }),
        binding(below(team, 11), ci, operator, { managedBy: "the operator of the service", roleText: "root" }),
        binding(below(team, 12), mine, below(team, 5)),
      ],
      { caller: mine, occupied: new Map([[below(team, 8), "repo"]]) },
    );
    const made = plan(all, actual, true);
    assert.deepEqual(shown(made), []);
    assert.deepEqual(kept(made), [
      `role binding /team: ${person} has /team/directory: managed by a directory, by SCIM`,
      "role binding /team: /team/ci has root: managed by the operator of the service",
      "role binding /team: /team/me has /team/own: yours: you would lose access",
      "identity /team/ci: a role binding in /team stays",
      "identity /team/pull-token-x: managed by arbor auth pull-tokens",
      "identity /team/me: yours: you would lose access",
      "role /team/directory: a role binding in /team stays",
      "role /team/own: a role binding in /team stays",
      "group /team/images: it has a repo",
      "group /team/parent: it has the group /team/parent/child",
    ]);
  });

  it("removes an issuer guard only if the file says that there is none", () => {
    const guard: Actual = { kind: "issuer guard", uid: root, group: "/", name: "", values: { issuers: [] } };
    const actual = state([group(team, "team"), guard]);
    assert.deepEqual(shown(plan(all, actual, true)), []);
    assert.deepEqual(shown(plan({ ...all, issuerGuard: null }, actual, true)), [
      "delete issuer guard of the organisation",
    ]);
    assert.match(plan({ issuerGuard: null }, actual).notes[0] ?? "", /--prune removes/);
  });
});

describe("the example of docs/apply.md", () => {
  it("is a file that creates all that it has", () => {
    const text = /```yaml\n(.*?)```/s.exec(readFileSync("docs/apply.md", "utf8"))?.[1] ?? "";
    const actual = state([], {
      people: new Map([["ada@acme.example", new Set([person])]]),
      builtInRoles: new Map([["editor", viewer]]),
    });
    const made = makePlan(parseState("docs/apply.md", text), actual, { isPrune: false, nowMs: NOW });
    assert.equal(made.changes.length, 8);
  });
});
