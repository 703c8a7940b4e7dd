// Tokens that differ from a good one in one thing, by what the verifiers make of them. API tokens and the tokens of
// other issuers are judged by the same table, so that a case that one of them must reject is tried on the other.

import { strangeSignatures } from "./signatures.js";
import { strangeKeys } from "./strange-keys.js";
import { encodePart, hmac, otherS, type Part, type TokenKit } from "./token-kit.js";

/** A token. */
export interface StrangeToken {
  /** What differs from a good token. */
  readonly differs: string;
  readonly make: Make;
  /** Why the verifier of other issuers' tokens rejects it; undefined where it accepts it. */
  readonly upstream: string | undefined;
  /** Whether it is an API token that is accepted. */
  readonly isApiToken: boolean;
}

type Make = (kit: TokenKit) => string;
type Members = Readonly<Record<string, unknown>>;
type Makes = Readonly<Record<string, Make>>;

const group = (upstream: string | undefined, makes: Makes, isApiToken = false): readonly StrangeToken[] =>
  Object.entries(makes).map(([differs, make]) => ({ differs, make, upstream, isApiToken }));

/** Cases of a list of values, each named by its JSON. */
const each = (what: string, values: readonly unknown[], of: (value: unknown) => Make): Makes =>
  Object.fromEntries(values.map((value) => [`${what} ${String(JSON.stringify(value)).slice(0, 40)}`, of(value)]));

const good: Make = (kit) => kit.token();
const withParts =
  (change: (parts: readonly string[]) => readonly string[]): Make =>
  (kit) =>
    change(good(kit).split(".")).join(".");
const withText =
  (change: (text: string) => string): Make =>
  (kit) =>
    change(good(kit));
const withHeader =
  (changes: Members | ((kit: TokenKit) => Members)): Make =>
  (kit) =>
    kit.token({ header: kit.header(typeof changes === "function" ? changes(kit) : changes) });
const withClaims =
  (changes: Members | ((claims: Members) => Members)): Make =>
  (kit) =>
    kit.token({ payload: kit.claims(typeof changes === "function" ? changes(kit.claims()) : changes) });
/** The JSON of the header, or of the claims, written in another way. */
const writeHeader =
  (write: (json: string) => Part): Make =>
  (kit) =>
    kit.token({ header: write(JSON.stringify(kit.header())) });
const writeClaims =
  (write: (json: string) => Part): Make =>
  (kit) =>
    kit.token({ payload: write(JSON.stringify(kit.claims())) });
const addClaims = (members: string) => writeClaims((json) => `${json.slice(0, -1)},${members}}`);

const MANY_PARTS = "is not of three parts";
const SPELLING = "is not in canonical base64url";
const ALGORITHM = "is signed with an algorithm that is not accepted";
const OTHER_ALGORITHM = "is signed with an algorithm that is not that of the key";
const SIGNATURE = "has a signature that does not verify";
const NO_KEY = "names no key of its issuer that can be used";
const KID = "has a kid that is no string";
const LONG_KID = "has a kid that is too long";
const HEADER = "has a header that is not a plain JSON object";
const FIELD = "has a header parameter that is not accepted";
const TYPE = "is of another type";
const CLAIMS = "has claims that are not a plain JSON object";

const jwe = (header: object) => () =>
  [header, "key", "0123456789ab", "text", "0123456789abcdef"].map(encodePart).join(".");

function toJws(text: string): string {
  const [header, payload, signature] = text.split(".");
  return JSON.stringify({ payload, protected: header, signature });
}

const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** Another spelling of the same bytes: a bit that the last character has to spare is set. */
const withSpareBit = (part: string) => part.slice(0, -1) + (BASE64URL[BASE64URL.indexOf(part.slice(-1)) | 1] ?? "");

