// Mutations of the header at random: another algorithm, key or type, or another text. All are signed.
import { constants, sign } from "node:crypto";
import type { SigningKey } from "../../../src/kernel/jws.js";
import type { Random } from "../../support/openapi/random.js";
import { strangeKeys } from "../strangers/strange-keys.js";
import { encodePart } from "../strangers/token-kit.js";
import { otherAlgorithms, unacceptedAlgorithms, unknownKids } from "../strangers/tokens.js";
import { type GoodToken, type Mutation, type MutationClass, oneOf, segmentsOf, signText } from "./good-token.js";
import { addSpace, repeatMember } from "./payload-mutations.js";
import { editText, flipBits, otherType } from "./wrong-values.js";

type Changes = Readonly<Record<string, unknown>>;

/** Writes the header anew, and signs. */
const changeHeader =
  (changesOf: (good: GoodToken, random: Random) => Changes | undefined): Mutation =>
  (good, random) => {
    const changes = changesOf(good, random);
    if (changes === undefined) return undefined;
    // At random positions, so that added members are not always last.
    const header = random.chance(0.5)
      ? { ...good.header, ...changes }
      : { ...changes, ...without(good.header, changes) };
    return signText(
      encodePart(header),
      segmentsOf(good.text)[1],
      random.chance(0.8) ? good.key : strangeKeys.sameCurve.key,
    );
  };

function without(header: Changes, changes: Changes): Changes {
  return Object.fromEntries(Object.entries(header).filter(([name]) => !(name in changes)));
}

const ALGORITHMS = [...unacceptedAlgorithms, ...otherAlgorithms, "ES256"];

const otherAlgorithm = changeHeader(({ header }, random) => {
  if (random.chance(0.2)) return { alg: otherType(header.alg, random) };
  return { alg: random.chance(0.8) ? random.pick(ALGORITHMS) : editText(String(header.alg), random) };
});

// The right key, used as the algorithm it says would use a key of its own curve.
const otherHash: Mutation = ({ header, text, key }, random) => {
  const bits = random.pick([384, 512]);
  const input = `${encodePart({ ...header, alg: `ES${bits}` })}.${segmentsOf(text)[1]}`;
  return `${input}.${sign(`sha${bits}`, Buffer.from(input), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
};

// A signature of another algorithm, good in itself, by a key that the header names or not.
const otherSigner: Mutation = ({ header, text }, random) => {
  const stranger = random.pick(Object.values(strangeKeys));
  const alg = random.chance(0.8) ? stranger.alg : header.alg;
  const kid = random.chance(0.5) ? header.kid : random.pick(["stranger", undefined]);
  const input = `${encodePart({ ...header, alg, kid })}.${segmentsOf(text)[1]}`;
  return `${input}.${stranger.sign(input).toString("base64url")}`;
};

const otherKid = changeHeader(({ header }, random) => {
  if (random.chance(0.3)) return { kid: otherType(header.kid, random) };
  const kid = String(header.kid);
  return { kid: random.chance(0.4) ? random.pick(unknownKids) : editText(kid, random) };
});

const otherTyp = changeHeader(({ header }, random) => {
  if (random.chance(0.3)) return { typ: otherType(header.typ, random) };
  return { typ: editText(String(header.typ), random) };
});

const otherText: Mutation = ({ header, text, key }, random) => {
  const json = JSON.stringify(header);
  const written = random.pick<() => string | Buffer>([
    () => flipBits(Buffer.from(json), random),
    () => flipBits(Buffer.from(json), random),
    () => repeatMember(json, random),
    () => addSpace(json, random),
  ])();
  return signText(encodePart(written), segmentsOf(text)[1], key);
};

/** Confuses the two keys of the service, as verifiers may that ask the token which algorithm to use. */
export function otherOwnKey(other: SigningKey): MutationClass {
  return {
    name: "header alg, own keys",
    weight: 3,
    mutate: ({ header, text, key }, random) => {
      const otherAlg = header.alg === "RS256" ? "ES256" : "RS256";
      const payload = segmentsOf(text)[1];
      const pss = (alg: string) => {
        const input = `${encodePart({ ...header, alg })}.${payload}`;
        const rsa = key.asymmetricKeyType === "rsa" ? key : other.key;
        const made = sign("sha256", Buffer.from(input), {
          key: rsa,
          padding: constants.RSA_PKCS1_PSS_PADDING,
          saltLength: 32,
        });
        return `${input}.${made.toString("base64url")}`;
      };
      return random.pick<() => string>([
        () => signText(encodePart({ ...header, alg: otherAlg }), payload, key),
        () => signText(encodePart({ ...header, alg: otherAlg }), payload, other.key),
        () => signText(encodePart(header), payload, other.key),
        () => signText(encodePart({ ...header, kid: other.kid }), payload, key),
        () => signText(encodePart({ ...header, kid: other.kid }), payload, other.key),
        () => pss("PS256"),
        () => pss("RS256"),
      ])();
    },
  };
}

/** Mutations of the header. */
export const headerMutations: readonly MutationClass[] = [
  { name: "header alg", weight: 4, mutate: oneOf(otherAlgorithm, otherAlgorithm, otherHash) },
  { name: "header alg, other key", weight: 1, mutate: otherSigner },
  { name: "header kid", weight: 4, mutate: otherKid },
  { name: "header typ", weight: 2, mutate: otherTyp },
  { name: "header text", weight: 2, mutate: otherText },
];
