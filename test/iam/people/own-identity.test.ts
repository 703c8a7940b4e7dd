// What people read and change of their own identity, and what a login refreshes.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { parseEmail, parseName } from "../../../src/iam/people/registration.js";
import { personUid } from "../../../src/kernel/ids.js";
import { invite, register } from "../../issuer/auth-world.js";
import { ask } from "../../issuer/sts/ask.js";
import { type ExchangeWorld, startExchangeWorld } from "../../issuer/sts/exchange-world.js";

let world: ExchangeWorld;
before(async () => {
  world = await startExchangeWorld();
});
after(() => world?.stop());

const claims = (sub: string, more: object = {}) => ({
  ...{ sub, email: `${sub}@example.org`, email_verified: true, name: "Ada Lovelace" },
  ...more,
});
const path = (uid: string) => `/iam/v2beta1/identities/${uid}`;
const read = (uid: string, bearer: string) => ask(world.url, path(uid), { bearer });
const patch = (uid: string, bearer: string, json: object, mask = "name") =>
  ask(world.url, `${path(uid)}?updateMask=${mask}`, { method: "PATCH", bearer, json });

/** Signs somebody in, who is registered by an invite into the organisation. */
async function join(sub: string) {
  const { code } = await invite(world);
  const joined = await register(world, world.idToken(claims(sub)), { code });
  assert.equal(joined.status, 200, joined.text);
  const token = await world.exchangeToken({}, world.idToken(claims(sub)));
  return { uid: personUid(world.people.issuer, sub), token };
}
const login = (sub: string, more: object) => register(world, world.idToken(claims(sub, more)), {});
async function nameInBindings(uid: string): Promise<unknown> {
  const query = `?identity=${uid}`;
  const { json } = await ask(world.url, `/iam/v2beta1/roleBindings${query}`, { bearer: world.owner.token });
  const [binding] = json.roleBindings as { identity: { name: string; email: string } }[];
  return [binding?.identity.name, binding?.identity.email];
}

describe("a person", () => {
  it("reads and renames itself, in any letters, and others see the name", async () => {
    const { uid, token } = await join("ada");
    const own = await read(uid, token);
    assert.deepEqual([own.status, own.json.name, own.json.email], [200, "Ada Lovelace", "ada@example.org"]);
    const renamed = await patch(uid, token, { name: "Ада 愛" });
    assert.deepEqual([renamed.status, renamed.json.name], [200, "Ада 愛"], renamed.text);
    assert.deepEqual(await nameInBindings(uid), ["Ада 愛", "ada@example.org"]);
    const [row] = await world.harness.app.installation.store.read((tx) => tx.audit.listNewest(1, uid));
    assert.deepEqual([row?.subjectUid, row?.actorUid], [uid, uid]);
  });

  it("gets the name and the address of the provider at each login, unless it has chosen a name", async () => {
    const { uid, token } = await join("grace");
    await login("grace", { name: "Grace Hopper", email: "hopper@example.org" });
    assert.deepEqual(await nameInBindings(uid), ["Grace Hopper", "hopper@example.org"]);
    await login("grace", { name: undefined });
    assert.deepEqual(await nameInBindings(uid), ["Grace Hopper", "grace@example.org"], "no name states nothing");
    await patch(uid, token, { name: "Amazing Grace" });
    const metadata = { company: "Navy" };
    const update = "/iam/v2beta1/identities:updateIdentityMetadata";
    const sent = await ask(world.url, update, { method: "PATCH", bearer: token, json: { identityMetadata: metadata } });
    assert.deepEqual([sent.status, sent.json.name, sent.json.company], [200, "Amazing Grace", "Navy"], sent.text);
    await login("grace", { name: "Grace Brewster" });
    assert.deepEqual(await nameInBindings(uid), ["Amazing Grace", "grace@example.org"]);
    await patch(uid, token, { name: "" });
    await login("grace", { name: "Grace Brewster" });
    assert.deepEqual(await nameInBindings(uid), ["Grace Brewster", "grace@example.org"]);
  });

  it("changes nothing else of itself, and not how it signs in", async () => {
    const { uid, token } = await join("edith");
    const claimMatch = { issuer: "https://evil.example", subject: "x" };
    for (const [field, json] of Object.entries({
      description: { description: "owner" },
      company: { company: "x" },
      claimMatch: { claimMatch },
      awsIdentity: { awsIdentity: { awsAccount: "123456789012", arn: "a", userId: "u" } },
    })) {
      const { status, text } = await patch(uid, token, json, field);
      assert.equal(status, 400, text);
      assert.match(text, /people change their name alone/);
    }
    for (const name of ["a\nb", " a", "x".repeat(256), "a\u0000"]) {
      assert.equal((await patch(uid, token, { name })).status, 400, JSON.stringify(name));
    }
    const { json } = await read(uid, token);
    assert.deepEqual([json.name, json.claimMatch], ["Ada Lovelace", undefined]);
    // The email address is output alone, so it is ignored.
    await patch(uid, token, { email: "root@example.org" }, "email");
    assert.equal((await read(uid, token)).json.email, "edith@example.org");
  });

  it("reads and renames nobody else, nor does anybody with a limited token", async () => {
    const [one, two] = [await join("one"), await join("two")];
    for (const bearer of [two.token, world.owner.token]) {
      assert.equal((await read(one.uid, bearer)).status, 403);
      assert.equal((await patch(one.uid, bearer, { name: "mallory" })).status, 403);
    }
    const limited = await world.exchangeToken({ scope: world.root }, world.idToken(claims("one")));
    assert.equal((await read(one.uid, limited)).status, 403);
    assert.equal((await patch(one.uid, limited, { name: "mallory" })).status, 403);
    assert.equal((await ask(world.url, path(one.uid), { method: "DELETE", bearer: one.token })).status, 403);
  });

  it("has a name and an address without what databases reject", () => {
    const odd = { name: `  Ada\u0000\n\ud800${"é".repeat(300)}`, email: "odd\u0000@example.org", email_verified: true };
    const name = parseName({ claims: odd });
    assert.equal(name, `Ada${"é".repeat(252)}`);
    const asserted = { issuer: world.people.issuer, subject: "odd", claims: odd };
    assert.deepEqual(parseEmail(asserted), { email: "", emailUnverified: "" });
    assert.equal(parseName({ claims: { name: ["Ada"] } }), "");
  });
});
