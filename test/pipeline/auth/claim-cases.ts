// What API tokens alone say; all are in good form and signed by the service's own key. Those that tokens of other
// issuers share are in test/issuer/strangers.

import { LEEWAY_S, MAX_TOKEN_LIFE_S } from "../../../src/pipeline/auth/api-token.js";
import { audienceEdits, issuerEdits } from "../../issuer/strangers/texts.js";
import { EXPIRED, farTimes, type TimeLimits, wrongTimes } from "../../issuer/strangers/times.js";
import type { TokenKit } from "../../issuer/strangers/token-kit.js";
import type { TokenCase } from "./token-cases.js";

type Claims = Readonly<Record<string, unknown>>;

const saying = (changes: Claims | ((claims: Claims) => Claims)) => (kit: TokenKit) =>
  kit.token({ payload: kit.claims(typeof changes === "function" ? changes(kit.claims()) : changes) });
const text = (claims: Claims, name: "iss" | "aud") => String(claims[name]);

/** Who issued it and for whom. */
export const partyCases: readonly TokenCase[] = [
  ...Object.entries(issuerEdits).map(
    ([differs, edit]): TokenCase => ({
      name: `iss: ${differs}`,
      token: saying((c) => ({ iss: edit(text(c, "iss")) })),
      everywhere: differs === "another issuer",
    }),
  ),
  {
    name: "iss by another spelling of this machine",
    token: saying((c) => ({ iss: text(c, "iss").replace("127.0.0.1", "localhost") })),
  },
  ...Object.entries(audienceEdits).map(
    ([differs, edit]): TokenCase => ({
      name: `aud: ${differs}`,
      token: saying((c) => ({ aud: edit(text(c, "aud")) })),
      everywhere: differs === "another service",
    }),
  ),
  { name: "aud without its scheme", token: saying((c) => ({ aud: text(c, "aud").replace("http://", "") })) },
  { name: "aud a list of others", token: saying({ aud: ["https://a", "https://b"] }) },
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

const LIMITS: TimeLimits = { leewayS: LEEWAY_S, maxLifeS: MAX_TOKEN_LIFE_S };
const nowS = () => Math.floor(Date.now() / 1000);
const EVERYWHERE = ["has expired", "begins in the future", "lives too long"];

/** When it was issued and how long it is valid; exact limits are in authenticate.test.ts. */
export const timeCases: readonly TokenCase[] = [
  ...[...wrongTimes, ...farTimes].map(({ differs, rule, make }): TokenCase => {
    const times = () => make(nowS(), 300, LIMITS);
    // Without a time of issue, and before 1970, nothing was valid before it expired.
    const expired = rule === EXPIRED && times().iat !== undefined;
    return { name: differs, token: saying(() => ({ ...times() })), expired, everywhere: EVERYWHERE.includes(differs) };
  }),
  ...wrongTimes
    .filter(({ make }) => make(0, 0, LIMITS).iat !== undefined || make(0, 0, LIMITS).nbf !== undefined)
    .map(
      ({ differs, make }): TokenCase => ({
        name: `by 15 s not quite: ${differs}`,
        token: saying(() => ({ ...make(nowS(), -15, LIMITS) })),
        accepted: true,
        everywhere: differs === "has expired",
      }),
    ),
];

/** Whom it speaks for, and keys of other purposes. */
export function installationCases(uids: {
  readonly group: string;
  readonly role: string;
  readonly deleted: string;
  /** The kid of a key that seals page tokens. */
  readonly pageKid: string;
}): readonly TokenCase[] {
  return [
    { name: "the kid of a page token key", token: (kit) => kit.token({ header: kit.header({ kid: uids.pageKid }) }) },
    ...["/", "*", "%", "owner"].map((sub): TokenCase => ({ name: `sub ${sub}`, token: saying({ sub }) })),
    { name: "sub that nobody has", token: saying({ sub: "f".repeat(40) }), everywhere: true },
    { name: "sub of a deleted identity", token: saying(() => ({ sub: uids.deleted })), everywhere: true },
    { name: "sub of a group", token: saying(() => ({ sub: uids.group })), everywhere: true },
    { name: "sub of a role", token: saying(() => ({ sub: uids.role })) },
    { name: "sub in upper case", token: saying((c) => ({ sub: String(c.sub).toUpperCase() })) },
    { name: "sub with a slash behind", token: saying((c) => ({ sub: `${c.sub}/` })) },
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
