// Tokens that must be refused, or accepted, for their form: scheme, encoding,
// header and signature. Those of claim-cases.ts differ in what they say.
import {
  beyondOrder,
  derOf,
  encodePart,
  hmac,
  otherS,
  type Signer,
  signatureOf,
  strangeKey,
  type TokenKit,
} from "./token-kit.js";

/** One presented token. */
export interface TokenCase {
  readonly name: string;
  /** Makes the token. */
  readonly token?: (kit: TokenKit) => string | Promise<string>;
  /** Makes the whole header value instead. */
  readonly authorization?: (kit: TokenKit) => string | Promise<string>;
  readonly accepted?: true;
  /** Refused because it has expired, and for nothing else. */
  readonly expired?: true;
  /** Also presented over Connect and gRPC. */
  readonly everywhere?: true;
}

const good = (kit: TokenKit) => kit.token();
const withHeader = (changes: Readonly<Record<string, unknown>>) => (kit: TokenKit) =>
  kit.token({ header: kit.header(changes) });
const signWith =
  (signerOf: (kit: TokenKit) => Signer, changes: Readonly<Record<string, unknown>> = {}) =>
  (kit: TokenKit) =>
    kit.token({ header: kit.header(changes), signer: signerOf(kit) });
const signature = (of: (signature: Buffer) => Buffer) =>
  signWith(
    ({ ours }) =>
      async (input) =>
        of(await ours(input)),
  );
const strange = strangeKey("ES256");

/** The schemes and the blanks around the token. */
export const schemeCases: readonly TokenCase[] = [
  { name: "a good token", token: good, accepted: true, everywhere: true },
  {
    name: "the scheme in lower case",
    authorization: async (kit) => `bearer ${await good(kit)}`,
    accepted: true,
    everywhere: true,
  },
  { name: "the scheme in mixed case", authorization: async (kit) => `bEaReR ${await good(kit)}`, accepted: true },
  {
    name: "two blanks",
    authorization: async (kit) => `Bearer  ${await good(kit)}`,
    accepted: true,
    everywhere: true,
  },
  {
    name: "a hundred blanks",
    authorization: async (kit) => `Bearer${" ".repeat(100)}${await good(kit)}`,
    accepted: true,
  },
  { name: "no blank", authorization: async (kit) => `Bearer${await good(kit)}` },
  { name: "a blank and a tab", authorization: async (kit) => `Bearer \t${await good(kit)}` },
  { name: "a tab for the blank", authorization: async (kit) => `Bearer\t${await good(kit)}` },
  { name: "a blank inside the token", authorization: async (kit) => `Bearer ${(await good(kit)).replace(".", " .")}` },
  { name: "something behind the token", authorization: async (kit) => `Bearer ${await good(kit)} x` },
  { name: "no scheme", authorization: good },
  { name: "a scheme alone", authorization: () => "Bearer" },
  { name: "a scheme and a comma", authorization: () => "Bearer ," },
  { name: "Basic", authorization: async (kit) => `Basic ${await good(kit)}`, everywhere: true },
  { name: "Negotiate", authorization: async (kit) => `Negotiate ${await good(kit)}` },
  { name: "a scheme of another length", authorization: async (kit) => `Token ${await good(kit)}` },
  { name: "two schemes", authorization: async (kit) => `Bearer Bearer ${await good(kit)}` },
  {
    name: "two good tokens, joined by a comma",
    authorization: async (kit) => `Bearer ${await good(kit)}, Bearer ${await good(kit)}`,
  },
  { name: "a good token and a comma", authorization: async (kit) => `Bearer ${await good(kit)},` },
  { name: "a parameter", authorization: async (kit) => `Bearer token="${await good(kit)}"` },
  { name: "beyond ASCII", authorization: async (kit) => `Bearer \u00e4${await good(kit)}` },
];

const withoutSignature = (alg: string) => (kit: TokenKit) =>
  kit.token({ header: kit.header({ alg }), signer: () => Buffer.alloc(0) });
