// `arbor iam identities test-claims`: whether a token may assume an identity, and which condition fails.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { scriptArguments } from "../../../support/project.js";
import { tempDir } from "../../../support/temp-dir.js";
import { run } from "../auth/process.js";
import { type AccessWorld, startAccessWorld } from "./access-world.js";

let world: AccessWorld;
let claims: Readonly<Record<string, unknown>>;
before(async () => {
  world = await startAccessWorld();
  const match = ["--issuer", "https://ci.example", "--subject", "repo:acme/app", "--claim", "ref=main"];
  await world.json("identities", "create", "--parent", world.team, "--name", "deployer", ...match);
  claims = { iss: "https://ci.example", sub: "repo:acme/app", aud: world.service.url, ref: "main" };
});
after(() => world?.stop());

const test = (flag: string, content: string, ...more: readonly string[]) =>
  world.iam("identities", "test-claims", "acme.example/team/deployer", flag, world.file(content), ...more);

function encode(value: Readonly<Record<string, unknown>>): string {
  const parts = [{ alg: "RS256", kid: "a" }, value].map((part) => Buffer.from(JSON.stringify(part)));
  return `${parts.map((part) => part.toString("base64url")).join(".")}.c2lnbmF0dXJl`;
}

describe("arbor iam identities test-claims", () => {
  it("accepts claims that match", async () => {
    assert.deepEqual(await test("--claims-file", JSON.stringify(claims)), {
      code: 0,
      stdout: "accepted\n",
      stderr: "",
    });
  });

  const wrong: readonly (readonly [claim: string, value: string | undefined, condition: string, expected: string])[] = [
    ["iss", "https://other.example", "issuer", "https://ci.example"],
    ["sub", "repo:acme/other", "subject", "repo:acme/app"],
    ["ref", "topic", "claim", "main"],
  ];
  for (const [claim, value, condition, expected] of wrong) {
    it(`prints the condition that fails, what is expected and what is there: ${condition}`, async () => {
      const { code, stdout, stderr } = await test("--claims-file", JSON.stringify({ ...claims, [claim]: value }));
      assert.deepEqual([code, stderr], [1, ""]);
      const [head = "", ...rows] = stdout.trimEnd().split("\n");
      assert.match(head, /^rejected: [A-Z].*\.$/);
      assert.deepEqual(
        rows.map((row) => row.split(/ {2,}/)),
        [
          ["FIELD", "VALUE"],
          ["condition", condition],
          ["claim", claim],
          ["expected", expected],
          ["actual", value],
        ],
      );
    });
  }

  it("prints the response for programs, with the same exit code", async () => {
    const { code, stdout } = await test("--claims-file", JSON.stringify({ ...claims, sub: "x" }), "-o", "json");
    assert.equal(code, 1);
    const { accepted, failed, claim, actual } = JSON.parse(stdout) as Record<string, unknown>;
    assert.deepEqual([accepted, failed, claim, actual], [false, "CONDITION_SUBJECT", "sub", "x"]);
  });

  it("tests a token, and reads it from standard input", async () => {
    const token = encode({ ...claims, sub: "repo:acme/other", iat: 1, exp: 2 });
    const { code, stdout } = await test("--identity-token", `${token}\n`);
    assert.equal(code, 1, stdout);
    assert.match(stdout, /^rejected: .*\nFIELD +VALUE\ncondition +\S/);
    const malformed = await test("--identity-token", "no token");
    assert.match(malformed.stdout, /^rejected: .*\nFIELD +VALUE\ncondition +(?:form|relationship)/);
    assert.equal(stdout.includes(token), false);

    const home = tempDir();
    const env = { HOME: home, XDG_CONFIG_HOME: home, ARBOR_API: world.service.url, ARBOR_TOKEN: world.token };
    const args = [...scriptArguments("src/main.ts"), "iam", "identities", "test-claims", "acme.example/team/deployer"];
    const piped = await run(process.execPath, [...args, "--claims-file", "-"], env, JSON.stringify(claims)).ended;
    assert.deepEqual(piped, { code: 0, signal: null, stdout: "accepted\n", stderr: "" });
  });

  it("rejects files that hold neither, and both", async () => {
    const of = ["identities", "test-claims", "acme.example/team/deployer"];
    const file = world.file(JSON.stringify(claims));
    for (const [args, text] of [
      [[], "--identity-token: give either --identity-token or --claims-file"],
      [["--identity-token", file, "--claims-file", file], "--identity-token: give either"],
      [["--claims-file", world.file("not JSON")], "--claims-file: must hold one JSON object, the claims of a token"],
      [["--claims-file", world.file("[1]")], "--claims-file: must hold one JSON object"],
      [["--claims-file", "/nowhere"], "--claims-file: cannot read /nowhere: no such file"],
      [["--identity-token", world.file("\n")], "--identity-token: must name a file that is not empty"],
      [["--claims-file", world.file("{}")], "claims.iss"],
    ] as const) {
      const { code, stdout, stderr } = await world.iam(...of, ...args);
      assert.deepEqual([code, stdout], [2, ""]);
      assert.ok(stderr.includes(text), stderr);
    }
  });

  it("is for those who may change the identity", async () => {
    const { code, stderr } = await world.iamWith(
      { ARBOR_TOKEN: world.ci.token },
      ...["identities", "test-claims", world.ci.uid, "--claims-file", world.file(JSON.stringify(claims))],
    );
    assert.equal(code, 4);
    assert.match(stderr, /^arbor: Permission denied: identity\.update at /);
  });
});
