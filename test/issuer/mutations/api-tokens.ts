// API tokens as they are presented to the API: the authenticator with the key
// ring of a running service, then the look at the identity that follows.
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { GetGroupRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { randomIds } from "../../../src/kernel/ids.js";
import type { TokenAlgorithm } from "../../../src/kernel/jws.js";
import { createAuthenticate } from "../../../src/pipeline/auth/authenticate.js";
import { authorize } from "../../../src/pipeline/auth/authorize.js";
import type { Random } from "../../support/openapi/random.js";
import { requestH1 } from "../../support/requests.js";
import { audienceEdits, issuerEdits } from "../strangers/texts.js";
import { strangeTokens } from "../strangers/tokens.js";
import { asGood, asGoodEcdsa } from "./as-good.js";
import { ageS, claimMutations, editBy, timeMutations, type WrongValue, wrongText } from "./claim-mutations.js";
import { goodToken } from "./good-token.js";
import { headerMutations, otherOwnKey } from "./header-mutations.js";
import { payloadMutations } from "./payload-mutations.js";
import { apiRules, type Claims } from "./reference.js";
import { signatureMutations } from "./signature-mutations.js";
import { strangerMutations } from "./stranger-mutations.js";
import { textMutations } from "./text-mutations.js";
import type { Broken, Verifier } from "./verifier.js";
import { STRANGE_AUDIENCE, type World } from "./world.js";

const HOUR_S = 3_600;
const FULL = "f".repeat(64);

/** The verifier of API tokens, for those of one algorithm. */
export function apiTokens(world: World, alg: TokenAlgorithm, broken: Broken = {}): Verifier {
  const { url, names, group, owner } = world;
  const { store, keys, clock } = world.harness.app.installation;
  const { kid, key } = world.tokenKeys[alg];
  const audiences = [url, ...names, ...(broken.audience ? [STRANGE_AUDIENCE] : [])];
  const verifying = broken.key ? () => keys.findVerifyingKey(kid) : keys.findVerifyingKey;
  const authenticate = createAuthenticate({
    keys: { findVerifyingKey: verifying, refresh: keys.refresh },
    policy: { issuer: url, audiences },
    clock,
  });
  // Any URL of the service, with or without a trailing slash.
  const audience = new RegExp(`^http://(127\\.0\\.0\\.1|localhost|\\[::1\\]):${new URL(url).port}/?$`);
  const identities = new Set([owner, ...world.assumable.map(({ uid }) => uid)]);
  const rules = apiRules({ alg, kid, key, issuer: url, audience, identities });
  const request = create(GetGroupRequestSchema, { uid: group });

  async function accepts(text: string): Promise<boolean> {
    try {
      const given = await authenticate(`Bearer ${text}`);
      const principal = broken.key ? { ...given, keyId: kid } : given;
      await store.read((tx) => authorize({ capabilities: [] }, principal, request, tx));
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.code === Code.Unauthenticated) return false;
      throw error;
    }
  }

  async function acceptsOverHttp(text: string): Promise<boolean> {
    const headers = { authorization: `Bearer ${text}` };
    const { status } = await requestH1(Number(new URL(url).port), { path: `/iam/v2beta1/groups/${group}`, headers });
    if (status === 200 || status === 401 || (status === 431 && text.length > 10_000)) return status === 200;
    throw new Error(`status ${status}`);
  }

  return {
    name: `API token, ${alg}`,
    classes: [
      ...textMutations,
      strangerMutations(strangeTokens(world.trap.url).filter(({ isApiToken }) => !isApiToken)),
      ...headerMutations,
      otherOwnKey(world.tokenKeys[alg === "RS256" ? "ES256" : "RS256"]),
      ...payloadMutations,
      ...signatureMutations,
      ...claimMutations(wrongClaims(world)),
      timeMutations({ leewayS: 30, maxLifeS: HOUR_S }),
    ],
    asGood: alg === "ES256" ? [...asGood, ...asGoodEcdsa] : asGood,
    candidate(random) {
      const header = { alg, kid, typ: "at+jwt" };
      const good = goodToken(header, claimsOf(world, clock(), random), key);
      return { good, rules, accepts, acceptsOverHttp };
    },
  };
}

