// What flags and files are refused for, before anything is sent: the flag and
// the rule, and exit code 2.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type CliWorld, startCliWorld } from "./cli-world.js";

const SECRET = "s3cr3t-of-the-client";

let world: CliWorld;
before(async () => {
  world = await startCliWorld();
});
after(() => world?.stop());

const idp = ["--issuer", "https://idp.example", "--subject", "s"];
const capabilities = "groups.create, groups.update, groups.list, groups.delete";

const cases: readonly {
  readonly name: string;
  readonly resource: string;
  readonly args: readonly string[];
  /** What is printed between `arbor: ` and the pointer to the help. */
  readonly rule: string | RegExp;
}[] = [
  {
    name: "an enum's value that is none",
    resource: "groups",
    args: ["--kind", "big"],
    rule: "--kind: must be one of starter, customer, dev, infra, aws-marketplace",
  },
  {
    name: "a capability that is near others",
    resource: "roles",
    args: ["--capability", "groups.list,groups.lst"],
    rule: `--capability: must be one of ${capabilities}`,
  },
  {
    name: "a capability that is near none",
    resource: "roles",
    args: ["--capability", "grups.list"],
    rule: /^--capability: must begin with one of internal, groups, group_invites, /,
  },
  ...["soon", "", "1", "-1h", "1h1d", "1.5h", "s", "9999999999999s"].map((ttl) => ({
    name: `the duration "${ttl}"`,
    resource: "group-invites",
    args: ["--ttl", ttl],
    rule: "--ttl: must be a duration such as 90s, 24h or 7d",
  })),
  ...["2026-13-01T00:00:00Z", "2026-01-01", "now"].map((time) => ({
    name: `the time ${time}`,
    resource: "identities",
    args: ["--static-keys-expiration-time", time],
    rule: "--static-keys-expiration-time: must be a time of RFC 3339 such as 2026-01-31T09:30:00Z",
  })),
  {
    name: "an entry without a value",
    resource: "identities",
    args: [...idp, "--claim", "ref"],
    rule: "--claim: must be a name, an equals sign and a value",
  },
  {
    name: "an entry without a name",
    resource: "identities",
    args: [...idp, "--claim", "=x"],
    rule: "--claim: must be a name, an equals sign and a value",
  },
  {
    name: "an entry given twice",
    resource: "identities",
    args: [...idp, "--claim", "ref=a", "--claim", "ref=b"],
    rule: "--claim: must not give ref twice",
  },
  {
    name: "a key that is no number",
    resource: "account-associations",
    args: ["--github-app-installation", "x={}"],
    rule: "--github-app-installation: must be an integer between -9223372036854775808 and 9223372036854775807",
  },
  {
    name: "an element that is not of its type",
    resource: "account-associations",
    args: ["--github-app-installation", "1={installations: [{name: 7}]}"],
    rule: "--github-app-installation: is not understood: value.installations[0].name must be a string",
  },
  {
    name: "an element that is no JSON",
    resource: "account-associations",
    args: ["--github-app-installation", "1={"],
    rule: /^--github-app-installation: not JSON or YAML at line 1, column \d+ \([A-Z_]+\)$/,
  },
  {
    name: "one of several together with another",
    resource: "identities",
    args: [...idp, "--issuer-pattern", "https://idp\\.example"],
    rule: "--issuer-pattern: cannot be combined with --issuer",
  },
  {
    name: "two ways to be assumed",
    resource: "identities",
    args: ["--service-principal", "cosigned", "--aws-account", "123456789012"],
    rule: "--service-principal: cannot be combined with --aws-account",
  },
  {
    name: "a secret's file that is not there",
    resource: "identity-providers",
    args: ["--default-role", "x", "--oidc-client-secret-file", "/nowhere"],
    rule: "--oidc-client-secret-file: cannot read /nowhere: no such file",
  },
  {
    name: "standard input for two things",
    resource: "identity-providers",
    args: ["--file", "-", "--oidc-client-secret-file", "-"],
    rule: "--file: only one file can be -, which is standard input",
  },
];

