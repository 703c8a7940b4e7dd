// Mutations of the header: another algorithm, key or type, or a key of its own.
// All are signed: by the key that the token should be signed with, or by the key
// that the header offers to a careless reader.
import { constants, createHmac, createPublicKey, type KeyObject, sign } from "node:crypto";
import type { SigningKey } from "../../../src/kernel/jws.js";
import { encodePart } from "../../pipeline/auth/token-kit.js";
import type { Random } from "../../support/openapi/random.js";
import { type GoodToken, type Mutation, type MutationClass, oneOf, segmentsOf, signText } from "./good-token.js";
import { addSpace, repeatMember } from "./payload-mutations.js";
import { strangers } from "./strangers.js";
import { editText, flipBits, otherType } from "./wrong-values.js";

/** An address that must not be requested. */
export interface Trap {
  readonly url: string;
}

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
      random.chance(0.8) ? good.key : strangers.sameCurve.key,
    );
  };

function without(header: Changes, changes: Changes): Changes {
  return Object.fromEntries(Object.entries(header).filter(([name]) => !(name in changes)));
}

const ALGORITHMS = [
  ..."ES256 ES384 ES512 ES256K RS256 RS384 RS512 PS256 PS512 HS256 HS384 HS512 EdDSA Ed25519 none None NONE nOnE".split(
    " ",
  ),
  ..."es256 ES256\u0000 ES256, dir A256KW RSA-OAEP PBES2-HS256+A128KW".split(" "),
  " ES256",
  "ES256 ",
  "",
];

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

const removeSignature: Mutation = ({ header, text }, random) => {
  const alg = random.pick(["none", "None", "NONE", "nOnE", "", header.alg, undefined]);
  return `${encodePart({ ...header, alg })}.${segmentsOf(text)[1]}.`;
};

// The public key as a shared secret: verifiers that accept it accept every token (algorithm confusion).
const signWithPublicKey: Mutation = ({ header, text, key }, random) => {
  const secret = random.pick(publicFormsOf(key));
  const bits = random.pick([256, 384, 512]);
  const alg = random.pick([`HS${bits}`, header.alg]);
  const input = `${encodePart({ ...header, alg })}.${segmentsOf(text)[1]}`;
  return `${input}.${createHmac(`sha${bits}`, secret).update(input).digest("base64url")}`;
};

const publicForms = new Map<KeyObject, readonly Buffer[]>();

function publicFormsOf(key: KeyObject): readonly Buffer[] {
  let forms = publicForms.get(key);
  if (forms === undefined) {
    const publicKey = createPublicKey(key);
    const pem = Buffer.from(publicKey.export({ type: "spki", format: "pem" }));
    const jwk = publicKey.export({ format: "jwk" });
    const texts = [`${pem}`.trim(), ` ${pem}`, JSON.stringify(jwk), String(jwk.x ?? jwk.n), ""].map((text) =>
      Buffer.from(text),
    );
    forms = [pem, publicKey.export({ type: "spki", format: "der" }), ...texts];
    publicForms.set(key, forms);
  }
  return forms;
}

// A signature of another algorithm, good in itself, by a key that the header names or not.
const otherSigner: Mutation = ({ header, text }, random) => {
  const stranger = random.pick(Object.values(strangers));
  const alg = random.chance(0.8) ? stranger.alg : header.alg;
  const kid = random.chance(0.5) ? header.kid : random.pick(["stranger", undefined]);
  const input = `${encodePart({ ...header, alg, kid })}.${segmentsOf(text)[1]}`;
  return `${input}.${stranger.sign(input).toString("base64url")}`;
};

const KIDS = [
  "unknown",
  "",
  "0",
  "../../dev/null",
  "/dev/null",
  "file:///dev/null",
  "' OR 1=1--",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "%00",
  "*",
  "k".repeat(5_000),
];