// The payload is signed as it is written.
function writePart(kit: TokenKit, claims: Members, write: (part: string) => string): string {
  const input = `${encodePart(kit.header())}.${write(encodePart(kit.claims(claims)))}`;
  return `${input}.${kit.ours(input).toString("base64url")}`;
}

/** How the parts are written and put together. */
const forms = [
  ...group(MANY_PARTS, {
    "one part": withParts((parts) => parts.slice(0, 1)),
    "two parts": withParts((parts) => parts.slice(0, 2)),
    "four parts": withText((text) => `${text}.x`),
    "two signatures": withParts((parts) => [...parts, ...parts.slice(2)]),
    "five parts": withText((text) => `${text}.a.b`),
    "a dot after it": withText((text) => `${text}.`),
    "a dot before it": withText((text) => `.${text}`),
    "two dots in a row": withText((text) => text.replace(".", "..")),
    "8 KB of dots": () => ".".repeat(8_192),
    "15 KB of dots": () => ".".repeat(15_000),
    "15 KB of one letter": () => "A".repeat(15_000),
    "a word": () => "x",
    "a request that is not signed": () =>
      Buffer.from("POST / HTTP/1.1\r\nhost: sts.amazonaws.com\r\n\r\n").toString("base64url"),
    "JWE dir": jwe({ alg: "dir", enc: "A256GCM", cty: "JWT" }),
    "JWE RSA-OAEP": jwe({ alg: "RSA-OAEP", enc: "A256GCM" }),
    "JWE PBES2 of 2^31 rounds": jwe({ alg: "PBES2-HS256+A128KW", enc: "A256GCM", p2c: 2 ** 31, p2s: "x" }),
    "JWE PBES2 of 2^31 rounds, as long as can be": jwe({ alg: "PBES2-HS512+A256KW", p2c: 2 ** 31 - 1, p2s: "x" }),
    "JWE zip": jwe({ alg: "dir", enc: "A256GCM", zip: "DEF" }),
    "JWS as JSON": withText(toJws),
    "JWS as JSON, in base64url": withText((text) => encodePart(toJws(text))),
    "the token in base64url": withText(encodePart),
  }),
  ...group(SPELLING, {
    padding: withText((text) => `${text}=`),
    "two of padding": withText((text) => `${text}==`),
    "padding of the header": withText((text) => text.replace(".", "=.")),
    // Made so that the payload holds both characters that differ.
    "the other base64 alphabet": (kit) =>
      writePart(kit, { x: "~~~???>>>" }, (part) => part.replaceAll("-", "+").replaceAll("_", "/")),
    "the other base64 alphabet in the signature": withParts(([header, claims, signature = ""]) => [
      ...[header ?? "", claims ?? "", `+/${signature.slice(2)}`],
    ]),
    "a last character with a spare bit set, in the signature": withText(withSpareBit),
    "a last character with a spare bit set, in the payload, and signed so": (kit) => {
      const x = ["", "x", "xx"].find((text) => encodePart(kit.claims({ x: text })).length % 4 === 2);
      return writePart(kit, { x }, withSpareBit);
    },
    "another character": withText((text) => `${text}!`),
    "a character beyond ASCII": withParts((parts) => parts.with(2, `\u00e9${parts[2]}`)),
    "no signature": withParts((parts) => parts.with(2, "")),
    "an empty header": (kit) => kit.token({ header: "" }),
    "an empty payload": (kit) => kit.token({ payload: "" }),
    "dots alone": () => "..",
  }),
];

/** Tokens that no header of HTTP can hold. */
export const tokensBeyondHeaders: readonly StrangeToken[] = [
  ...group(MANY_PARTS, { nothing: () => "" }),
  ...group(SPELLING, {
    "a line break": withParts((parts) => parts.with(1, `${parts[1]}\n`)),
    "a line break after it": withText((text) => `${text}\n`),
    "a blank after it": withText((text) => `${text} `),
    "a blank before it": withText((text) => ` ${text}`),
    "NUL after it": withText((text) => `${text}\u0000`),
  }),
];

