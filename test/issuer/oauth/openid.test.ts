// ID tokens of programs that sign people in with a code and ask for `openid`, as an independent client verifies them.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import * as client from "openid-client";
import { personUid } from "../../../src/kernel/ids.js";
import { Agent, claimsOf, PROGRAM, postForm } from "./login-kit.js";
import { exchange, type LoginWorld, startLoginWorld } from "./login-world.js";

let world: LoginWorld;
let issuer: string;
let alicesUid: string;

before(async () => {
  world = await startLoginWorld();
  issuer = world.harness.url;
  alicesUid = personUid(world.provider.issuer, "alice");
});
after(() => world?.stop());

/** Signs Alice in as an OpenID Connect client does; it verifies the ID token. */
async function signIn(scope: string, { clientId = "desktop", expectedNonce = true } = {}) {
  const execute = [client.allowInsecureRequests, client.enableNonRepudiationChecks];
  const configuration = await client.discovery(new URL(issuer), clientId, {}, client.None(), { execute });
  const [verifier, nonce, state] = [client.randomPKCECodeVerifier(), client.randomNonce(), client.randomState()];
  const url = client.buildAuthorizationUrl(configuration, {
    redirect_uri: PROGRAM,
    scope,
    nonce,
    state,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  });
  const agent = new Agent();
  const { program } = await agent.decide(await agent.get(url.href));
  assert.ok(program?.get("code"), String(program));
  return client.authorizationCodeGrant(configuration, new URL(`${PROGRAM}?${program}`), {
    pkceCodeVerifier: verifier,
    expectedState: state,
    ...(expectedNonce && { expectedNonce: nonce, idTokenExpected: true }),
  });
}

describe("a program that signs people in with a code", () => {
  it("gets an ID token where it asks for openid, with its nonce", async () => {
    for (const scope of ["openid", "openid email profile offline_access"]) {
      const response = await signIn(scope);
      const claims = response.claims();
      assert.deepEqual([claims?.iss, claims?.sub, claims?.aud], [issuer, alicesUid, "desktop"]);
      assert.equal(claims?.email, "alice@example.org");
      assert.equal("refresh_token" in response, scope.includes("offline_access"));
    }
  });

  it("gets none where it does not ask", async () => {
    const response = await signIn("email", { expectedNonce: false });
    assert.ok(response.access_token);
    assert.equal("id_token" in response, false);
  });

  it("cannot exchange it, nor use it as an API token", async () => {
    const { id_token: idToken, access_token: token } = await signIn("openid");
    assert.equal((await exchange(issuer, idToken)).status, 401);
    const exchanged = await postForm(`${issuer}/oauth/token`, {
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      subject_token: String(idToken),
    });
    assert.deepEqual([exchanged.status, exchanged.body.error], [400, "invalid_request"]);
    const useToken = (bearer: unknown) =>
      fetch(`${issuer}/iam/v2beta1/groups`, { headers: { authorization: `Bearer ${bearer}` } });
    assert.equal((await useToken(idToken)).status, 401);
    assert.equal((await useToken(token)).status, 200, "the control");
    assert.equal(claimsOf(token).sub, alicesUid);
  });

  it("gets none for an audience of this service or of its events", async () => {
    for (const [clientId, scope, isRejected] of [
      ["customer", "openid", true],
      ["customer", "email", false],
    ] as const) {
      const query = new URLSearchParams({
        response_type: "code",
        client_id: clientId,
        redirect_uri: PROGRAM,
        scope,
        code_challenge: "A".repeat(43),
        code_challenge_method: "S256",
      });
      const agent = new Agent();
      const { program } = await agent.decide(await agent.get(`${issuer}/oauth?${query}`));
      assert.equal(program?.get("error") === "invalid_request", isRejected, String(program));
    }
  });
});