const otherKid = changeHeader(({ header }, random) => {
  if (random.chance(0.3)) return { kid: otherType(header.kid, random) };
  const kid = String(header.kid);
  return { kid: random.chance(0.4) ? random.pick(KIDS) : editText(kid, random) };
});

const TYPES = [
  ..."JWT jwt jose at+jwt id_token+jwt logout+jwt secevent+jwt dpop+jwt JWE application/at+jwt application/jwt".split(
    " ",
  ),
  ..."at+jwt, at+jwt; at jwt+at text/at+jwt rt+jwt JWT/JWT".split(" "),
  "",
  " at+jwt",
];

const otherTyp = changeHeader(({ header }, random) => {
  if (random.chance(0.3)) return { typ: otherType(header.typ, random) };
  return { typ: random.chance(0.5) ? random.pick(TYPES) : editText(String(header.typ), random) };
});

/** Header fields that bring a key along, say where one is, or change how the token is read. */
const foreignKey = (trap: Trap): Mutation =>
  changeHeader((_good, random) => {
    const stranger = random.pick(Object.values(strangers));
    return random.pick<() => Changes>([
      () => ({ jwk: stranger.publicJwk }),
      () => ({ jwk: random.pick([null, "x", {}, []]) }),
      () => ({ jku: random.pick([`${trap.url}/keys`, "file:///dev/null", "", 7]) }),
      () => ({ x5u: random.pick([`${trap.url}/chain.pem`, "x"]) }),
      () => ({ x5c: random.pick([[encodePart("no certificate")], [], "x", null]) }),
      () => ({ crit: random.pick<unknown>([["exp"], [], ["b64"], ["alg", "kid"], "exp", null, [7]]) }),
      () => ({ crit: ["b64"], b64: false }),
      () => ({ crit: ["http://example.org/rule"], "http://example.org/rule": true }),
    ])();
  });

/** Fields that some reader somewhere acts on, and some that none does: for verifiers that allow no others. */
export const moreFields: MutationClass = {
  name: "header extra",
  weight: 2,
  mutate: changeHeader((_good, random) =>
    random.pick<Changes>([
      { b64: false },
      { cty: "JWT" },
      { zip: "DEF" },
      { enc: "A256GCM" },
      { x5t: "x" },
      { "x5t#S256": "x" },
      { iss: "https://example.org" },
      { url: "https://example.org" },
      { nonce: "x" },
      { epk: strangers.sameCurve.publicJwk },
      { p2c: 2 ** 31 },
      { [random.text("abcdefghijk", 6, 1)]: random.int(9) },
    ]),
  ),
};

const HEADER_TEXTS = ["", "{", "[]", "null", "1", '"x"', "{}", "\u0000", "true", '{"alg":"ES256"', "\ufeff{}"];

const otherText: Mutation = ({ header, text, key }, random) => {
  const json = JSON.stringify(header);
  const written = random.pick<() => string | Buffer>([
    () => flipBits(Buffer.from(json), random),
    () => flipBits(Buffer.from(json), random),
    () => repeatMember(json, random),
    () => addSpace(json, random),
    () => random.pick(HEADER_TEXTS),
    () => `\ufeff${json}`,
    () => json + random.pick(["x", "}", json, "\u0000", ","]),
    () => Buffer.from(json, "utf16le"),
    () => `[${json}]`,
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
export function headerMutations(trap: Trap): readonly MutationClass[] {
  return [
    { name: "header alg", weight: 4, mutate: oneOf(otherAlgorithm, otherAlgorithm, otherHash, removeSignature) },
    { name: "header alg HMAC", weight: 2, mutate: signWithPublicKey },
    { name: "header alg, other key", weight: 1, mutate: otherSigner },
    { name: "header kid", weight: 4, mutate: otherKid },
    { name: "header typ", weight: 3, mutate: otherTyp },
    { name: "header key, crit", weight: 3, mutate: foreignKey(trap) },
    { name: "header text", weight: 3, mutate: otherText },
  ];
}