/** Algorithms that sign no token here. */
export const unacceptedAlgorithms =
  "none None NONE nOnE HS256 HS384 HS512 ES256K es256 dir A256KW RSA-OAEP PBES2-HS256+A128KW constructor __proto__"
    .split(" ")
    .concat("", " ES256", "ES256 ", "ES256,");
/** Algorithms of other keys. */
export const otherAlgorithms = "ES384 ES512 RS256 RS384 RS512 PS256 PS512 EdDSA Ed25519".split(" ");

const confuse = (changes: Members, hash: "sha256" | "sha512"): Makes =>
  Object.fromEntries(
    Object.entries<(kit: TokenKit) => string | Buffer>({
      "our public key as PEM": (kit) => kit.publicForms.pem,
      "our public key as JWK": (kit) => kit.publicForms.jwk,
      "our public key as DER": (kit) => kit.publicForms.der,
      "our public key as PEM after a blank": (kit) => ` ${kit.publicForms.pem}`,
      "our public key as PEM after a line break": (kit) => `\n${kit.publicForms.pem}`,
      "our public key as PEM and a line break": (kit) => `${kit.publicForms.pem}\n`,
      "our public key as PEM without a line break": (kit) => `${kit.publicForms.pem}`.trim(),
      "the number of our public key": (kit) => {
        const { x, n } = JSON.parse(`${kit.publicForms.jwk}`) as { x?: string; n?: string };
        return x ?? n ?? "";
      },
      nothing: () => "",
      "our kid": (kit) => kit.kid,
    }).map(([name, keyOf]) => [
      `${hash} and ${JSON.stringify(changes)}, keyed with ${name}`,
      (kit) => kit.token({ header: kit.header(changes), signer: hmac(hash, Buffer.from(keyOf(kit))) }),
    ]),
  );

const signByStranger =
  (changes: Members = {}): Make =>
  (kit) =>
    kit.token({ header: kit.header(changes), signer: strangeKeys.sameCurve.sign });
const otherFamilies = [strangeKeys.otherCurve, strangeKeys.rsa, strangeKeys.pss, strangeKeys.edwards];

/** Algorithms and signatures. */
const signatures = [
  ...group(ALGORITHM, {
    ...each("no signature, and alg", ["none", "None", "NONE", "nOnE", ""], (alg) => (kit) => {
      return kit.token({ header: kit.header({ alg }), signer: () => Buffer.alloc(0) });
    }),
    ...each("alg", [...unacceptedAlgorithms, undefined, null, ["ES256"]], (alg) => withHeader({ alg })),
    ...confuse({ alg: "HS256" }, "sha256"),
    // As long as a signature of ES256, so that the length alone does not give it away.
    ...confuse({ alg: "HS512" }, "sha512"),
  }),
  ...group(OTHER_ALGORITHM, {
    ...each("alg", otherAlgorithms, (alg) => withHeader({ alg })),
    ...Object.fromEntries(
      otherFamilies.map(({ alg, sign }): [string, Make] => [
        `${alg} by such a key under our kid`,
        (kit) => kit.token({ header: kit.header({ alg }), signer: sign }),
      ]),
    ),
  }),
  ...group(SIGNATURE, {
    ...confuse({}, "sha512"),
    ...Object.fromEntries(
      Object.entries(strangeSignatures).map(([name, change]): [string, Make] => [
        `a signature: ${name}`,
        (kit) => kit.token({ signer: (input) => change(kit.ours(input), input) }),
      ]),
    ),
    "another key under our kid": signByStranger(),
    "another key without kid": signByStranger({ kid: undefined }),
  }),
  ...group(NO_KEY, { "another key under its own kid": signByStranger({ kid: "another" }) }),
  // Tokens are nowhere told apart by their text, so either value of s is as good.
  ...group(
    undefined,
    { "the other value of s": (kit) => kit.token({ signer: (input) => otherS(kit.ours(input)) }) },
    true,
  ),
];

