// Tokens in good form and signed by the service's own key that must be refused,
// or accepted, for what they say.
import type { TokenCase } from "./token-cases.js";
import type { TokenKit } from "./token-kit.js";

type Claims = Readonly<Record<string, unknown>>;

const saying = (changes: Claims | ((claims: Claims) => Claims)) => (kit: TokenKit) =>
  kit.token({ payload: kit.claims(typeof changes === "function" ? changes(kit.claims()) : changes) });
const at = (claims: Claims, name: "iat" | "exp") => Number(claims[name]);
const text = (claims: Claims, name: "iss" | "aud") => String(claims[name]);

/** Who issued it and for whom. */
export const partyCases: readonly TokenCase[] = [
  { name: "iss missing", token: saying({ iss: undefined }) },
  { name: "iss of another", token: saying({ iss: "https://evil.example.org" }), everywhere: true },
  { name: "iss empty", token: saying({ iss: "" }) },
  { name: "iss with a slash behind", token: saying((c) => ({ iss: `${text(c, "iss")}/` })) },
  { name: "iss in upper case", token: saying((c) => ({ iss: text(c, "iss").toUpperCase() })) },
  { name: "iss with a path", token: saying((c) => ({ iss: `${text(c, "iss")}/x` })) },
  { name: "iss cut off", token: saying((c) => ({ iss: text(c, "iss").slice(0, -1) })) },
  {
    name: "iss by another spelling of this machine",
    token: saying((c) => ({ iss: text(c, "iss").replace("127.0.0.1", "localhost") })),
  },
  { name: "iss in a list", token: saying((c) => ({ iss: [text(c, "iss")] })) },
  { name: "iss a number", token: saying({ iss: 7 }) },
  { name: "aud missing", token: saying({ aud: undefined }) },
  { name: "aud empty", token: saying({ aud: "" }) },
  { name: "aud an empty list", token: saying({ aud: [] }) },
  { name: "aud of another", token: saying({ aud: "https://api.example.org" }), everywhere: true },
  { name: "aud a beginning of ours", token: saying((c) => ({ aud: text(c, "aud").slice(0, -1) })) },
  { name: "aud without its scheme", token: saying((c) => ({ aud: text(c, "aud").replace("http://", "") })) },
  { name: "aud longer than ours", token: saying((c) => ({ aud: `${text(c, "aud")}0` })) },
  { name: "aud a look-alike host", token: saying((c) => ({ aud: `${text(c, "aud")}.evil.example.org` })) },
  { name: "aud with a path", token: saying((c) => ({ aud: `${text(c, "aud")}/x` })) },
  { name: "aud in upper case", token: saying((c) => ({ aud: text(c, "aud").toUpperCase() })) },
  { name: "aud with a blank behind", token: saying((c) => ({ aud: `${text(c, "aud")} ` })) },
  { name: "aud with two slashes behind", token: saying((c) => ({ aud: `${text(c, "aud")}//` })) },
  { name: "aud an object", token: saying((c) => ({ aud: { [text(c, "aud")]: true } })) },
  { name: "aud a number", token: saying({ aud: 7 }) },
  { name: "aud a list of others", token: saying({ aud: ["https://a", "https://b"] }) },
  { name: "aud a list in a list", token: saying((c) => ({ aud: [[text(c, "aud")]] })) },
  { name: "aud ours among nine", token: saying((c) => ({ aud: [text(c, "aud"), ...others(8)] })) },
  { name: "aud ours among two hundred", token: saying((c) => ({ aud: [text(c, "aud"), ...others(199)] })) },
  {
    name: "aud ours among eight",
    token: saying((c) => ({ aud: [...others(7), text(c, "aud")] })),
    accepted: true,
    everywhere: true,
  },
  { name: "aud ours alone in a list", token: saying((c) => ({ aud: [text(c, "aud")] })), accepted: true },
  {
    name: "aud ours with a slash behind",
    token: saying((c) => ({ aud: `${text(c, "aud")}/` })),
    accepted: true,
    everywhere: true,
  },
  {
    name: "aud by another spelling of this machine",
    token: saying((c) => ({ aud: text(c, "aud").replace("127.0.0.1", "localhost") })),
    accepted: true,
  },
];

const hour = 3_600;
const notIntegers: readonly unknown[] = [undefined, null, "1800000000", 1.5, true, [1_800_000_000], {}, 2 ** 53, -1, 0];

