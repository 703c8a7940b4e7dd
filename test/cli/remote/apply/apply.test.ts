// `arbor apply` and `arbor export` against a real service.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { builtinRoles } from "../../../../src/iam/roles/builtin-roles.js";
import { buildCapabilitySet } from "../../../../src/iam/roles/capability-names.js";
import { issueToken } from "../../../../src/issuer/tokens.js";
import { randomIds } from "../../../../src/kernel/ids.js";
import { runCommand } from "../../../support/command.js";
import { type ApplyWorld, OWNER, planBy, startApplyWorld } from "./apply-world.js";

let world: ApplyWorld;
before(async () => {
  world = await startApplyWorld();
});
after(() => world.stop());

const file = (content: unknown) => world.file(content);
const apply = (content: unknown, ...args: readonly string[]) => world.arbor("apply", "-f", file(content), ...args);

describe("the file of arbor apply", () => {
  it("is checked whole, with line and column, before any call", async () => {
    const path = file(`organization: acme
groops: []
groups:
  - path: platform
    description: 12
  - path: /x
  - path: acme/x
roles:
  - path: /r
    capabilities: [groups.list, groups.lst]
identities:
  - path: /y
    claimMatch: { issuer: "https://a.example", subject: "a", foo: 1 }
    conditions: [{ path: [a], equals: 1.5 }]
  - path: /z
    claimMatch:
      issuer: "https://a.example"
      subjectPattern: "("
      claims:
        a.b: ""
  - path: /both
    claimMatch: { issuer: "https://a.example", subject: "a" }
    awsIdentity: { awsAccount: "12", arn: "a", userId: "b" }
roleBindings:
  - { group: /x, identity: nobody, role: viewer, endTime: tomorrow }
subscriptions:
  - { group: /x, sink: "http://sink.example" }
`);
    // Nothing listens: the file is read before the service is called.
    const env = { ARBOR_API: "http://127.0.0.1:1", ARBOR_TOKEN: "x" };
    const { code, stderr } = await runCommand(["apply", "-f", path, "--yes"], env);
    assert.equal(code, 2);
    assert.deepEqual(
      stderr.split("\n").map((line) => line.replace(`${path}:`, "")),
      [
        "arbor: 2:1: groops is unknown; there are organization, groups, issuerGuard, roles, identities, roleBindings, subscriptions",
        "4:11: groups[0].path must be a path from the organisation, such as /team; / is the organisation",
        "7:5: groups[2] is the same group as that of line 6",
        "10:33: roles[0].capabilities[1] must be one of groups.create, groups.update, groups.list, groups.delete",
        "13:67: identities[0].claimMatch.foo is not a field of this request",
        "14:18: identities[0].conditions[0] has a number that is not from -(2^53 - 1) to 2^53 - 1: 1.5",
        "18:23: identities[1].claimMatch.subjectPattern must be a regular expression in RE2 syntax",
        "23:32: identities[2].awsIdentity.awsAccount must be 12 digits",
        "25:28: roleBindings[0].identity must be a path such as /team/ci, the e-mail address of a person, or a uid",
        "27:24: subscriptions[0].sink must be an https URL of at most 2048 characters without user or fragment",
        "",
      ],
    );
  });

  for (const [name, text, error] of [
    ["no YAML", "{", /:1:2: no JSON or YAML/],
    ["a list", "[]", /:1:1: the file must be an object with organization/],
    ["a key given twice", "organization: a\norganization: b", /:2:1: no JSON or YAML \(DUPLICATE_KEY\)/],
    [
      "two relationships",
      "organization: a\nidentities: [{path: /x, claimMatch: {issuer: 'https://a.example', subject: a}, staticKeys: {issuer: a, subject: b, issuerKeys: '{}'}}]",
      /has claimMatch and staticKeys/,
    ],
    ["an item without a path", "organization: a\ngroups: [{description: x}]", /:2:10: groups\[0\]\.path is required/],
    ["a name that is none", "organization: a\ngroups: [{path: /A}]", /and "A" must match/],
  ] as const) {
    it(`is refused with ${name}`, async () => {
      const { code, stderr } = await apply(text, "--yes");
      assert.equal(code, 2, stderr);
      assert.match(stderr, error);
    });
  }

  it("may be of any organisation with --into", async () => {
    await world.organisation("into");
    const { code, stdout, stderr } = await apply({ groups: [{ path: "/x" }] }, "--into", "into", "--yes");
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^created group \/x$/m);
    const missing = await apply({ groups: [] }, "--yes");
    assert.match(missing.stderr, /--into: is required, because the file has no organization; see arbor apply --help/);
    const below = await apply({ organization: "into/x" }, "--yes");
    assert.match(below.stderr, /into\/x is a group of an organisation/);
  });
});