function claimsOf({ url, group, owner, names }: World, nowMs: number, random: Random): Claims {
  const iat = Math.floor(nowMs / 1000) - ageS(random);
  return {
    ...(random.chance(0.3) && { act: { iss: "https://example.org", sub: "x" }, cap: { [group]: "AAAAAAAAAAE" } }),
    iss: url,
    sub: owner,
    aud: random.pick<unknown>([url, url, `${url}/`, [url], ["https://example.org", ...names]]),
    iat,
    exp: iat + HOUR_S,
    jti: randomIds.newId(),
    ...(random.chance(0.4) && { lim: random.pick([{ cap: FULL }, { scope: [group] }, { cap: FULL, scope: [group] }]) }),
    ...(random.chance(0.2) && { map: [`${group}/${random.text("0123456789abcdef", 16, 16)}`] }),
  };
}

function wrongClaims({ url, group, assumable }: World): Record<string, WrongValue> {
  const hex = "0123456789abcdef";
  const uid = assumable[0]?.uid ?? "";
  return {
    iss: wrongText(
      "iss",
      (right, random) => editBy(issuerEdits, right, random),
      (right) => right.replace("127.0.0.1", "localhost"),
    ),
    aud: wrongText(
      "aud",
      () => STRANGE_AUDIENCE,
      (_, random) => editBy(audienceEdits, url, random),
      () => [STRANGE_AUDIENCE, "https://example.org"],
      (_, random) => Array.from({ length: 9 + random.int(20) }, (_, i) => (i === 0 ? url : `https://${i}.example.org`)),
      () => url.replace("http://", ""),
    ),
    sub: wrongText(
      "sub",
      (_, random) => random.text(hex, 40, 40),
      (right, random) => `${right}/${random.text(hex, 16, 16)}`,
      () => group,
      () => uid.toUpperCase(),
      () => uid.replace("/", "%2f"),
      (right) => `${right}/`,
    ),
    jti: (_, random) =>
      random.pick<unknown>(["", "j".repeat(129 + random.int(500)), random.int(10), null, ["j"], { j: 1 }]),
    lim: (_, random) => wrongLimit(group, random),
    map: (_, random) =>
      random.pick<unknown>([
        [editUid(group, random)],
        [group, random.pick<unknown>([null, 7, [group], "", "*", "/"])],
        Array.from({ length: 33 + random.int(40) }, () => group),
        group,
        { 0: group, length: 1 },
        [[group]],
      ]),
  };
}

// A limit that is not understood must not become none.
function wrongLimit(group: string, random: Random): unknown {
  const cap = random.pick<unknown>([
    "f".repeat(random.pick([0, 1, 63, 65, 128])),
    "F".repeat(64),
    `${"f".repeat(63)}${random.pick(["g", " ", "-", "\n"])}`,
    random.pick<unknown>([null, 7, true, [FULL], {}]),
  ]);
  const scope = random.pick<unknown>([
    group,
    [editUid(group, random)],
    Array.from({ length: 33 }, () => group),
    [group, null],
    random.pick<unknown>([null, 7, {}, [[group]], { 0: group }]),
  ]);
  return random.pick<() => unknown>([
    () => ({ cap }),
    () => ({ scope }),
    () => ({ cap: FULL, scope }),
    () => ({ cap, scope: [group] }),
    () => ({ cap: FULL, [random.pick(["scopes", "caps", "Cap", "until", "", "aud"])]: [group] }),
    () => random.pick<unknown>([{}, [], null, FULL, [{ cap: FULL }], { lim: { cap: FULL } }]),
  ])();
}

function editUid(uid: string, random: Random): string {
  return random.pick([uid.toUpperCase(), `${uid}/`, uid.slice(1), `${uid}/0`, `/${uid}`, uid.replace(/./, "g"), "*"]);
}