/** When it was issued and how long it is valid; exact limits are in authenticate.test.ts. */
export const timeCases: readonly TokenCase[] = [
  ...notIntegers.map((exp): TokenCase => ({ name: `exp ${JSON.stringify(exp)}`, token: saying({ exp }) })),
  ...notIntegers.map((iat): TokenCase => ({ name: `iat ${JSON.stringify(iat)}`, token: saying({ iat }) })),
  ...[null, "1", 1.5, true, [], {}, 2 ** 53].map(
    (nbf): TokenCase => ({ name: `nbf ${JSON.stringify(nbf)}`, token: saying({ nbf }) }),
  ),
  { name: "exp 1e308", token: saying({ exp: 1e308 }) },
  { name: "exp 1e308 as one writes it", token: rewritePayload(/"exp":\d+/, '"exp":1e308') },
  { name: "exp with an exponent", token: rewritePayload(/"exp":(\d+)/, '"exp":$1e0') },
  { name: "exp with a fraction of nothing", token: rewritePayload(/"exp":(\d+)/, '"exp":$1.0') },
  { name: "exp NaN", token: rewritePayload(/"exp":\d+/, '"exp":NaN') },
  {
    name: "expired for 20 s",
    token: saying((c) => ({ iat: at(c, "iat") - hour - 10, exp: at(c, "iat") - 10 })),
    accepted: true,
    everywhere: true,
  },
  {
    name: "expired for 40 s",
    token: saying((c) => ({ iat: at(c, "iat") - hour - 30, exp: at(c, "iat") - 30 })),
    everywhere: true,
    expired: true,
  },
  {
    name: "expired long ago",
    token: saying((c) => ({ iat: at(c, "iat") - 9_999, exp: at(c, "iat") - 8_888 })),
    expired: true,
  },
  {
    name: "issued 20 s from now",
    token: saying((c) => ({ iat: at(c, "iat") + 30, exp: at(c, "iat") + 60 })),
    accepted: true,
  },
  { name: "issued 50 s from now", token: saying((c) => ({ iat: at(c, "iat") + 60, exp: at(c, "iat") + 90 })) },
  {
    name: "issued ten years from now",
    token: saying((c) => ({ iat: at(c, "iat") + 315_360_000, exp: at(c, "exp") + 315_360_000 })),
  },
  { name: "not valid before 20 s from now", token: saying((c) => ({ nbf: at(c, "iat") + 30 })), accepted: true },
  { name: "not valid before 50 s from now", token: saying((c) => ({ nbf: at(c, "iat") + 60 })), everywhere: true },
  { name: "not valid before ten years from now", token: saying((c) => ({ nbf: at(c, "iat") + 315_360_000 })) },
  {
    name: "valid for an hour and a second",
    token: saying((c) => ({ exp: at(c, "iat") + hour + 1 })),
    everywhere: true,
  },
  { name: "valid for ten years", token: saying((c) => ({ exp: at(c, "iat") + 315_360_000 })) },
  { name: "expires when it is issued", token: saying((c) => ({ exp: at(c, "iat") })) },
  { name: "expires before it is issued", token: saying((c) => ({ exp: at(c, "iat") - 1 })) },
];

/** Whom it speaks for. */
export function subjectCases(uids: {
  readonly group: string;
  readonly role: string;
  readonly deleted: string;
}): readonly TokenCase[] {
  return [
    ...[undefined, null, "", 7, ["x"], {}, "/", "*", "%", "owner"].map(
      (sub): TokenCase => ({ name: `sub ${JSON.stringify(sub)}`, token: saying({ sub }) }),
    ),
    { name: "sub that nobody has", token: saying({ sub: "f".repeat(40) }), everywhere: true },
    { name: "sub of a deleted identity", token: saying({ sub: uids.deleted }), everywhere: true },
    { name: "sub of a group", token: saying({ sub: uids.group }), everywhere: true },
    { name: "sub of a role", token: saying({ sub: uids.role }) },
    { name: "sub in upper case", token: saying((c) => ({ sub: String(c.sub).toUpperCase() })) },
    { name: "sub with a slash behind", token: saying((c) => ({ sub: `${c.sub}/` })) },
    { name: "sub in a list", token: saying((c) => ({ sub: [c.sub] })) },
    ...[undefined, null, "", 7, ["x"], "j".repeat(129)].map(
      (jti): TokenCase => ({ name: `jti ${String(JSON.stringify(jti)).slice(0, 20)}`, token: saying({ jti }) }),
    ),
    { name: "jti of 128 characters", token: saying({ jti: "j".repeat(128) }), accepted: true },
  ];
}

const ALL = "f".repeat(64);
const uid = "a".repeat(40);
const uidsOf = (count: number) => Array.from({ length: count }, (_, n) => String(n).padStart(40, "0"));
const wrongLimits: readonly unknown[] = [
  null,
  "",
  7,
  true,
  [],
  {},
  { cap: null },
  { cap: "" },
  { cap: ALL.slice(1) },
  { cap: `${ALL}f` },
  { cap: ALL.toUpperCase() },
  { cap: [ALL] },
  { scope: null },
  { scope: uid },
  { scope: ["x"] },
  { scope: [7] },
  { scope: uidsOf(33) },
  { cap: ALL, scope: "*" },
  { cap: ALL, more: true },
];