/** Key ids that name no key. */
export const unknownKids: readonly string[] = [
  ...["", "0", "unknown", "../../dev/null", "/dev/null", "file:///dev/null", "' OR 1=1--", "%00", "*"],
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "k".repeat(1_024)],
];

/** Header fields that bring a key along, say where one is, or change how the token is read; none is requested. */
export const forbiddenFields = (address: string): readonly Members[] => [
  { jwk: strangeKeys.sameCurve.publicJwk },
  { jku: `${address}/keys` },
  { x5u: `${address}/chain.pem` },
  { x5c: [Buffer.from("no certificate").toString("base64")] },
];
const otherFields: readonly Members[] = [
  ...[null, "x", {}, []].map((jwk) => ({ jwk })),
  ...["file:///dev/null", "", 7].map((jku) => ({ jku })),
  { x5u: "x" },
  ...[[], "x", null].map((x5c) => ({ x5c })),
  ...[["exp"], [], ["b64"], ["alg", "kid"], "exp", null, [7]].map((crit) => ({ crit })),
  { crit: ["b64"], b64: false },
  { crit: ["http://example.org/rule"], "http://example.org/rule": true },
];
/** Fields that some reader somewhere acts on, and some that none does. */
export const furtherFields: readonly Members[] = [
  ...[{ b64: false }, { cty: "JWT" }, { zip: "DEF" }, { enc: "A256GCM" }, { x5t: "x" }, { "x5t#S256": "x" }],
  ...[{ iss: "https://example.org" }, { url: "https://example.org" }, { nonce: "x" }, { p2c: 2 ** 31 }, { x: 1 }],
  { epk: strangeKeys.sameCurve.publicJwk },
];

/** Types of which no verifier takes tokens. */
export const otherTypes: readonly unknown[] = [
  ..."id_token+jwt logout+jwt secevent+jwt dpop+jwt rt+jwt JWE application/xml text/at+jwt at jwt+at JWT/JWT".split(
    " ",
  ),
  ...["", "at+jwt ", " at+jwt", "at+jwt,", "at+jwt;", 1, null, ["at+jwt"]],
];

