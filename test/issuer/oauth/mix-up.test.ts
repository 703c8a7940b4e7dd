// One provider must not get what another one says (OAuth mix-up, RFC 9700, section 4.4), also where providers do not
// say who they are.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { personUid } from "../../../src/kernel/ids.js";
import { Agent, alice, claimsOf, codeRequest, type LoginKit, newPkce, startLogin } from "./login-kit.js";
import { type Attacker, startAttacker } from "./mix-up-kit.js";

for (const stripIss of [false, true]) {
  for (const several of [false, true]) {
    const providers = several ? "one of several login providers" : "the only login provider";
    describe(`${providers}, ${stripIss ? "without iss" : "as it is"}`, () => {
      let kit: LoginKit;
      let attacker: Attacker;
      let mallory: string;

      before(async () => {
        attacker = await startAttacker();
        kit = await startLogin(
          ({ loginProviders }) => ({
            loginProviders: loginProviders.flatMap((one) => (several ? [one, { ...one, name: "other" }] : [one])),
          }),
          { stripIss, trustedIssuers: [attacker.issuer] },
        );
        mallory = await attacker.join(kit);
      });
      beforeEach(() => {
        kit.provider.account = alice;
        attacker.redirectUri = undefined;
      });
      after(async () => {
        await kit?.stop();
        await attacker?.stop();
      });

      const login = async (more: Readonly<Record<string, string>>) => {
        const agent = new Agent();
        const query = new URLSearchParams(codeRequest(newPkce().challenge, more));
        return agent.decide(await agent.get(`${kit.url}/oauth?${query}`));
      };

      it("signs people in", async () => {
        const { program } = await login({ connection: "test" });
        assert.ok(program?.get("code"), String(program));
      });

      it("does not give its code to another provider", async () => {
        const before = attacker.stolen.length;
        const victim = await login({ idp_id: mallory });
        const requestCount = kit.provider.requests.filter((path) => path === "/auth").length;
        assert.ok(requestCount > 1, "the victim was at the honest provider");
        const { accessToken } = await attacker.redeem(kit);
        const alicesUid = personUid(kit.provider.issuer, "alice");
        assert.notEqual(accessToken && claimsOf(accessToken).sub, alicesUid, "the attacker became the victim");
        assert.equal(attacker.stolen.length, before, `stolen: ${attacker.stolen.at(-1)}`);
        assert.equal(victim.program?.get("error"), "access_denied");
        assert.ok(kit.problems.some((problem) => /came to another provider's redirect URI/.test(problem)));
      });

      // With one redirect URI for all providers the same attack works, so the separate redirect URIs are what
      // prevents it.
      it("would give it to the attacker if it could be sent to her redirect URI", { skip: !stripIss }, async () => {
        const before = attacker.stolen.length;
        attacker.redirectUri = `${kit.url}/oauth/callback/${mallory}`;
        kit.provider.allowRedirect(attacker.redirectUri);
        await login({ idp_id: mallory });
        assert.equal(attacker.stolen.length, before + 1);
        const { accessToken } = await attacker.redeem(kit);
        assert.notEqual(claimsOf(accessToken ?? "e30.e30.").sub, personUid(kit.provider.issuer, "alice"));
      });
    });
  }
}