describe("the exit code of --dry-run", () => {
  it("is 0 for nothing to change and 2 for differences", async () => {
    await world.organisation("codes");
    const content = { organization: "codes", groups: [{ path: "/a" }] };
    assert.equal((await apply(content, "--dry-run")).code, 2);
    assert.equal((await apply(content, "--dry-run")).code, 2, "nothing was created");
    assert.equal((await apply(content, "--yes")).code, 0);
    assert.equal((await apply(content, "--dry-run")).code, 0);
  });

  it("is 1 for every error", async () => {
    const good = file({ organization: "codes", groups: [] });
    const env = { ARBOR_API: world.harness.url, ARBOR_TOKEN: "none" };
    const cases: readonly (readonly [args: readonly string[], env?: Readonly<Record<string, string>>])[] = [
      [["-f", file("groups: 1")]],
      [["-f", "/missing.yaml"]],
      [["-f", good, "--typo"]],
      [["-f", good, "-f", good]],
      [[]],
      [["-f", file({ organization: "missing" })]],
      [["-f", good], { ...env, ARBOR_TOKE: "x" }],
      [["-f", good], env],
      [["-f", good], { ...env, ARBOR_API: "http://127.0.0.1:1" }],
      [["-f", good, "--api", "nonsense"]],
    ];
    for (const [args, own] of cases) {
      const all = ["apply", "--dry-run", ...args];
      const { code, stderr } = own === undefined ? await world.arbor(...all) : await runCommand(all, own);
      assert.equal(code, 1, `${args.join(" ")}: ${stderr}`);
      assert.match(stderr, /^arbor: ./);
    }
    // The control: without the flag they have the codes of their classes.
    assert.equal((await world.arbor("apply", "-f", "/missing.yaml", "--yes")).code, 2);
  });
});

describe("arbor apply", () => {
  it("prints the plan as JSON", async () => {
    const uid = await world.organisation("json");
    const { code, stdout } = await apply(
      { organization: "json", groups: [{ path: "/a", description: "x" }] },
      "--dry-run",
      "-o",
      "json",
    );
    assert.equal(code, 2);
    assert.deepEqual(JSON.parse(stdout), {
      organization: { uid, name: "json" },
      changes: [
        { action: "create", kind: "group", name: "/a", fields: [{ field: "description", before: null, after: "x" }] },
      ],
      kept: [],
      notes: [],
      unchanged: 0,
    });
  });

  it("needs --yes without a terminal, and does nothing without it", async () => {
    await world.organisation("asks");
    const { code, stderr } = await apply({ organization: "asks", groups: [{ path: "/a" }] });
    assert.deepEqual([code, stderr], [2, "arbor: --yes: is required without a terminal; see arbor apply --help\n"]);
    assert.deepEqual((await world.exported("asks")).groups, [{ path: "/" }]);
  });

  it("refuses one of two of a name, with both uids", async () => {
    const root = await world.organisation("twins");
    const create = async () => String((await world.rest("POST", `/groups/${root}`, { name: "twin" })).json?.uid);
    const [one, other] = [await create(), await create()];
    const content = {
      organization: "twins",
      identities: [{ path: "/twin/ci", awsIdentity: { awsAccount: "123456789012", arn: "a", userId: "b" } }],
    };
    for (const [code, stderr] of [
      await apply(content, "--yes").then((done) => [done.code, done.stderr] as const),
      await world.arbor("export", "twins").then((done) => [done.code, done.stderr] as const),
    ]) {
      assert.ok(code === 2 || code === 6, String(code));
      assert.ok(stderr.includes(one) && stderr.includes(other), stderr);
    }
  });

  it("changes how an identity is assumed together with its conditions", async () => {
    await world.organisation("assumed");
    const match = { issuer: "https://a.example", subject: "a" };
    const aws = { awsAccount: "123456789012", arn: "a", userId: "b" };
    for (const one of [
      { claimMatch: match, conditions: [{ path: ["a"], equals: 1 }] },
      { awsIdentity: aws, conditions: [] },
      { claimMatch: { ...match, subject: "b" }, conditions: [{ path: ["b"], oneOf: ["x", "y"] }] },
    ]) {
      const content = { organization: "assumed", identities: [{ path: "/ci", ...one }] };
      const { code, stderr } = await apply(content, "--yes");
      assert.equal(code, 0, stderr);
      const { conditions, ...rest } = one;
      const expected = { path: "/ci", ...rest, ...(conditions.length > 0 && { conditions }) };
      assert.deepEqual((await world.exported("assumed")).identities, [expected]);
    }
  });

  it("sets, changes and removes the end of a role binding", async () => {
    await world.organisation("ends");
    const identities = [{ path: "/ci", awsIdentity: { awsAccount: "123456789012", arn: "a", userId: "b" } }];
    for (const endTime of ["2090-01-01T00:00:00.000Z", "2091-01-01T00:00:00.000Z", null]) {
      const roleBindings = [{ group: "/", identity: "/ci", role: "viewer", endTime }];
      const { code, stderr } = await apply({ organization: "ends", identities, roleBindings }, "--yes");
      assert.equal(code, 0, stderr);
      const found = (await world.exported("ends")).roleBindings as Record<string, unknown>[];
      assert.equal(found.find(({ identity }) => identity === "/ci")?.endTime, endTime ?? undefined);
    }
  });
});