/** Header fields; `address` is one that must not be requested. */
const headers = (address: string): readonly StrangeToken[] => [
  ...group(NO_KEY, {
    ...each("kid", unknownKids, (kid) => withHeader({ kid })),
    "our kid and a blank": withHeader(({ kid }) => ({ kid: `${kid} ` })),
  }),
  ...group(KID, {
    ...each("kid", [7, null, ["x"], {}], (kid) => withHeader({ kid })),
    "our kid in a list": withHeader(({ kid }) => ({ kid: [kid] })),
  }),
  ...group(LONG_KID, {
    "kid of 1,025 characters": withHeader({ kid: "k".repeat(1_025) }),
    "kid of 5,000 characters": withHeader({ kid: "k".repeat(5_000) }),
  }),
  ...group(FIELD, {
    ...each("signed by us,", [...forbiddenFields(address), ...otherFields], (field) => withHeader(field as Members)),
    ...each("signed by a stranger,", forbiddenFields(address), (field) => signByStranger(field as Members)),
    ...each("signed by a stranger, without kid,", forbiddenFields(address), (field) =>
      signByStranger({ ...(field as Members), kid: undefined }),
    ),
  }),
  ...group(SIGNATURE, {
    "x5t, signed by a stranger": signByStranger({ x5t: "x" }),
    "x5t, signed by a stranger, without kid": signByStranger({ x5t: "x", kid: undefined }),
  }),
  ...group(
    TYPE,
    each("typ", otherTypes, (typ) => withHeader({ typ })),
  ),
  ...group(HEADER, {
    "alg twice, ours first": writeHeader((json) => `${json.slice(0, -1)},"alg":"none"}`),
    "alg twice, ours last": writeHeader((json) => `{"alg":"none",${json.slice(1)}`),
    "alg twice, once with an escape": writeHeader((json) => `${json.slice(0, -1)},"\\u0061lg":"none"}`),
    "kid twice": writeHeader((json) => `{"kid":"x",${json.slice(1)}`),
    "alg with NUL": withHeader({ alg: "ES256\u0000" }),
    "a BOM before the header": writeHeader((json) => `\ufeff${json}`),
    "a BOM and an empty object as header": writeHeader(() => "\ufeff{}"),
    "a header of UTF-16": writeHeader((json) => Buffer.from(json, "utf16le")),
    "the header in a list": writeHeader((json) => `[${json}]`),
    ...each("header", ["[]", '["ES256"]', '"ES256"', "null", "true", "1", "{", '{"alg":"ES256"', "\u0000"], (text) =>
      writeHeader(() => String(text)),
    ),
    ...each("after the header", ["x", "}", ",", "\u0000"], (text) => writeHeader((json) => json + text)),
  }),
  ...group(ALGORITHM, { "header {}": writeHeader(() => "{}") }),
  // API tokens have the one header that the service writes.
  ...group(undefined, {
    "no kid": withHeader({ kid: undefined }),
    ...each("typ", [undefined, "JWT", "jwt", "jose", "application/jwt", "application/at+jwt"], (typ) =>
      withHeader({ typ }),
    ),
    ...each("field", furtherFields, (field) => withHeader(field as Members)),
    "an escape in a header field's name": writeHeader((json) => json.replace('"alg"', '"\\u0061lg"')),
    "blanks in the header": writeHeader((json) => json.replace(":", ": ")),
    "a line break after the header": writeHeader((json) => `${json}\n`),
  }),
  ...group(
    undefined,
    {
      "typ in upper case": withHeader((kit) => ({ typ: String(kit.header().typ).toUpperCase() })),
      "typ in mixed case": withHeader((kit) => ({
        typ: String(kit.header().typ).replace(/[jt]/, (c) => c.toUpperCase()),
      })),
      "the header's fields in another order": writeHeader((json) =>
        JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(json) as object).reverse())),
      ),
    },
    true,
  ),
];

function patchBytes(json: string, bytes: readonly number[]): Buffer {
  const mark = "#".repeat(bytes.length);
  const whole = Buffer.from(`${json.slice(0, -1)},"x":"${mark}"}`);
  whole.set(bytes, whole.lastIndexOf(mark));
  return whole;
}

