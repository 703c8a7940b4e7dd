// `arbor iam identities conditions` and `arbor iam guard` against a real service.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type ExchangeWorld, startExchangeWorld } from "../../../issuer/sts/exchange-world.js";
import { runCommand } from "../../../support/command.js";
import { tempDir } from "../../../support/temp-dir.js";

let world: ExchangeWorld;
before(async () => {
  world = await startExchangeWorld();
});
after(() => world.stop());

const run = (...args: readonly string[]) =>
  runCommand(["iam", ...args], { ARBOR_API: world.url, ARBOR_TOKEN: world.owner.token });

function file(text: string): string {
  const path = join(tempDir(), "file.yaml");
  writeFileSync(path, text);
  return path;
}

describe("arbor iam identities conditions", () => {
  it("sets, prints and removes conditions", async () => {
    const uid = await world.workload("ci");
    const yaml = file(`
- path: [repository_id]
  equals: 456789
- { path: [kubernetes.io, namespace], oneOf: [prod, "1"] }
- { path: [groups], contains: deployers, negated: true }
- { path: [actor], exists: true }
`);
    const lines =
      'repository_id equals 456789\n"kubernetes.io".namespace is one of "prod", "1"\n' +
      'groups does not contain "deployers"\nactor exists\n';
    const set = await run("identities", "conditions", "set", uid, "--file", yaml);
    assert.deepEqual([set.code, set.stderr, set.stdout], [0, "", lines]);
    assert.equal((await run("identities", "conditions", "get", uid)).stdout, lines);
    const json = await run("identities", "conditions", "get", uid, "-o", "json");
    const { conditions } = JSON.parse(json.stdout) as { conditions: object[] };
    // What it prints it takes again.
    const again = await run("identities", "conditions", "set", uid, "--file", file(JSON.stringify({ conditions })));
    assert.deepEqual([again.code, again.stderr, again.stdout], [0, "", lines]);
    assert.equal((await run("identities", "conditions", "clear", uid)).code, 2, "asks");
    assert.equal((await run("identities", "conditions", "clear", uid, "--yes")).stdout, "no conditions\n");
  });

  for (const [name, text] of [
    ["no list", "a: b"],
    ["a number that is too large", "[{path: [a], equals: 9007199254740993}]"],
    ["a fraction", "[{path: [a], equals: 1.5}]"],
    ["an unknown field", "[{path: [a], eqals: 1}]"],
    ["no YAML", "{"],
  ] as const) {
    it(`refuses a file with ${name}`, async () => {
      const { code, stderr } = await run("identities", "conditions", "set", world.root, "--file", file(text));
      assert.equal(code, 2, stderr);
      assert.match(stderr, /--file/);
    });
  }
});

describe("arbor iam guard", () => {
  it("lists what it shuts out before it is set, and is printed and removed", async () => {
    const uid = await world.workload("guarded");
    assert.equal((await run("guard", "get", "ours")).stdout, "no issuer guard\n");
    const yaml = file(`
issuers:
  - { issuer: "https://a.example", conditions: [{ path: [owner], equals: acme }] }
  - { origin: "https://b.example" }
aws: false
`);
    const asked = await run("guard", "set", "ours", "--file", yaml);
    assert.equal(asked.code, 2);
    assert.ok(asked.stderr.includes(uid), asked.stderr);
    assert.match(asked.stderr, /its issuer is not allowed/);
    assert.equal((await run("guard", "get", "ours")).stdout, "no issuer guard\n", "nothing is set");
    const set = await run("guard", "set", "ours", "--file", yaml, "--yes");
    assert.equal(set.code, 0, set.stderr);
    const lines =
      'allows the issuer https://a.example, where owner equals "acme"\nallows all issuers of https://b.example\n' +
      "allows static keys\nallows service principals\ndoes not allow AWS\n";
    assert.equal(set.stdout, lines);
    assert.equal((await run("guard", "get", "ours")).stdout, lines);
    const { origin } = new URL(world.workloads.issuer);
    const wider = await run("guard", "set", "ours", "--origin", origin, "--yes");
    assert.match(wider.stderr, /shuts no identity out/);
    assert.equal((await run("guard", "remove", "ours")).code, 2, "asks");
    assert.equal((await run("guard", "remove", "ours", "--yes")).stdout, "removed the issuer guard\n");
  });
});