const confuseAlgorithm = (name: string, keyOf: (kit: TokenKit) => Buffer): TokenCase[] => [
  { name: `HS256 keyed with ${name}`, token: signWith((kit) => hmac("sha256", keyOf(kit)), { alg: "HS256" }) },
  // As long as an ES256 signature, so that the length alone does not give it away.
  { name: `HS512 keyed with ${name}`, token: signWith((kit) => hmac("sha512", keyOf(kit)), { alg: "HS512" }) },
  { name: `HS512 that says ES256, keyed with ${name}`, token: signWith((kit) => hmac("sha512", keyOf(kit))) },
];

/** Algorithms and signatures. */
export const signatureCases: readonly TokenCase[] = [
  ...["none", "None", "NONE", "nOnE", ""].map(
    (alg): TokenCase => ({ name: `alg "${alg}" without signature`, token: withoutSignature(alg) }),
  ),
  { name: "alg none over a good signature", token: withHeader({ alg: "none" }), everywhere: true },
  { name: "ES256 without signature", token: withoutSignature("ES256") },
  ...confuseAlgorithm("our public key as PEM", (kit) => kit.publicForms.pem),
  ...confuseAlgorithm("our public key as JWK", (kit) => kit.publicForms.jwk),
  ...confuseAlgorithm("our public key as DER", (kit) => kit.publicForms.der),
  ...confuseAlgorithm("our public key as PEM behind a blank", (kit) => Buffer.from(` ${kit.publicForms.pem}`)),
  ...confuseAlgorithm("our public key as PEM and a line feed", (kit) => Buffer.from(`${kit.publicForms.pem}\n`)),
  ...confuseAlgorithm("nothing", () => Buffer.alloc(0)),
  ...confuseAlgorithm("our kid", (kit) => Buffer.from(kit.kid)),
  ...(["RS256", "PS256", "ES384", "EdDSA"] as const).flatMap((alg): TokenCase[] => {
    const key = strangeKey(alg);
    return [
      { name: `${alg} by such a key under our kid`, token: signWith(() => key.signer, { alg }) },
      { name: `${alg} over our signature`, token: withHeader({ alg }) },
    ];
  }),
  { name: "es256 in lower case", token: withHeader({ alg: "es256" }) },
  { name: "alg missing", token: withHeader({ alg: undefined }) },
  { name: "alg a list", token: withHeader({ alg: ["ES256"] }) },
  { name: "a signature of zeros", token: signature(() => Buffer.alloc(64)), everywhere: true },
  { name: "r is zero", token: signature((s) => Buffer.concat([Buffer.alloc(32), s.subarray(32)])) },
  { name: "s is zero", token: signature((s) => Buffer.concat([s.subarray(0, 32), Buffer.alloc(32)])) },
  { name: "r and s are one", token: signature(() => signatureOf(1n, 1n)) },
  { name: "r and s beyond the order of the group", token: signature(beyondOrder) },
  { name: "r and s as large as can be", token: signature(() => Buffer.alloc(64, 0xff)) },
  { name: "DER", token: signature(derOf) },
  { name: "63 bytes", token: signature((s) => s.subarray(0, 63)) },
  { name: "65 bytes", token: signature((s) => Buffer.concat([s, Buffer.alloc(1)])) },
  { name: "128 bytes", token: signature((s) => Buffer.concat([s, s])) },
  { name: "r and s swapped", token: signature((s) => Buffer.concat([s.subarray(32), s.subarray(0, 32)])) },
  // Tokens are nowhere told apart by their text, so either value of s is as good.
  { name: "the other value of s", token: signature(otherS), accepted: true },
  { name: "another deployment's key under our kid", token: signWith(() => strange.signer), everywhere: true },
  {
    name: "another deployment's key under its own kid",
    token: signWith(() => strange.signer, { kid: "another" }),
    everywhere: true,
  },
];

const embedKey = (changes: Readonly<Record<string, unknown>>, name: string): TokenCase[] => [
  { name: `${name}, signed by us`, token: withHeader(changes) },
  { name: `${name}, signed by a stranger`, token: signWith(() => strange.signer, changes) },
  {
    name: `${name}, signed by a stranger, without kid`,
    token: signWith(() => strange.signer, { ...changes, kid: undefined }),
  },
];

