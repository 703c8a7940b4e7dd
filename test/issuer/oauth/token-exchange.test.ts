// `POST /oauth/token` for tokens of other issuers (RFC 8693), and its errors.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { bindingRow, groupRow, identityRow } from "../../support/rows.js";
import { claimsOf, type LoginKit, postForm, startLogin } from "./login-kit.js";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const TYPE = "urn:ietf:params:oauth:token-type:";

let kit: LoginKit;
let identity = "";
let group = "";

before(async () => {
  kit = await startLogin();
  ({ group } = await kit.organisation("workloads.example"));
  identity = randomIds.newUid(group);
  const relationship = { claimMatch: { issuer: kit.provider.issuer, subject: "job", audience: kit.url } };
  await kit.store.write((tx) => tx.table(identityKind).insert(identityRow(identity, { relationship })));
});

after(() => kit?.stop());

async function exchange(more: Readonly<Record<string, string>> = {}, sub = "job") {
  return postForm(`${kit.url}/oauth/token`, {
    grant_type: EXCHANGE,
    subject_token: await kit.provider.signIdToken({ sub, aud: kit.url }),
    subject_token_type: `${TYPE}jwt`,
    identity,
    ...more,
  });
}

test("a workload gets a token, narrowed as it asks", async () => {
  const { status, headers, body } = await exchange({ audience: kit.url, scope: `openid ${group}`, cap: "groups.list" });
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(body.issued_token_type, `${TYPE}access_token`);
  assert.equal(body.token_type, "Bearer");
  assert.ok(Number(body.expires_in) <= 3_600);
  assert.equal("refresh_token" in body, false);
  const claims = claimsOf(body.access_token);
  assert.equal(claims.sub, identity);
  const { scope, cap } = claims.lim as Record<string, unknown>;
  assert.deepEqual(scope, [group]);
  assert.ok(cap);
});

test("a workload names its organisation once it holds a role there, if only below the root", async () => {
  const before = await exchange({ scope: "workloads.example" });
  assert.deepEqual([before.status, before.body.error], [400, "invalid_scope"]);
  const child = randomIds.newUid(group);
  await kit.store.write(async (tx) => {
    await tx.table(groupKind).insert(groupRow(child));
    await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(child), identity, builtinRoleUid("viewer")));
  });
  const { body } = await exchange({ scope: "workloads.example" });
  assert.deepEqual(claimsOf(body.access_token).lim, { scope: [group] });
});

test("the name of another organisation is rejected as a name of none", async () => {
  const strangers = await kit.organisation("strangers.example");
  // A binding that nobody accepted is no role.
  const pending = bindingRow(randomIds.newUid(strangers.group), identity, builtinRoleUid("viewer"), { pending: true });
  await kit.store.write((tx) => tx.table(roleBindingKind).insert(pending));
  const unknown = await exchange({ scope: "unknown.example" });
  assert.deepEqual([unknown.status, unknown.body.error], [400, "invalid_scope"]);
  const { status, body } = await exchange({ scope: "strangers.example" });
  assert.deepEqual([status, body], [unknown.status, unknown.body]);
});

test("resource stands for audience", async () => {
  assert.equal((await exchange({ resource: kit.url })).status, 200);
});

const rejected: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
  ["another kind of token", { subject_token_type: `${TYPE}saml2` }, "invalid_request"],
  ["no kind of token", { subject_token_type: "" }, "invalid_request"],
  ["a token wanted of another kind", { requested_token_type: `${TYPE}refresh_token` }, "invalid_request"],
  ["an actor", { actor_token: "x" }, "invalid_request"],
  ["no token", { subject_token: "" }, "invalid_request"],
  ["a token that is none", { subject_token: "a.b.c" }, "invalid_request"],
  ["another audience", { audience: "https://other.example" }, "invalid_target"],
  ["a scope that is no uid", { scope: "everything" }, "invalid_scope"],
  ["an identity that does not exist", { identity: "0".repeat(40) }, "invalid_request"],
  ["another grant", { grant_type: "password" }, "unsupported_grant_type"],
  ["no grant", { grant_type: "" }, "invalid_request"],
];

for (const [name, more, error] of rejected) {
  test(`${name} is rejected with ${error}`, async () => {
    const { status, headers, body } = await exchange(more);
    assert.deepEqual([status, body.error], [400, error]);
    assert.ok(body.error_description);
    assert.equal(headers.get("cache-control"), "no-store");
  });
}

test("a token of another issuer is rejected, and not in the response", async () => {
  const { status, body } = await exchange({}, "other");
  assert.deepEqual([status, body.error], [400, "invalid_request"]);
  assert.doesNotMatch(JSON.stringify(body), /eyJ/);
});

test("a token for others is rejected with a hint, whether it has expired or not", async () => {
  for (const exp of [Math.floor(Date.now() / 1000) + 60, Math.floor(Date.now() / 1000) - 600]) {
    const token = await kit.provider.signIdToken({ sub: "job", aud: "https://elsewhere.example", exp });
    const { status, body } = await exchange({ subject_token: token });
    assert.deepEqual([status, body.error], [400, "invalid_request"]);
    assert.match(String(body.error_description), /aud names none of this service's audiences/);
  }
});

test("a body that is no form gets an OAuth error", async () => {
  const response = await fetch(`${kit.url}/oauth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  assert.equal(response.status, 400);
  assert.equal(((await response.json()) as { error: string }).error, "invalid_request");
});

test("a parameter given twice is rejected", async () => {
  const form = new URLSearchParams([
    ["grant_type", "refresh_token"],
    ["grant_type", EXCHANGE],
  ]);
  const response = await fetch(`${kit.url}/oauth/token`, { method: "POST", body: form });
  assert.match(await response.text(), /grant_type must be given once/);
});

test("a made-up refresh token is rejected", async () => {
  const { status, body } = await postForm(`${kit.url}/oauth/token`, {
    grant_type: "refresh_token",
    refresh_token: Buffer.from(JSON.stringify({ exp: 1, sec: "x" })).toString("base64"),
  });
  assert.deepEqual([status, body.error], [400, "invalid_grant"]);
});
