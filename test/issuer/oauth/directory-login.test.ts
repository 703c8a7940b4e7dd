// People of a directory at real logins: who gets in, and what of a login in flight is left when the directory deactivates the
// person. Each refusal has a control.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { providerPersonUid } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { type ScimUserRow, scimUserKind } from "../../../src/store/iam/scim-users.js";
import { deleteScimUser, insertScimUser, setScimUserActive } from "../../support/scim-people.js";
import {
  Agent,
  claimsOf,
  codeRequest,
  type LoginKit,
  newPkce,
  PROGRAM,
  postForm,
  readHiddenFields,
  type Seen,
  startLogin,
} from "./login-kit.js";

const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const DEACTIVATED = "the directory of your organisation has deactivated this account: ask its administrators";
const NOT_SENT = "the directory of your organisation has not sent this account: ask its administrators to assign it";

let kit: LoginKit;
let provider: string;
let count = 0;

before(async () => {
  kit = await startLogin();
});
after(() => kit?.stop());
beforeEach(async () => {
  ({ provider } = await kit.organisation(`scim-${count++}.example`));
  await setProvider({ lacksDefaultRole: true, scim: true });
  kit.skewMs = 0;
});

async function setProvider({ lacksDefaultRole = true, scim = true, oid = false }): Promise<void> {
  await kit.store.write(async (tx) => {
    const row = await tx.table(identityProviderKind).find(provider);
    if (row === undefined) throw new Error("there is no provider");
    const correlationRule = oid ? "CORRELATION_RULE_OID_EQUALS_EXTERNAL_ID" : "CORRELATION_RULE_UNSPECIFIED";
    const changed = { lacksDefaultRole, oidc: { ...row.oidc, correlationRule }, scim: { ...row.scim, enabled: scim } };
    await tx.table(identityProviderKind).replace({ ...row, ...changed });
  });
}

/** Lets a new account sign in at the login provider. */
function newAccount(claims: Readonly<Record<string, unknown>> = {}): string {
  const subject = `account-${count++}`;
  kit.provider.account = { subject, claims };
  return subject;
}

const send = (externalId: string, values: Partial<ScimUserRow> = {}) =>
  kit.store.write((tx) => insertScimUser(tx, provider, { externalId, ...values }));
const deactivate = (uid: string, active = false) => kit.store.write((tx) => setScimUserActive(tx, uid, active));
const uidOf = (subject: string) => providerPersonUid(provider, kit.provider.issuer, subject);
const linkOf = async (uid: string) => (await kit.store.read((tx) => tx.table(scimUserKind).find(uid)))?.identityUid;

async function login(): Promise<{ page: Seen; code: string; verifier: string }> {
  const { verifier, challenge } = newPkce();
  const agent = new Agent();
  const request = new URLSearchParams(codeRequest(challenge, { idp_id: provider }));
  const page = await agent.decide(await agent.get(`${kit.url}/oauth?${request}`));
  return { page, code: page.program?.get("code") ?? "", verifier };
}

function redeem({ code, verifier }: { readonly code: string; readonly verifier: string }) {
  const form = { grant_type: "authorization_code", client_id: "arbor-cli", redirect_uri: PROGRAM };
  return postForm(`${kit.url}/oauth/token`, { ...form, code, code_verifier: verifier });
}

/** What the program learns of a login: the subject of its token, or the text of the error. */
async function enter(): Promise<string> {
  const { page, code, verifier } = await login();
  if (code === "") {
    assert.equal(page.program?.get("error"), "access_denied");
    return (page.program?.get("error_description") ?? page.text).replace("Permission denied: ", "");
  }
  return String(claimsOf((await redeem({ code, verifier })).body.access_token).sub);
}

const exchange = (subjectToken: string, more = {}) =>
  postForm(`${kit.url}/oauth/token`, {
    ...{ grant_type: EXCHANGE, subject_token_type: "urn:ietf:params:oauth:token-type:id_token" },
    ...{ subject_token: subjectToken, identity_provider: provider, ...more },
  });