/** Header fields; `listener` is an address that nobody must call. */
export function headerCases(listener: string): readonly TokenCase[] {
  const kids: readonly unknown[] = [
    undefined,
    "",
    "unknown",
    7,
    null,
    ["x"],
    {},
    "../../dev/null",
    "/dev/null",
    "' OR 1=1--",
    "__proto__",
    "constructor",
    "toString",
    "k".repeat(5_000),
  ];
  return [
    ...kids.map(
      (kid): TokenCase => ({ name: `kid ${String(JSON.stringify(kid)).slice(0, 20)}`, token: withHeader({ kid }) }),
    ),
    { name: "the kid of a page token key", token: (kit) => kit.token({ header: kit.header({ kid: kit.pageKid }) }) },
    { name: "our kid in a list", token: (kit) => kit.token({ header: kit.header({ kid: [kit.kid] }) }) },
    { name: "our kid and a blank", token: (kit) => kit.token({ header: kit.header({ kid: `${kit.kid} ` }) }) },
    ...embedKey({ jwk: strange.publicJwk }, "jwk"),
    ...embedKey({ jku: listener }, "jku"),
    ...embedKey({ x5u: listener }, "x5u"),
    ...embedKey({ x5c: [Buffer.from("no certificate").toString("base64")] }, "x5c"),
    ...embedKey({ x5t: "x" }, "x5t"),
    { name: "crit of a claim", token: withHeader({ crit: ["exp"] }), everywhere: true },
    { name: "crit of nothing", token: withHeader({ crit: [] }) },
    { name: "crit of b64", token: withHeader({ crit: ["b64"], b64: false }) },
    { name: "b64 false", token: withHeader({ b64: false }) },
    { name: "cty JWT", token: withHeader({ cty: "JWT" }) },
    { name: "zip", token: withHeader({ zip: "DEF" }) },
    { name: "a field nobody knows", token: withHeader({ x: 1 }) },
    ...[undefined, "", "JWT", "jwt", "id_token+jwt", "logout+jwt", "at+jwt ", "application/at+jwt", 7, ["at+jwt"]].map(
      (typ): TokenCase => ({ name: `typ ${String(JSON.stringify(typ))}`, token: withHeader({ typ }) }),
    ),
    { name: "typ in upper case", token: withHeader({ typ: "AT+JWT" }), accepted: true },
    { name: "typ in mixed case", token: withHeader({ typ: "At+Jwt" }), accepted: true, everywhere: true },
    {
      name: "the header's fields in another order",
      token: ({ kid, ...kit }) => kit.token({ header: { typ: "at+jwt", kid, alg: "ES256" } }),
      accepted: true,
    },
    ...headerTexts,
  ];
}

const headerText = (of: (kid: string) => string | Buffer) => (kit: TokenKit) => kit.token({ header: of(kit.kid) });
const headerTexts: readonly TokenCase[] = [
  {
    name: "alg twice, ours first",
    token: headerText((kid) => `{"alg":"ES256","kid":"${kid}","typ":"at+jwt","alg":"none"}`),
  },
  {
    name: "alg twice, ours last",
    token: headerText((kid) => `{"alg":"none","kid":"${kid}","typ":"at+jwt","alg":"ES256"}`),
  },
  { name: "kid twice", token: headerText((kid) => `{"alg":"ES256","kid":"x","kid":"${kid}","typ":"at+jwt"}`) },
  {
    name: "an escape in a header field's name",
    token: headerText((kid) => `{"\\u0061lg":"ES256","kid":"${kid}","typ":"at+jwt"}`),
  },
  { name: "blanks in the header", token: headerText((kid) => `{"alg": "ES256","kid":"${kid}","typ":"at+jwt"}`) },
  {
    name: "a line feed behind the header",
    token: headerText((kid) => `{"alg":"ES256","kid":"${kid}","typ":"at+jwt"}\n`),
  },
  {
    name: "a BOM before the header",
    token: headerText((kid) => `\ufeff{"alg":"ES256","kid":"${kid}","typ":"at+jwt"}`),
  },
  { name: "a header that is a list", token: headerText(() => "[]") },
  { name: "a header that is null", token: headerText(() => "null") },
  { name: "a header that is no JSON", token: headerText(() => "{") },
  { name: "an empty header", token: headerText(() => "") },
  {
    name: "a header of UTF-16",
    token: headerText((kid) => Buffer.from(`{"alg":"ES256","kid":"${kid}","typ":"at+jwt"}`, "utf16le")),
  },
];

