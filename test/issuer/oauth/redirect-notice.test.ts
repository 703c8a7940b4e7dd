// Which redirect URIs the log asks to be registered: those that are new since the last start, and no others.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { findRedirectNotices } from "../../../src/issuer/oauth/redirect-notice.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { type LoginKit, startLogin } from "./login-kit.js";

const issuer = "https://iam.example.com";
let kit: LoginKit;
before(async () => {
  kit = await startLogin();
});
after(() => kit?.stop());

function startWith(...names: readonly string[]) {
  const { store, clock, loginProviders } = kit.deps;
  const [one] = loginProviders;
  assert.ok(one);
  return findRedirectNotices({ store, clock, issuer, loginProviders: names.map((name) => ({ ...one, name })) });
}

const ownUris = async (...names: readonly string[]) => (await startWith(...names))[0]?.redirectUris;

test("an operator's only login provider keeps its redirect URI, and several have new ones, named once", async () => {
  assert.deepEqual(await startWith("google"), []);
  const both = { google: `${issuer}/oauth/callback/google`, staff: `${issuer}/oauth/callback/staff` };
  assert.deepEqual(await ownUris("google", "staff"), both);
  assert.deepEqual(await startWith("google", "staff"), []);
  assert.deepEqual(await ownUris("google", "staff", "third"), { third: `${issuer}/oauth/callback/third` });
  assert.deepEqual(await ownUris("staff"), { staff: `${issuer}/oauth/callback` });
});

test("providers of organisations that were there before are named until they are updated", async () => {
  kit.skewMs = -60_000;
  const { provider } = await kit.organisation("early.example");
  kit.skewMs = 60_000;
  await kit.organisation("late.example");
  for (let start = 0; start < 2; start++) {
    const [notice, ...more] = await startWith("staff");
    assert.deepEqual([notice?.identityProviders, more], [[provider], []]);
    assert.match(
      notice?.message ?? "",
      /https:\/\/iam\.example\.com\/oauth\/callback\/UID at these identity providers/,
    );
  }
  await kit.store.write(async (tx) => {
    const row = await tx.table(identityProviderKind).find(provider);
    assert.ok(row);
    await tx.table(identityProviderKind).replace({ ...row, updateTimeMs: kit.deps.clock() });
  });
  assert.deepEqual(await startWith("staff"), []);
});

test("of very many the first are named", async () => {
  kit.skewMs = -60_000;
  for (let i = 0; i < 22; i++) await kit.organisation(`early-${i}.example`);
  kit.skewMs = 0;
  const [notice] = await startWith("staff");
  assert.equal(notice?.identityProviders?.length, 20);
  assert.match(notice?.message ?? "", /the first 20/);
});