describe("a login through the provider of a directory", () => {
  it("lets nobody in whom the directory has not sent, and links whom it has", async () => {
    const subject = newAccount();
    assert.equal(await enter(), NOT_SENT);
    const { uid } = await send(subject);
    assert.equal(await enter(), uidOf(subject));
    assert.equal(await linkOf(uid), uidOf(subject));
    assert.equal(await enter(), uidOf(subject));
  });

  it("refuses whom the directory has deactivated, also where all others may register", async () => {
    for (const [lacksDefaultRole, scim] of [
      [true, true],
      [false, true],
      [false, false],
    ] as const) {
      await setProvider({ lacksDefaultRole, scim });
      const known = newAccount();
      const { uid } = await send(known);
      assert.equal(await enter(), uidOf(known));
      await deactivate(uid);
      assert.equal(await enter(), DEACTIVATED);
      const unknown = newAccount();
      await send(unknown, { active: false });
      assert.equal(await enter(), DEACTIVATED);
      const deleted = newAccount();
      const row = await send(deleted);
      await kit.store.write((tx) => deleteScimUser(tx, row.uid));
      assert.equal(await enter(), DEACTIVATED);
      const found = await kit.store.read((tx) => tx.table(identityKind).find(uidOf(unknown)));
      assert.equal(found, undefined);
      if (!lacksDefaultRole) assert.equal(await enterAs(newAccount()), true);
      // The directory lets the person in again.
      kit.provider.account = { subject: known };
      await deactivate(uid, true);
      assert.equal(await enter(), uidOf(known));
    }
  });

  async function enterAs(subject: string): Promise<boolean> {
    return (await enter()) === uidOf(subject);
  }

  it("goes by `oid` where the provider says so, as a text of the ID token", async () => {
    await setProvider({ oid: true });
    const oid = "5d9c2a3e-0000-4000-8000-000000000001";
    const { uid } = await send(oid);
    for (const claims of [{}, { oid: 17 }, { oid: [oid] }, { oid: oid.toUpperCase() }, { email: oid, name: oid }]) {
      newAccount(claims);
      assert.equal(await enter(), NOT_SENT, JSON.stringify(claims));
    }
    const subject = newAccount({ oid });
    assert.equal(await enter(), uidOf(subject));
    assert.equal(await linkOf(uid), uidOf(subject));
    newAccount({ oid });
    assert.match(await enter(), /^another account has signed in as this person/);
  });

  it("gives a code that is void once the person is deactivated", async () => {
    const subject = newAccount();
    const { uid } = await send(subject);
    const control = await login();
    assert.equal((await redeem(control)).status, 200);
    const inFlight = await login();
    await deactivate(uid);
    assert.equal((await redeem(inFlight)).body.error, "invalid_grant");
  });

  it("gives a code that is void also after the person is active again", async () => {
    const { uid } = await send(newAccount());
    const inFlight = await login();
    await deactivate(uid);
    await deactivate(uid, true);
    assert.equal((await redeem(inFlight)).body.error, "invalid_grant");
  });

  it("waits for consent, and the person is deactivated meanwhile", async () => {
    const { uid } = await send(newAccount());
    await enter();
    const { challenge } = newPkce();
    const agent = new Agent();
    const request = new URLSearchParams(codeRequest(challenge, { idp_id: provider }));
    const asked = await agent.get(`${kit.url}/oauth?${request}`);
    assert.equal(asked.status, 200);
    await deactivate(uid);
    const decided = await agent.decide(asked);
    assert.equal(decided.program?.get("error"), "access_denied");
    assert.equal(decided.program?.get("code"), null);
  });

  for (const meanwhile of ["approves", "has approved"] as const) {
    it(`gives a device nothing when a person who is deactivated ${meanwhile} it`, async () => {
      for (const isDeactivated of [false, true]) {
        kit.skewMs = 0;
        const subject = newAccount();
        const { uid } = await send(subject);
        const asked = await postForm(`${kit.url}/oauth/device_authorization`, { client_id: "robot" });
        const { device_code, user_code } = asked.body as Record<string, string>;
        const agent = new Agent();
        const page = await agent.get(`${kit.url}/activate`);
        const chosen = await agent.post(`${kit.url}/activate`, {
          ...readHiddenFields(page.text),
          user_code: String(user_code),
        });
        const approval = await agent.get(`${chosen.url}&idp_id=${provider}`);
        if (isDeactivated && meanwhile === "approves") await deactivate(uid);
        await agent.post(`${kit.url}/activate`, { ...readHiddenFields(approval.text), decision: "approve" });
        if (isDeactivated && meanwhile === "has approved") await deactivate(uid);
        const polled = await postForm(`${kit.url}/oauth/token`, {
          ...{ grant_type: DEVICE, client_id: "robot", device_code: String(device_code) },
        });
        if (isDeactivated) assert.equal(polled.body.error, "invalid_grant");
        else assert.equal(claimsOf(polled.body.access_token).sub, uidOf(subject));
      }
    });
  }
});

describe("an exchange of a token of the provider of a directory", () => {
  it("is refused while the person is deactivated", async () => {
    const subject = newAccount();
    const { uid } = await send(subject);
    const token = () => kit.provider.signIdToken({ sub: subject });
    assert.match(String((await exchange(await token())).body.error_description), /sign in with a browser first/);
    await enter();
    const { status, body } = await exchange(await token());
    assert.equal(status, 200, JSON.stringify(body));
    await deactivate(uid);
    const refused = await exchange(await token());
    assert.equal(refused.status, 400);
    assert.match(String(refused.body.error_description), /deactivated this account/);
  });

  it("is refused to somebody from before, whom the directory has sent as inactive and who is not linked", async () => {
    await setProvider({ lacksDefaultRole: false, scim: false });
    const subject = newAccount();
    await enter();
    const token = () => kit.provider.signIdToken({ sub: subject });
    assert.equal((await exchange(await token())).status, 200);
    await send(subject, { active: false });
    assert.match(String((await exchange(await token())).body.error_description), /deactivated this account/);
  });
});