describe("arbor apply --prune", () => {
  const content = { organization: "prune", groups: [{ path: "/" }], identities: [], roles: [], roleBindings: [] };
  let root: string;
  before(async () => {
    root = await world.organisation("prune");
    const made = {
      ...content,
      groups: [{ path: "/" }, { path: "/empty" }, { path: "/images" }],
      identities: [{ path: "/ci", awsIdentity: { awsAccount: "123456789012", arn: "a", userId: "b" } }],
      roleBindings: [{ group: "/", identity: "/ci", role: "viewer" }],
    };
    assert.equal((await apply(made, "--yes")).code, 0);
    const keys = { issuer: "https://pull-token.invalid", subject: "a", issuerKeys: "{}" };
    const { status } = await world.rest("POST", `/identities/${root}`, { name: "pull-token-x", staticKeys: keys });
    assert.equal(status, 200);
    const repos = await runCommand(["registry", "repos", "create", "--parent", "prune/images", "--name", "app"], {
      ARBOR_API: world.harness.url,
      ARBOR_TOKEN: await world.harness.token(world.owner),
    });
    assert.equal(repos.code, 0, repos.stderr);
  });

  async function withLimit(limit: object) {
    const { keys } = world.harness.app.installation;
    const { url } = world.harness;
    const request = { issuer: url, audience: url, identity: world.owner, limit, lifeS: 3600, atMs: Date.now() };
    const token = await issueToken(request, keys, randomIds);
    return runCommand(["apply", "-f", file(content), "--into", root, "--prune", "--dry-run"], {
      ARBOR_API: url,
      ARBOR_TOKEN: token,
    });
  }

  it("refuses a limited token", async () => {
    const owners = builtinRoles.owner ?? [];
    const limited = await withLimit({ cap: buildCapabilitySet(owners.filter((name) => name !== "groups.delete")) });
    assert.equal(limited.code, 1);
    assert.match(limited.stderr, /--prune needs a token that is not limited/);
    const blind = await withLimit({ cap: buildCapabilitySet(["groups.list", "groups.delete"]) });
    assert.equal(blind.code, 1);
    assert.match(blind.stderr, /in the whole organisation you need .*identity\.list/);
    const elsewhere = await withLimit({ scope: [await world.organisation("elsewhere")] });
    assert.equal(elsewhere.code, 1);
    // The control: a token with all that the role has.
    const whole = await withLimit({ cap: buildCapabilitySet(builtinRoles.owner ?? []) });
    assert.equal(whole.code, 2, whole.stderr);
  });

  it("lists what it deletes and what it keeps, and deletes it", async () => {
    const { code, stdout } = await apply(content, "--prune", "--dry-run");
    assert.equal(code, 2);
    const lines = stdout.split("\n").map((line) => line.replace(/ \([0-9a-f/]+\)/, ""));
    assert.deepEqual(lines, [
      "- role binding /: /ci has viewer",
      "- identity /ci",
      "- group /empty",
      `  keeps role binding /: ${OWNER} has owner: yours: you would lose access`,
      "  keeps identity /pull-token-x: managed by arbor auth pull-tokens",
      "  keeps group /images: it has a repo",
      "",
      "0 to create, 0 to change, 3 to delete; 1 resource is as the file says",
      "",
    ]);
    const done = await apply(content, "--prune", "--yes");
    assert.equal(done.code, 0, done.stderr);
    assert.equal((await apply(content, "--prune", "--dry-run")).code, 0);
    const { groups, identities } = await world.exported("prune");
    assert.deepEqual([groups, identities], [[{ path: "/" }, { path: "/images" }], []]);
  });

  it("goes on after a deletion that the service refuses, and fails at the end", async () => {
    await world.organisation("refuses");
    const whole = {
      organization: "refuses",
      groups: [{ path: "/" }],
      roles: ["a", "b"].map((name) => ({ path: `/${name}`, capabilities: ["groups.list"] })),
    };
    assert.equal((await apply(whole, "--yes")).code, 0);
    const invite = await world.arbor(
      "iam",
      "group-invites",
      "create",
      "--parent",
      "refuses",
      "--role",
      "refuses/a",
      "--ttl",
      "1d",
    );
    assert.equal(invite.code, 0, invite.stderr);
    const { code, stdout, stderr } = await apply({ ...whole, roles: [] }, "--prune", "--yes");
    assert.equal(code, 6, stderr);
    assert.match(stderr, /^arbor: cannot delete role \/a: .*in use/);
    assert.match(stdout, /^deleted role \/b$/m);
  });

  it("is refused to those who do not see the whole organisation", async () => {
    const { uid, token } = await world.harness.identity();
    await world.harness.bind(
      uid,
      "editor",
      String((await world.rest("POST", `/groups/${root}`, { name: "part" })).json?.uid),
    );
    const { code, stderr } = await runCommand(["apply", "-f", file({ groups: [] }), "--into", root, "--yes"], {
      ARBOR_API: world.harness.url,
      ARBOR_TOKEN: token,
    });
    assert.equal(code, 4, stderr);
    assert.match(stderr, /what you do not see would be taken for absent/);
  });
});