/** What its bearer may use it for: a limit that is not understood must not become none. */
export const limitCases: readonly TokenCase[] = [
  ...wrongLimits.map(
    (lim): TokenCase => ({ name: `lim ${JSON.stringify(lim).slice(0, 30)}`, token: saying({ lim }), everywhere: true }),
  ),
  ...[null, "", uid, {}, ["x"], [7], uidsOf(33)].map(
    (map): TokenCase => ({ name: `map ${JSON.stringify(map).slice(0, 30)}`, token: saying({ map }) }),
  ),
  // Of an identity whose tokens were never revoked.
  ...[0, -1, 1.5, "1", null, true, 1, 1_800_000_000_000].map(
    (rev): TokenCase => ({ name: `rev ${JSON.stringify(rev)}`, token: saying({ rev }) }),
  ),
  { name: "lim with every capability", token: saying({ lim: { cap: ALL } }), accepted: true },
  { name: "map with as many mappings as a token may have", token: saying({ map: uidsOf(32) }), accepted: true },
  { name: "map of a mapping that nobody has", token: saying({ map: [uid] }), accepted: true },
];

/** Payloads that are no JSON object, or not in the one spelling. */
export const payloadCases: readonly TokenCase[] = [
  ...["[]", "1", "null", '"x"', "true", "{", "", "{}", "\u0000", "undefined"].map(
    (given): TokenCase => ({ name: `payload ${JSON.stringify(given)}`, token: payload(() => given) }),
  ),
  { name: "payload a list of claims", token: payload((c) => JSON.stringify([c])) },
  { name: "payload a list 2,500 deep", token: payload(() => "[".repeat(2_500) + "]".repeat(2_500)) },
  { name: "payload that never closes", token: payload(() => "[".repeat(5_000)) },
  { name: "payload behind a BOM", token: payload((c) => `\ufeff${JSON.stringify(c)}`), everywhere: true },
  { name: "payload behind a blank", token: payload((c) => ` ${JSON.stringify(c)}`) },
  { name: "payload twice", token: payload((c) => JSON.stringify(c).repeat(2)) },
  { name: "payload of UTF-16", token: payload((c) => Buffer.from(JSON.stringify(c), "utf16le")) },
  {
    name: "payload with bytes that are no UTF-8",
    token: payload((c) => patchBytes(JSON.stringify({ ...c, x: "##" }), "##", [0xc3, 0x28])),
  },
  {
    name: "payload with an overlong character",
    token: payload((c) => patchBytes(JSON.stringify({ ...c, x: "##" }), "##", [0xc0, 0xaf])),
  },
  {
    name: "payload with half a surrogate pair",
    token: payload((c) => patchBytes(JSON.stringify({ ...c, x: "###" }), "###", [0xed, 0xa0, 0x80])),
  },
  {
    name: "jti with a byte that is no UTF-8",
    token: payload((c) => patchBytes(JSON.stringify({ ...c, jti: "#" }), "#", [0xff])),
  },
  { name: "sub twice, ours last", token: rewritePayload(/"sub":/, '"sub":"x","sub":') },
  { name: "sub twice, ours first", token: rewritePayload(/"aud":/, '"sub":"x","aud":') },
  { name: "exp twice", token: rewritePayload(/"jti":/, '"exp":1,"jti":'), everywhere: true },
  { name: "an escape in a claim's name", token: rewritePayload(/"sub":/, '"\\u0073ub":') },
  { name: "an escape in a claim", token: rewritePayload(/"jti":"0/, '"jti":"\\u0030') },
  {
    name: "claims nobody asked for",
    token: payload((c) => JSON.stringify({ ...c, "https://x": { y: ["ü"] }, admin: true })),
    accepted: true,
  },
  {
    name: "a claim called __proto__",
    token: rewritePayload(/"jti":/, '"__proto__":{"sub":"x"},"jti":'),
    accepted: true,
  },
  { name: "claims inherited from one", token: rewritePayload(/"sub":"([0-9a-f]+)"/, '"__proto__":{"sub":"$1"}') },
];

function payload(of: (claims: Claims) => string | Uint8Array) {
  return (kit: TokenKit) => kit.token({ payload: of(kit.claims()) });
}

function rewritePayload(pattern: RegExp, replacement: string) {
  return payload((claims) => JSON.stringify(claims).replace(pattern, replacement));
}

function patchBytes(json: string, mark: string, bytes: readonly number[]): Buffer {
  const whole = Buffer.from(json);
  whole.set(bytes, whole.indexOf(mark));
  return whole;
}

function others(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `https://${i}.example.org`);
}
