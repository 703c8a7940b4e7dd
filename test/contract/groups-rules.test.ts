// The path of a root group's creation, and what a verified group keeps.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { randomIds } from "../../src/kernel/ids.js";
import { type Harness, startHarness } from "../support/harness.js";
import { type Expected, KIND, notPermittedField, precondition, VERIFIED } from "./expectations.js";
import { type Rest, restAs } from "./rest.js";

let harness: Harness;
let org: string;
let token: string;
let rest: Rest;

before(async () => {
  harness = await startHarness();
  ({ group: org, token } = await harness.organisation("acme.example"));
  rest = restAs(harness.url, token);
});

after(() => harness.stop());

// What a test changes, without what all tests leave as it is.
function changesOf(json: object | undefined): object {
  const { uid, createTime, updateTime, resourceLimits, ...rest } = json as Record<string, unknown>;
  assert.deepEqual([typeof uid, resourceLimits], ["string", {}]);
  for (const time of [createTime, updateTime]) assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  return rest;
}

describe("the path of a root group's creation", () => {
  it("is a path for that alone: any other route with an empty ** is 404", async () => {
    for (const version of ["v1", "v2beta1", "v2"]) {
      const at = restAs(harness.url, token, `/iam/${version}`);
      for (const method of ["GET", "PATCH", "PUT", "DELETE"]) {
        const { status, json } = await at(method, "/groups/", method === "GET" ? undefined : {});
        const text = `Not found: path: no such path /iam/${version}/groups/, did you mean /iam/${version}/groups?`;
        assert.deepEqual([status, json?.message], [404, text], method);
      }
      for (const kind of ["identities", "roles", "terms", "identityProviders"]) {
        assert.equal((await at("POST", `/${kind}/`, { name: "a" })).status, 404, kind);
      }
      assert.equal((await at("POST", "/groups", { name: "a" })).status, 405);
      assert.equal((await at("OPTIONS", "/groups/")).headers.get("allow"), "OPTIONS, POST");
    }
  });

  it("says that the parent is empty, and so nothing else may", async () => {
    const { status, json } = await rest("POST", `/groups/?parent=${org}`, { name: "a" });
    assert.deepEqual(
      [status, String(json?.message).startsWith("Invalid argument: parent")],
      [400, true],
      json?.message as string,
    );
  });
});

it("leaves a verified root its name and its kind", async () => {
  const { group, token: owner } = await harness.organisation("verified.example");
  const { store } = harness.app.installation;
  const context = { ids: randomIds, nowMs: Date.now() };
  await store.write((tx) => verifyGroup(tx, group, "ORG_KIND_CUSTOMER", context));
  const call = restAs(harness.url, owner);
  const frozen = precondition("GROUP_VERIFIED", "cannot rename a verified group");
  const attempts: readonly [query: string, body: object, expect: Expected | undefined][] = [
    ["", { name: "other.example" }, frozen],
    ["?updateMask=name", { name: "other.example" }, frozen],
    ["?updateMask=*", { name: "other.example", verified: false }, frozen],
    [
      "",
      { name: "verified.example", verified: false, kind: "ORG_KIND_UNSPECIFIED" },
      notPermittedField(VERIFIED, KIND),
    ],
    ["", { name: "verified.example", verified: true, kind: "ORG_KIND_CUSTOMER" }, undefined],
    ["?updateMask=verified,kind", { verified: false }, notPermittedField(VERIFIED, KIND)],
    ["?updateMask=verified,kind", { verified: true, kind: "ORG_KIND_CUSTOMER" }, undefined],
    ["?updateMask=*", { name: "verified.example", verified: true, kind: "ORG_KIND_DEV" }, notPermittedField(KIND)],
    ["?updateMask=*", { name: "verified.example", description: "ours" }, undefined],
  ];
  for (const [query, body, expect] of attempts) {
    const { outcome } = await call("PATCH", `/groups/${group}${query}`, body);
    if (expect) assert.deepEqual(outcome, expect, query);
    else assert.equal(outcome.code, "OK", query);
  }
  const { json } = await call("GET", `/groups/${group}`);
  assert.deepEqual(changesOf(json), {
    name: "verified.example",
    description: "ours",
    verified: true,
    kind: "ORG_KIND_CUSTOMER",
  });
});