describe("a flag is refused for", () => {
  for (const { name, resource, args, rule } of cases) {
    it(name, async () => {
      const result = await world.iam(resource, "create", "--parent", world.root, ...args);
      assert.deepEqual([result.code, result.stdout], [2, ""], result.stderr);
      assertUsageError(result.stderr, rule);
    });
  }

  for (const [flag, value, rule] of [
    ["--page-size", "many", "--page-size: must be an integer between -2147483648 and 2147483647"],
    ["--skip", "2147483648", "--skip: must be an integer between -2147483648 and 2147483647"],
  ] as const) {
    it(`${flag} ${value}`, async () => {
      const { code, stderr } = await world.iam("groups", "list", flag, value);
      assert.equal(code, 2);
      assertUsageError(stderr, rule);
    });
  }

  for (const [args, message] of [
    [["groups", "create", "--color", "red"], /^arbor: unknown option '--color'/],
    [["groups", "list", "-o", "xml"], /^arbor: option '-o, --output <format>' argument 'xml' is invalid/],
    [["roles", "create", "--name", "r"], /^arbor: required option '--parent <uid-or-name>' not specified/],
    [["groups", "get"], /^arbor: missing required argument 'uid'/],
    [["group-mappings", "update", "x"], /^arbor: unknown command 'update'/],
  ] as const) {
    it(`arbor iam ${args.join(" ")}`, async () => {
      const { code, stdout, stderr } = await world.iam(...args);
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, message);
      // No help follows that would move the message off the screen.
      assert.match(stderr, /^[^\n]+; see arbor iam [a-z -]+ --help\n$/);
    });
  }
});

it("a group of commands prints its help, and what is wrong last", async () => {
  const { code, stdout, stderr } = await world.iam("groups");
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(stderr, /^Usage: arbor iam groups .*\n\narbor: a command is missing\n$/s);
});

describe("a file is refused for", () => {
  const files: readonly { readonly name: string; readonly content: string; readonly rule: string | RegExp }[] = [
    {
      name: "being no YAML",
      content: `a: "${SECRET}\n`,
      rule: /^not JSON or YAML at line \d, column \d+ \([A-Z_]+\)$/,
    },
    {
      name: "a key given twice",
      content: `name: a\nname: ${SECRET}\n`,
      rule: /^not JSON or YAML at line 2, column 1 /,
    },
    { name: "being two documents", content: "name: a\n---\nname: b\n", rule: /^not JSON or YAML at line \d/ },
    { name: "tags that are not JSON's", content: "name: !!binary aGk=\n", rule: /^not JSON or YAML at line 1/ },
    {
      name: "aliases without measure",
      content: `a: &a [x, x, x, x, x, x, x, x, x]\n${["b", "c", "d", "e"]
        .map((key, i) => `${key}: &${key} [${Array(9).fill(`*${"abcd"[i]}`).join(", ")}]`)
        .join("\n")}\n`,
      rule: "no JSON or YAML that can be written out",
    },
    { name: "holding no object", content: `- ${SECRET}\n`, rule: "the file must hold one object, the resource" },
    { name: "holding nothing", content: "", rule: "the file must hold one object, the resource" },
    {
      name: "a field there is not",
      content: `{"name":"x","oidc":{"clientSecrt":"${SECRET}"}}`,
      rule: "oidc.clientSecrt is not a field of this request",
    },
    {
      name: "a value of another type",
      content: "oidc:\n  clientSecret: 5\n",
      rule: "oidc.clientSecret must be a string",
    },
    {
      name: "two fields where one can be",
      content: "oidc: {clientId: a, client_id: b}\n",
      rule: "oidc.clientId is given twice, as clientId and as client_id",
    },
  ];
  for (const { name, content, rule } of files) {
    it(name, async () => {
      const path = world.file(content);
      const result = await world.iam("identity-providers", "create", "--parent", world.root, "--file", path);
      assert.deepEqual([result.code, result.stdout], [2, ""], result.stderr);
      assertUsageError(
        result.stderr,
        typeof rule === "string" ? `--file: ${rule}` : new RegExp(`^--file: ${rule.source.slice(1)}`),
      );
      assert.ok(!result.stderr.includes(SECRET));
    });
  }

  it("numbers of which digits would be lost", async () => {
    const path = world.file("github: {appInstallations: {1: {installations: [{installationId: 9007199254740993}]}}}\n");
    const { code, stderr } = await world.iam("account-associations", "create", "--parent", world.root, "--file", path);
    assert.equal(code, 2);
    assertUsageError(stderr, /--file: github\.\S+installationId must be a string of digits, as it is beyond 2\^53$/);
  });
});

function assertUsageError(stderr: string, rule: string | RegExp): void {
  const message = /^arbor: ([^\n]+); see arbor iam [a-z -]+ --help\n$/.exec(stderr)?.[1];
  assert.ok(message !== undefined, stderr);
  if (typeof rule === "string") assert.equal(message, rule);
  else assert.match(message, rule);
}
