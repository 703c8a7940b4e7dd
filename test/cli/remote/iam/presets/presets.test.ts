// What identities of presets accept, by TestClaims of a service.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { JsonObject } from "@bufbuild/protobuf";
import { presets } from "../../../../../src/cli/remote/iam/presets/presets.js";
import { restAs } from "../../../../contract/rest.js";
import { runCommand } from "../../../../support/command.js";
import { type Harness, startHarness } from "../../../../support/harness.js";
import { cases } from "./platform-tokens.js";

let service: Harness;
let root: string;
let token: string;
before(async () => {
  service = await startHarness();
  ({ group: root, token } = await service.organisation("acme.example"));
});
after(() => service?.stop());

const run = (...args: readonly string[]) =>
  runCommand(["iam", "identities", "create", "--parent", root, ...args], {
    ARBOR_API: service.url,
    ARBOR_TOKEN: token,
  });

async function createIdentity(...flags: readonly string[]): Promise<JsonObject> {
  const { code, stdout, stderr } = await run(...flags, "-o", "json");
  assert.deepEqual([code, stderr.replace(/^arbor: warning: .*\n/, "")], [0, ""]);
  return JSON.parse(stdout) as JsonObject;
}

async function testClaims(identity: string, claims: JsonObject): Promise<JsonObject> {
  const rest = restAs(service.url, token, "/access/v1/identities");
  const { status, json = {} } = await rest("POST", `/${identity}:testClaims`, { claims });
  assert.equal(status, 200, JSON.stringify(json));
  return json as JsonObject;
}

describe("an identity of a preset", () => {
  for (const { flags, claims, tokens } of cases) {
    it(`accepts or rejects tokens: ${flags.join(" ")}`, async () => {
      const { uid } = await createIdentity(...flags);
      for (const { name, claims: changed, fails } of tokens) {
        const all = Object.entries({ aud: service.url, ...claims, ...changed }).filter(
          ([, value]) => value !== undefined,
        );
        const tested = await testClaims(String(uid), Object.fromEntries(all) as JsonObject);
        assert.deepEqual([tested.accepted, tested.claim], [fails === undefined, fails ?? ""], name);
      }
    });
  }

  it("is tested for each preset, with tokens of both kinds", () => {
    for (const { chosenBy } of presets) {
      const tokens = cases.filter(({ flags }) => flags[0] === `--${chosenBy}`).flatMap((one) => one.tokens);
      assert.ok(
        tokens.some(({ fails }) => fails === undefined) && tokens.some(({ fails }) => fails !== undefined),
        chosenBy,
      );
    }
  });

  it("would accept what the conditions alone reject, of which this is the control", async () => {
    const { uid, claimMatch } = await createIdentity(...(cases[0]?.flags ?? []));
    const rest = restAs(service.url, token, "/trust/v1/identities");
    assert.equal((await rest("PUT", `/${uid}/conditions`, { conditions: [] })).status, 200);
    let wider = 0;
    for (const { claims, fails } of cases[0]?.tokens ?? []) {
      if (fails === undefined || fails in { sub: 0, iss: 0 }) continue;
      const all = { aud: service.url, ...cases[0]?.claims, ...claims } as JsonObject;
      if ((await testClaims(String(uid), JSON.parse(JSON.stringify(all)))).accepted === true) wider++;
    }
    assert.ok(wider > 5, JSON.stringify(claimMatch));
  });
});