/** How the claims are written; all are signed by the right key. */
const payloads = [
  ...group(CLAIMS, {
    ...each("payload", ["[]", "1", "null", '"x"', "true", "{", "{]", "\u0000", "undefined", "NaN", "[[", " "], (text) =>
      writeClaims(() => String(text)),
    ),
    "the claims in a list": writeClaims((json) => `[${json}]`),
    "the claims as text": writeClaims((json) => JSON.stringify(json)),
    "the token in its payload": (kit) => kit.token({ payload: good(kit) }),
    ...each("after the claims", ["x", "}", "\u0000", ",", "//", "/**/", "{}"], (text) =>
      writeClaims((json) => json + text),
    ),
    "the claims twice": writeClaims((json) => json.repeat(2)),
    "a list of 2,500 lists": writeClaims(() => "[".repeat(2_500) + "]".repeat(2_500)),
    "lists that never close": writeClaims(() => "[".repeat(5_000)),
    "70 lists that never close": writeClaims(() => `{"a":${"[".repeat(70)}`),
    "a BOM before the claims": writeClaims((json) => `\ufeff${json}`),
    "claims of UTF-16": writeClaims((json) => Buffer.from(json, "utf16le")),
    "bytes that are not UTF-8": writeClaims((json) => patchBytes(json, [0xc3, 0x28])),
    "another byte that is not UTF-8": writeClaims((json) => patchBytes(json, [0xff])),
    "an overlong character": writeClaims((json) => patchBytes(json, [0xc0, 0xaf])),
    "a longer overlong character": writeClaims((json) => patchBytes(json, [0xc0, 0x80])),
    "half a surrogate pair in UTF-8": writeClaims((json) => patchBytes(json, [0xed, 0xa0, 0x80])),
    "a character beyond Unicode": writeClaims((json) => patchBytes(json, [0xf5, 0x80, 0x80])),
    "single quotes": writeClaims((json) => json.replaceAll('"', "'")),
    "a name without quotes": writeClaims((json) => json.replace(/"(\w+)":/, "$1:")),
    "a comma at the end": writeClaims((json) => `${json.slice(0, -1)},}`),
    "a comma at the start": writeClaims((json) => `{,${json.slice(1)}`),
    "two commas": writeClaims((json) => json.replace(",", ",,")),
    ...each("before a number", ["0", "+", "0x", ".", "--"], (text) =>
      writeClaims((json) => json.replace(/":(\d)/, `":${text}$1`)),
    ),
    ...each("exp", ["NaN", "-Infinity", "1e999", "1.", "1e", "1_0", "1n"], (text) =>
      writeClaims((json) => json.replace(/"exp":\d+/, `"exp":${text}`)),
    ),
    "sub twice, ours last": writeClaims((json) => json.replace(/"sub":/, '"sub":"x","sub":')),
    "sub twice, ours first": writeClaims((json) => json.replace(/"aud":/, '"sub":"x","aud":')),
    "sub twice, at the end": addClaims('"sub":"admin"'),
    "sub twice, once with an escape": addClaims('"\\u0073ub":"admin"'),
    "exp twice": writeClaims((json) => `{"exp":1,${json.slice(1)}`),
    "a member twice within a claim": addClaims('"a":{"b":1,"b":2}'),
    "claims inherited from __proto__": writeClaims((json) => json.replace(/"sub":("[^"]*")/, '"__proto__":{"sub":$1}')),
    "all claims within __proto__": writeClaims((json) => `{"__proto__":${json}}`),
  }),
  ...group(
    CLAIMS,
    {
      "a claim called __proto__": addClaims('"__proto__":{"sub":"x"}'),
      "half a surrogate pair in a claim": addClaims('"a":"\\ud800"'),
      "two halves in the wrong order": addClaims('"a":"\\udc00\\ud800"'),
      "NUL in a claim": addClaims('"a":"\\u0000"'),
    },
    true,
  ),
  ...group("lives longer than allowed", {
    "exp 1e308 as one writes it": writeClaims((json) => json.replace(/"exp":\d+/, '"exp":1e308')),
  }),
  // API tokens are as JSON.stringify writes them.
  ...group(undefined, {
    "a blank before the claims": writeClaims((json) => ` ${json}`),
    "a line break after the claims": writeClaims((json) => `${json}\n`),
    "blanks between the claims": writeClaims((json) => JSON.stringify(JSON.parse(json), null, 2)),
    "an escape in a claim's name": writeClaims((json) => json.replace(/"sub":/, '"\\u0073ub":')),
    "an escape in a claim": writeClaims((json) =>
      json.replace(/"sub":"([a-z0-9])/, (_, first: string) => {
        return `"sub":"\\u00${first.charCodeAt(0).toString(16)}`;
      }),
    ),
    "exp with an exponent": writeClaims((json) => json.replace(/"exp":(\d+)/, '"exp":$1e0')),
    "exp with a fraction of nothing": writeClaims((json) => json.replace(/"exp":(\d+)/, '"exp":$1.0')),
  }),
  ...group(
    undefined,
    {
      "claims that nothing asks for": withClaims({ "https://x": { y: ["\u00fc"] }, admin: true }),
      "a claim called constructor": withClaims({ constructor: 1 }),
      "the claims in another order": writeClaims((json) =>
        JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(json) as object).reverse())),
      ),
    },
    true,
  ),
];