describe("arbor export", () => {
  it("lists what is not in the file, with counts", async () => {
    const root = await world.organisation("lists");
    const keys = { issuer: "https://pull-token.invalid", subject: "b", issuerKeys: "{}" };
    await world.rest("POST", `/identities/${root}`, { name: "pull-token-y", staticKeys: keys });
    const stranger = await world.harness.identity();
    await world.harness.bind(stranger.uid, "viewer", root);
    const invite = await world.arbor(
      "iam",
      "group-invites",
      "create",
      "--parent",
      "lists",
      "--role",
      "viewer",
      "--ttl",
      "1d",
    );
    assert.equal(invite.code, 0, invite.stderr);
    const { stdout } = await world.arbor("export", "lists");
    assert.deepEqual(
      stdout.split("\n").filter((line) => line.startsWith("#   -")),
      [
        "#   - uids and times, which each resource gets anew",
        "#   - pull tokens (1): their passwords are shown once",
        "#   - role bindings of people by address (1): elsewhere, those are found who have joined an organisation of yours there",
        "#   - the uids of role bindings of people whose addresses are not shown (1): they are in this file, and another service does not know them",
        "#   - invites (1): their codes are shown once",
      ],
    );
  });
});

describe("an organisation of 200 groups that is as its file says", () => {
  it("takes calls by pages, not by resources", async (context) => {
    const root = await world.organisation("large");
    const groups = Array.from({ length: 200 }, (_, i) => ({
      path: `/g${i % 20}${i < 20 ? "" : `/s${i}`}`,
      description: `${i}`,
    }));
    const identities = groups.map(({ path }) => ({
      path: `${path}/ci`,
      claimMatch: { issuer: "https://a.example", subject: path },
    }));
    const roleBindings = groups.map(({ path }) => ({ group: path, identity: `${path}/ci`, role: "viewer" }));
    const content = { organization: "large", groups, identities, roleBindings };
    assert.equal((await apply(content, "--yes")).code, 0);
    let calls = 0;
    const startMs = performance.now();
    const { plan } = await world.withCall((call) =>
      planBy(
        (method, request) => {
          calls++;
          return call(method, request);
        },
        root,
        content,
        { needsConditions: () => false, isPrune: false },
      ),
    );
    context.diagnostic(`${calls} calls in ${Math.round(performance.now() - startMs)} ms`);
    assert.deepEqual([plan.changes, plan.unchanged], [[], 600]);
    assert.ok(calls < 20, `${calls} calls`);
  });
});
