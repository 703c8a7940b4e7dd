// How the client secret reaches the token endpoint of a provider: in the header, form-encoded as RFC 6749, section 2.3.1
// says, or in the body. The provider of these tests accepts one way alone, and its secret has characters that differ when
// they are encoded.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { IdentityProvider_OIDC_TokenEndpointAuthMethod as Method } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { oidcFromJson, oidcToJson } from "../../../src/iam/identity-providers/identity-provider.js";
import type { SecretMethod } from "../../../src/issuer/oauth/provider-selection.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { Agent, type LoginKit, PROGRAM, startLogin } from "./login-kit.js";

const [basic, post] = ["client_secret_basic", "client_secret_post"] as const;
const both = [basic, post];

interface Case {
  readonly accepts: SecretMethod;
  readonly announced: readonly SecretMethod[];
  /** The values of the setting with which a login works. */
  readonly works: readonly Method[];
  /** Whether it works for a login provider of the operator, who has no such setting. */
  readonly worksForOperator: boolean;
}

const cases: readonly Case[] = [
  {
    accepts: basic,
    announced: [basic],
    works: [Method.UNSPECIFIED, Method.CLIENT_SECRET_BASIC],
    worksForOperator: true,
  },
  { accepts: post, announced: [post], works: [Method.UNSPECIFIED, Method.CLIENT_SECRET_POST], worksForOperator: true },
  { accepts: basic, announced: both, works: [Method.CLIENT_SECRET_BASIC], worksForOperator: true },
  {
    accepts: post,
    announced: both,
    works: [Method.UNSPECIFIED, Method.CLIENT_SECRET_POST],
    worksForOperator: false,
  },
];

for (const { accepts, announced, works, worksForOperator } of cases) {
  describe(`a provider that accepts ${accepts} and announces ${announced.join(", ")}`, () => {
    let kit: LoginKit;
    let provider = "";
    before(async () => {
      kit = await startLogin(undefined, { secretMethod: accepts, announced });
      ({ provider } = await kit.organisation("staff.example"));
    });
    after(() => kit?.stop());

    async function login(more: Readonly<Record<string, string>>) {
      const query = new URLSearchParams({ exit: "redirect", redirect: `${PROGRAM}?token=true`, ...more });
      const agent = new Agent();
      const { program } = await agent.decide(await agent.get(`${kit.url}/oauth?${query}`));
      return program;
    }

    async function loginWith(method: Method) {
      await kit.store.write(async (tx) => {
        const row = await tx.table(identityProviderKind).find(provider);
        assert.ok(row);
        const oidc = oidcToJson({ ...oidcFromJson(row.oidc), tokenEndpointAuthMethod: method });
        await tx.table(identityProviderKind).replace({ ...row, oidc });
      });
      return login({ idp_id: provider });
    }

    for (const method of [Method.UNSPECIFIED, Method.CLIENT_SECRET_BASIC, Method.CLIENT_SECRET_POST]) {
      const isWorking = works.includes(method);
      it(`${isWorking ? "signs in" : "is rejected"} with ${Method[method]}`, async () => {
        const program = await loginWith(method);
        assert.equal(program?.has("token"), isWorking, String(program));
        if (isWorking) return;
        assert.equal(program?.get("error"), "server_error");
        assert.match(program?.get("error_description") ?? "", /rejected the client id or secret of this service/);
        assert.match(kit.problems.at(-1) ?? "", /invalid_client|OAUTH_WWW_AUTHENTICATE_CHALLENGE/);
      });
    }

    it(`${worksForOperator ? "signs in" : "is rejected"} as a login provider of the operator`, async () => {
      assert.equal((await login({}))?.has("token"), worksForOperator);
    });
  });
}