const texts = (count: number) => Array.from({ length: count }, (_, n) => `https://${n}.example.org`);

/** Claims that are absent, or of another type. */
const types = [
  ...group("has no issuer", {
    ...each("iss", [undefined, null, 7, "", { a: 1 }], (iss) => withClaims({ iss })),
    "iss in a list": withClaims(({ iss }) => ({ iss: [iss] })),
  }),
  ...group("has an issuer that is too long", { "iss of 256 characters": withClaims({ iss: "x".repeat(256) }) }),
  ...group("has no usable subject", {
    ...each("sub", [undefined, null, 7, true, "", { a: 1 }], (sub) => withClaims({ sub })),
    "sub in a list": withClaims(({ sub }) => ({ sub: [sub] })),
    "sub of 1,025 characters": withClaims({ sub: "s".repeat(1_025) }),
  }),
  ...group("has no usable audience", {
    ...each("aud", [undefined, null, 7, {}, [], [7]], (aud) => withClaims({ aud })),
    "aud an object": withClaims(({ aud }) => ({ aud: { [String(aud)]: true } })),
    "aud a list in a list": withClaims(({ aud }) => ({ aud: [[aud]] })),
    "aud ours among 17": withClaims(({ aud }) => ({ aud: [aud, ...texts(16)] })),
    "aud ours among 200": withClaims(({ aud }) => ({ aud: [aud, ...texts(199)] })),
  }),
  ...group("has no usable audience", { "aud ours and null": withClaims(({ aud }) => ({ aud: [aud, null] })) }, true),
  ...group("has no expiry", {
    ...each("exp", [undefined, null, "1800000000", "tomorrow", true, [1_800_000_000], {}], (exp) =>
      withClaims({ exp }),
    ),
  }),
  ...group("has an iat that is no number", {
    ...each("iat", [null, "1800000000", true, [1_800_000_000], {}], (iat) => withClaims({ iat })),
  }),
  ...group("has an nbf that is no number", {
    ...each("nbf", [null, "0", "1", true, [], {}], (nbf) => withClaims({ nbf })),
  }),
  ...group("has claims that are not a plain JSON object", {
    "NUL after the subject": withClaims(({ sub }) => ({ sub: `${sub}\u0000` })),
  }),
  ...group("has claims that are not a plain JSON object", {
    "a subject of half a pair": withClaims({ sub: "\ud800" }),
  }),
  // Other issuers may leave `iat` out, and write fractions of a second.
  ...group(undefined, {
    "iat undefined": withClaims({ iat: undefined }),
    "iat with a fraction": withClaims(({ iat }) => ({ iat: Number(iat) - 0.5 })),
    "exp with a fraction": withClaims(({ exp }) => ({ exp: Number(exp) + 0.5 })),
    "nbf with a fraction": withClaims(({ iat }) => ({ nbf: Number(iat) - 0.5 })),
    "exp that is iat": withClaims(({ iat }) => ({ exp: iat })),
    "aud ours among 16": withClaims(({ aud }) => ({ aud: [aud, ...texts(15)] })),
    "aud ours among nine": withClaims(({ aud }) => ({ aud: [aud, ...texts(8)] })),
  }),
  ...group(
    undefined,
    {
      "aud ours among eight": withClaims(({ aud }) => ({ aud: [...texts(7), aud] })),
      "aud ours alone in a list": withClaims(({ aud }) => ({ aud: [aud] })),
      "nbf that has passed": withClaims(({ iat }) => ({ nbf: iat })),
    },
    true,
  ),
];

/** All that a header of HTTP can hold; `address` is one that must not be requested. */
export const strangeTokens = (address = "http://127.0.0.1:9"): readonly StrangeToken[] => [
  ...forms,
  ...signatures,
  ...headers(address),
  ...payloads,
  ...types,
];
