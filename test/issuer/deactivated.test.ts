// What a person whom a directory has deactivated can do with each credential that it has: nothing. Each refusal has a control.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { askToken } from "../registry/token-kit.js";
import { insertScimUser, setScimUserActive } from "../support/scim-people.js";
import { assertNoSession, assertOpen, ConsoleBrowser, makeCode } from "./console/browser.js";
import { ask } from "./sts/ask.js";
import { type ExchangeWorld, type Somebody, startExchangeWorld } from "./sts/exchange-world.js";
import { makeProvider, type ProviderKit } from "./sts/provider-people.js";

let world: ExchangeWorld;
let provider: ProviderKit;
let count = 0;
let subject: string;
let person: Somebody;
let row: string;

before(async () => {
  world = await startExchangeWorld();
  provider = await makeProvider(world);
});
after(() => world?.stop());
beforeEach(async () => {
  subject = `person-${count++}`;
  row = (await world.write((tx) => insertScimUser(tx, provider.uid, { externalId: subject }))).uid;
  const uid = await provider.signIn(subject);
  person = { uid, token: await world.harness.token(uid) };
});

type Way = "as the directory does" | "by the mark alone";
let way: Way;

// The mark alone revokes nothing: it must be read wherever a credential is.
const setActive = (active: boolean) =>
  world.write(async (tx) => {
    if (way === "as the directory does") return setScimUserActive(tx, row, active);
    await tx.table(identityKind).setDeactivated(person.uid, active ? null : Date.now());
  });
/** The status of a credential of before once the person is active again. */
const again = (status: number) => (way === "by the mark alone" ? status : 401);
const issuedLater = () => ({ iat: Math.floor(Date.now() / 1000) + 1 });
const exchange = () =>
  world.exchange({ identity_provider: provider.uid }, provider.token({ sub: subject, ...issuedLater() }));

for (const one of ["as the directory does", "by the mark alone"] as const) {
  describe(`a person who is deactivated ${one}`, () => {
    beforeEach(() => {
      way = one;
    });

    it("makes no call, and gets nothing by an exchange", async () => {
      const call = () => ask(world.url, `/iam/v2beta1/groups/${world.root}`, { bearer: person.token });
      assert.equal((await call()).status, 200);
      assert.equal((await exchange()).status, 200);
      await setActive(false);
      assert.equal((await call()).status, 401);
      const refused = await exchange();
      assert.equal(refused.status, 403);
      assert.match(refused.text, /the directory of your organisation has deactivated this account/);
      await setActive(true);
      assert.equal((await call()).status, again(200));
      const renewed = String((await exchange()).json.token);
      assert.equal((await ask(world.url, `/iam/v2beta1/groups/${world.root}`, { bearer: renewed })).status, 200);
    });

    it("gets no rights by the groups of its directory", async () => {
      await provider.map(`admins of ${subject}`, builtinRoleUid("owner"));
      const token = () => provider.token({ sub: subject, groups: [`admins of ${subject}`], ...issuedLater() });
      const mapped = await world.exchangeToken({ identity_provider: provider.uid }, token());
      const call = () => ask(world.url, `/iam/v2beta1/roleBindings?group=${world.root}`, { bearer: mapped });
      assert.equal((await call()).status, 200);
      await setActive(false);
      assert.equal((await call()).status, 401);
    });

    it("has no session of the console", async () => {
      const begin = async () => {
        const browser = new ConsoleBrowser(world.url);
        return { browser, code: await makeCode(world.harness, world.url, person.uid, Date.now()) };
      };
      const { browser, code } = await begin();
      assertOpen(await browser.signIn(code));
      assertOpen(await browser.renew());
      const inFlight = await begin();
      await setActive(false);
      assertNoSession(await browser.renew());
      assertNoSession(await inFlight.browser.signIn(inFlight.code));
      await setActive(true);
      assert.equal((await browser.renew()).status, again(200));
    });

    it("gets no token for the registry", async () => {
      await world.harness.bind(person.uid, "registry.pull", world.root);
      const request = (password: string) =>
        askToken(world.url, {
          ...{ user: "_token", password },
          parameters: [["scope", `repository:${world.root}/app:pull`]],
        });
      assert.equal((await request(person.token)).status, 200);
      await setActive(false);
      assert.equal((await request(person.token)).status, 401);
      const bare = await askToken(world.url, { user: "_token", password: person.token });
      assert.equal(bare.status, 401, "a client logs in without a scope");
    });
  });
}