const jwe = (header: object) => () =>
  [
    encodePart(header),
    encodePart("key"),
    encodePart("0123456789ab"),
    encodePart("text"),
    encodePart("0123456789abcdef"),
  ].join(".");

/** How the parts are written and put together. */
export const encodingCases: readonly TokenCase[] = [
  { name: "padding", token: async (kit) => `${await good(kit)}=` },
  { name: "padding of the header", token: async (kit) => (await good(kit)).replace(".", "=.") },
  { name: "the other base64 alphabet", token: otherAlphabet },
  {
    name: "a last character with spare bits set, in the signature",
    token: async (kit) => withSpareBits(await good(kit)),
  },
  { name: "a last character with spare bits set, in the payload, and signed so", token: spareBitsInPayload },
  { name: "two parts", token: async (kit) => (await good(kit)).split(".").slice(0, 2).join("."), everywhere: true },
  { name: "one part", token: async (kit) => (await good(kit)).split(".").slice(0, 1).join(".") },
  { name: "four parts", token: async (kit) => `${await good(kit)}.x` },
  { name: "a dot behind", token: async (kit) => `${await good(kit)}.` },
  { name: "a dot in front", token: async (kit) => `.${await good(kit)}` },
  { name: "two dots in a row", token: async (kit) => (await good(kit)).replace(".", "..") },
  { name: "an empty payload", token: (kit) => kit.token({ payload: "" }) },
  { name: "dots alone", token: () => ".." },
  { name: "8 KB of dots", token: () => ".".repeat(8_192), everywhere: true },
  { name: "15 KB of dots", token: () => ".".repeat(15_000) },
  { name: "15 KB of one letter", token: () => "A".repeat(15_000) },
  {
    name: "a good token with 8 KB of claims",
    token: (kit) => kit.token({ payload: kit.claims({ x: "x".repeat(8_000) }) }),
  },
  { name: "JWE dir", token: jwe({ alg: "dir", enc: "A256GCM" }) },
  { name: "JWE RSA-OAEP", token: jwe({ alg: "RSA-OAEP", enc: "A256GCM" }) },
  {
    name: "JWE PBES2 of 2^31 rounds",
    token: jwe({ alg: "PBES2-HS256+A128KW", enc: "A256GCM", p2c: 2 ** 31, p2s: "x" }),
  },
  { name: "JWE zip", token: jwe({ alg: "dir", enc: "A256GCM", zip: "DEF" }) },
  { name: "JWS as JSON", token: jsonSerialized },
  { name: "JWS as JSON, in base64url", token: async (kit) => encodePart(await jsonSerialized(kit)) },
];

async function jsonSerialized(kit: TokenKit): Promise<string> {
  const [header, payload, sig] = (await good(kit)).split(".");
  return JSON.stringify({ payload, protected: header, signature: sig });
}

async function otherAlphabet(kit: TokenKit): Promise<string> {
  // Made so that the payload holds both characters that differ.
  const header = encodePart(kit.header());
  const payload = encodePart(kit.claims({ x: "~~~???>>>" }))
    .replaceAll("-", "+")
    .replaceAll("_", "/");
  return `${header}.${payload}.${(await kit.ours(`${header}.${payload}`)).toString("base64url")}`;
}

async function spareBitsInPayload(kit: TokenKit): Promise<string> {
  const filled = ["", "x", "xx"].map((x) => encodePart(kit.claims({ x }))).find((text) => text.length % 4 === 2) ?? "";
  const input = `${encodePart(kit.header())}.${withSpareBits(filled)}`;
  return `${input}.${(await kit.ours(input)).toString("base64url")}`;
}

// Another spelling of the same bytes: the bits that the last character has to spare are set.
function withSpareBits(text: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return text.slice(0, -1) + (alphabet[alphabet.indexOf(text.slice(-1)) | 1] ?? "");
}
