// A revocation at one node, and what another node accepts: nothing that it revoked, from the next call on. Nothing is waited
// for or repeated.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { mayAccept } from "../../src/iam/people/accept-invite.js";
import { createTokens } from "../../src/issuer/tokens.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { groupInviteKind } from "../../src/store/iam/group-invites.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { askToken } from "../registry/token-kit.js";
import type { Harness } from "../support/harness.js";
import { ask, queryOf } from "./sts/ask.js";

const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as { jti: string; iat: number };

/**
 * Declares the tests.
 *
 * @param start starts two nodes of one installation, whose transactions may wait for one another
 */
export function revokedNodesSuite(name: string, start: () => Promise<readonly [Harness, Harness]>): void {
  describe(`${name}: the first call at a node after a revocation at another`, () => {
    let here: Harness;
    let there: Harness;
    let group: string;
    let owner: string;
    before(async () => {
      [here, there] = await start();
      ({ group, token: owner } = await here.organisation("acme.example"));
    });
    after(() => Promise.all([here, there].map((node) => node?.stop())));

    const audience = "http://arbor.example";
    const issuerOf = ({ app }: Harness) =>
      createTokens({ keys: app.installation.keys, ids: randomIds, issuer: audience });

    async function revoke(uid: string, body: object = {}): Promise<void> {
      const path = `/tokens/v1/identities/${uid}:revokeTokens`;
      const { status, text } = await ask(here.url, path, { method: "POST", bearer: owner, json: body });
      assert.equal(status, 200, text);
    }

    /** How the other node answers calls of every kind of authorization. */
    async function callsBy(token: string): Promise<Record<string, number>> {
      const call = async (path: string, json?: object) =>
        (await ask(there.url, path, { bearer: token, ...(json && { method: "POST", json }) })).status;
      return {
        "a read at a group": await call(`/iam/v2beta1/groups/${group}`),
        "a list of everything": await call("/iam/v2beta1/groups"),
        "a write": await call(`/iam/v2beta1/groups/${group}`, { name: randomIds.newId() }),
        "a token of the registry": (await askToken(there.url, { user: "_token", password: token })).status,
      };
    }

    async function caller(): Promise<{ uid: string; token: string }> {
      const made = await here.identity({}, group);
      await here.bind(made.uid, "owner", group);
      return made;
    }

    const all = (status: number, calls: Record<string, number>) =>
      assert.deepEqual(new Set(Object.values(calls)), new Set([status]), JSON.stringify(calls));

    test("one token is refused, and the identity's others are not", async () => {
      const { uid, token } = await caller();
      const other = await here.token(uid);
      // Both nodes have verified it.
      all(200, await callsBy(token));
      await revoke(uid, { tokenId: claimsOf(token).jti });
      all(401, await callsBy(token));
      all(200, await callsBy(other));
    });

    test("all tokens and sessions are refused", async () => {
      const { uid, token } = await caller();
      const session = await here.app.installation.store.write((tx) =>
        issuerOf(here).createRefreshToken(tx, uid, { audience }, Date.now()),
      );
      all(200, await callsBy(token));
      await revoke(uid);
      all(401, await callsBy(token));
      const path = `/sts/exchange_refresh_token?${queryOf({ aud: audience })}`;
      assert.equal((await ask(there.url, path, { method: "POST", bearer: session })).status, 401);
      all(200, await callsBy(await there.token(uid)));
    });

    test("a node whose clock is ahead or behind decides the same", async () => {
      for (const skewMs of [20_000, -20_000]) {
        const { uid } = await caller();
        there.skewMs = skewMs;
        const before = await there.token(uid);
        all(200, await callsBy(before));
        await revoke(uid);
        all(401, await callsBy(before));
        all(200, await callsBy(await there.token(uid)));
        there.skewMs = 0;
      }
    });

    test("a node whose clock is ahead neither makes invites that outlive a revocation, nor revokes what is issued later", async () => {
      const ahead = 600_000;
      const { uid } = await caller();
      const invite = async (node: Harness) => {
        const json = { roleUid: builtinRoleUid("viewer"), ttl: "3600s" };
        const bearer = await node.token(uid);
        const path = `/iam/v2beta1/groupInvites/${group}`;
        const made = await ask(node.url, path, { method: "POST", bearer, json });
        assert.equal(made.status, 200, made.text);
        return String(made.json.uid);
      };
      const isOpen = (invited: string) =>
        here.app.installation.store.read(async (tx) => {
          const row = await tx.table(groupInviteKind).find(invited);
          assert.ok(row);
          return mayAccept(tx, row, { uid: "a".repeat(40), email: "", providerUid: null }, Date.now());
        });
      there.skewMs = ahead;
      const before = [await invite(here), await invite(there)];
      assert.deepEqual(await Promise.all(before.map(isOpen)), [true, true]);
      await revoke(uid);
      assert.deepEqual(await Promise.all(before.map(isOpen)), [false, false]);
      const after = [await invite(here), await invite(there)];
      assert.deepEqual(await Promise.all(after.map(isOpen)), [true, true]);
      const path = `/tokens/v1/identities/${uid}:revokeTokens`;
      const revoked = await ask(there.url, path, { method: "POST", bearer: await there.token(uid), json: {} });
      there.skewMs = 0;
      assert.equal(revoked.status, 200, revoked.text);
      const notBeforeMs = Date.parse(String(revoked.json.notBefore));
      assert.ok(notBeforeMs < Date.now() + ahead / 2, "tokens of other issuers are accepted soon");
      assert.deepEqual(await Promise.all(after.map(isOpen)), [false, false]);
      assert.equal(await isOpen(await invite(here)), true);
    });

    test("what is issued meanwhile from what was read before is refused, however late the clock is", async () => {
      const { uid } = await caller();
      const issueDuring = (revocation: () => Promise<void>) =>
        there.app.installation.store.read(async (tx) => {
          await tx.table(identityKind).find(uid);
          await revocation();
          return issuerOf(there).issue(tx, uid, { audience }, Date.now() + 5_000);
        });
      const unsigned = await issueDuring(() => revoke(uid));
      const { token } = await issuerOf(there).sign(unsigned);
      const { notBefore = 0 } =
        (await here.app.installation.store.read((tx) => tx.table(identityKind).find(uid))) ?? {};
      assert.ok(claimsOf(token).iat >= notBefore, "control: its time alone would let it pass");
      all(401, await callsBy(token));
      const next = await issuerOf(there).sign(await issueDuring(async () => {}));
      all(200, await callsBy(next.token));
    });

    test("a login that is stored meanwhile is refused as well", async () => {
      const { uid } = await caller();
      let runs = 0;
      let session = "";
      const { store } = there.app.installation;
      const login = store.write(async (tx) => {
        runs++;
        session = await issuerOf(there).createRefreshToken(tx, uid, { audience }, Date.now() + 5_000);
        if (runs === 1) await revoke(uid);
      });
      await login;
      const path = `/sts/exchange_refresh_token?${queryOf({ aud: audience })}`;
      const { status } = await ask(there.url, path, { method: "POST", bearer: session });
      // Serializable transactions: the login is either from before the revocation, and deleted, or runs again after it.
      assert.deepEqual([runs, status], runs === 1 ? [1, 401] : [2, 200]);
    });
  });
}
