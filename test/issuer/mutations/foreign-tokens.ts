// Tokens of other issuers as they are presented to the exchange: the exchanger on
// the store of a running service, with identities that they may assume.
import { Code } from "@connectrpc/connect";
import { ApiError } from "../../../src/kernel/errors.js";
import type { Random } from "../../support/openapi/random.js";
import { requestH1 } from "../../support/requests.js";
import { audienceEdits, issuerEdits, textEdits } from "../strangers/texts.js";
import { strangeTokens, tokensBeyondHeaders } from "../strangers/tokens.js";
import { MAX_LIFE_S } from "../upstream/foreign-issuer.js";
import { asGood, asGoodEcdsa, asGoodForeign } from "./as-good.js";
import { ageS, claimMutations, editBy, timeMutations, type WrongValue, wrongText } from "./claim-mutations.js";
import { exchangerOf } from "./exchanger.js";
import { type GoodToken, goodToken, type MutationClass, signParts } from "./good-token.js";
import { headerMutations } from "./header-mutations.js";
import { payloadMutations } from "./payload-mutations.js";
import { foreignRules } from "./reference.js";
import { signatureMutations } from "./signature-mutations.js";
import { strangerMutations } from "./stranger-mutations.js";
import { textMutations } from "./text-mutations.js";
import type { Broken, Candidate, Verifier } from "./verifier.js";
import { type Assumable, STRANGE_AUDIENCE, type World } from "./world.js";
import { editText, otherType } from "./wrong-values.js";

const REJECTED: readonly Code[] = [Code.Unauthenticated, Code.PermissionDenied];

/** The verifier of foreign tokens. */
export function foreignTokens(world: World, broken: Broken = {}): Verifier {
  const { url, names, trap } = world;
  const { installation } = world.harness.app;
  const exchanger = exchangerOf({
    installation,
    url,
    names: [...names, ...(broken.audience ? [STRANGE_AUDIENCE] : [])],
    trustedOrigins: [new URL(world.issuer.issuer).origin],
    verify: broken.key ? (token) => token : undefined,
  });
  const rulesOf = new Map(world.assumable.map((identity) => [identity, foreignRules(identity)]));

  async function accepts({ uid }: Assumable, text: string): Promise<boolean> {
    try {
      const request = { aud: [url], cap: [], scopes: [], identity: uid, identityProvider: "" };
      const { identityUid } = await exchanger.exchange(request, text, "192.0.2.1");
      if (identityUid !== uid) throw new Error(`the token is for ${identityUid}`);
      return true;
    } catch (error) {
      if (error instanceof ApiError && REJECTED.includes(error.code)) return false;
      // The key may be new, and too many such tokens came for the issuer to be asked again.
      if (error instanceof ApiError && error.rejection === "token_unknown_key") return false;
      throw error;
    }
  }

  async function acceptsOverHttp({ uid }: Assumable, text: string): Promise<boolean> {
    const path = `/sts/exchange?aud=${encodeURIComponent(url)}&identity=${encodeURIComponent(uid)}`;
    const headers = { authorization: `Bearer ${text}` };
    const { status, text: body } = await requestH1(Number(new URL(url).port), { path, headers });
    if (status === 200) return /"token":"[\w-]+\.[\w-]+\.[\w-]+"/.test(body);
    if (status === 401 || status === 403 || (status === 431 && text.length > 10_000)) return false;
    if (status === 503 && body.includes("the keys of the token's issuer cannot be obtained")) return false;
    throw new Error(`status ${status}`);
  }

  const all = [...strangeTokens(trap.url), ...tokensBeyondHeaders];
  const rejected = all.filter(({ upstream }) => upstream !== undefined);
  return {
    name: "foreign token",
    classes: [
      ...textMutations,
      strangerMutations(rejected),
      ...headerMutations,
      ...payloadMutations,
      ...signatureMutations,
      ...claimMutations(wrongClaims(world)),
      timeMutations({ leewayS: 60, maxLifeS: MAX_LIFE_S }),
      furtherClaims,
    ],
    asGood: [...asGood, ...asGoodEcdsa, ...asGoodForeign],
    candidate(random): Candidate {
      const identity = random.pick(world.assumable);
      const rules = rulesOf.get(identity) ?? foreignRules(identity);
      const good = goodOf(identity, installation.clock(), random);
      return {
        good,
        rules,
        accepts: (text) => accepts(identity, text),
        acceptsOverHttp: (text) => acceptsOverHttp(identity, text),
      };
    },
  };
}

function goodOf({ issuer, kid, key, claims }: Assumable, nowMs: number, random: Random): GoodToken {
  const iat = Math.floor(nowMs / 1000) - ageS(random);
  const lifeS = random.pick([3_600, 3_600, 8 * 3_600, MAX_LIFE_S]);
  const header = { alg: "ES256", kid, typ: random.pick(["JWT", "at+jwt"]) };
  return goodToken(header, { iss: issuer, ...claims(random), iat, exp: iat + lifeS }, key);
}

function wrongClaims({ url, issuer: { issuer }, assumable, trap }: World): Record<string, WrongValue> {
  const issuers = [url, `${url}/`, trap.url, "https://token.actions.githubusercontent.com", "accounts.google.com"];
  return {
    iss: wrongText(
      "iss",
      (_, random) => random.pick(issuers),
      (_, random) => random.pick(assumable).issuer,
      (right, random) => editBy(issuerEdits, right, random),
      () => new URL(issuer).origin,
    ),
    sub: wrongText(
      "sub",
      (_, random) => String(random.pick(assumable).claims(random).sub),
      (right, random) => editBy(textEdits, right, random),
      () => "repo:octo/.*:environment:(prod|test)",
    ),
    aud: wrongText(
      "aud",
      () => STRANGE_AUDIENCE,
      () => [STRANGE_AUDIENCE, "https://example.org"],
      (_, random) => random.pick(assumable).claims(random).aud,
      (_, random) => editBy(audienceEdits, url, random),
      (right, random) => [right, random.pick<unknown>([7, null, [right], {}])],
    ),
  };
}

// What an identity may ask for besides issuer, subject and audience.
const FURTHER = ["repository", "verified", "owner", "ref"];

const furtherClaims: MutationClass = {
  name: "claim, further",
  weight: 7,
  oneClaim: true,
  mutate(good, random) {
    const claimNames = FURTHER.filter((name) => name in good.claims);
    if (claimNames.length === 0) return undefined;
    const name = random.pick(claimNames);
    const right = good.claims[name];
    const value = random.pick<() => unknown>([
      () => otherType(right, random),
      () => editText(String(right), random),
      () => random.pick(["octo", "octo/app2", "refs/heads/main2", "refs/tags/main", "yes", "True", ".*"]),
    ])();
    return signParts(good.header, { ...good.claims, [name]: value }, good.key);
  },
};
