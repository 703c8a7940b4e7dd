import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { bootstrap } from "../../../src/iam/operator/bootstrap.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { type LoginKit, startLogin } from "./login-kit.js";

let kit: LoginKit;

before(async () => {
  kit = await startLogin();
  await kit.organisation("verified.example");
  await kit.organisation("unverified.example", false);
  await kit.store.write(async (tx) => {
    const { group } = await bootstrap(tx, { org: "without.example" }, randomIds, 1_000);
    await tx.table(groupKind).update(group, { verified: true }, 1_000);
  });
});

after(() => kit?.stop());

const cases: readonly (readonly [string, string, boolean])[] = [
  ["a verified organisation with a provider", "?name=verified.example", true],
  ["another spelling of it", "?name=Verified.example", false],
  ["one that is not verified", "?name=unverified.example", false],
  ["one without a provider", "?name=without.example", false],
  ["one that is not there", "?name=nobody.example", false],
  ["an empty name", "?name=", false],
  ["no name", "", false],
];

for (const [name, query, expected] of cases) {
  test(`${name}: ${expected}`, async () => {
    const response = await fetch(`${kit.url}/orgcheck${query}`);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.equal(await response.text(), String(expected));
  });
}
