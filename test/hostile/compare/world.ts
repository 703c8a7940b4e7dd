// What both services have in them before requests are compared, made by the same commands and calls.
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { getOption, hasOption } from "@bufbuild/protobuf";
import { CapabilitySchema, name as capabilityName } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { builtinRoleUid } from "../../../src/kernel/ids.js";
import { createKnown, type KnownThings } from "../../contract/fuzz-world.js";
import { CLIENT } from "../../issuer/sts/exchange-world.js";
import { signToken } from "../../support/local-issuer.js";
import { tempDir } from "../../support/temp-dir.js";
import { BASE_URL, type Side } from "./side.js";

/** An issuer whose keys are in a file, and one that cannot be reached. */
export const ISSUER = "https://issuer.example";
export const UNREACHABLE_ISSUER = "http://127.0.0.1:9";
/** An origin whose scripts may call. */
export const ORIGIN = "https://app.example";

/** The tokens of callers who may do different things; their names are those of the requests they are sent with. */
export interface Tokens {
  readonly owner: string;
  readonly viewer: string;
  readonly nobody: string;
  readonly stranger: string;
  readonly expired: string;
  readonly otherAudience: string;
}

/** What is in one service. */
export interface Contents {
  /** A verified organisation that the owner may do everything in, and another. */
  readonly organisation: string;
  readonly foreign: string;
  readonly repo: string;
  readonly provider: string;
  /** An identity that tokens of the issuer with the subject `ci` may assume, and one of the issuer that cannot be reached. */
  readonly identity: string;
  readonly unreachable: string;
  /** An invite of the organisation. */
  readonly inviteCode: string;
  readonly tokens: Tokens;
  /** Tokens of people by their uid. */
  readonly people: ReadonlyMap<string, string>;
  readonly known: KnownThings;
}

/** The keys of the issuers, which both sides trust, and the settings that say so. */
export interface Issuers {
  readonly settings: Readonly<Record<string, string>>;
  token(claims: Readonly<Record<string, unknown>>): string;
}

const VIEWER = builtinRoleUid("viewer");
const HOUR_MS = 3_600_000;
const PEOPLE = 24;
const WITHOUT_REQUEST = 12;

/** Creates the issuers. */
export function createIssuers(): Issuers {
  const folder = tempDir();
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwk = { ...publicKey.export({ format: "jwk" }), kid: "key-0", alg: "ES256", use: "sig" };
  const keys = join(folder, "issuer.jwks");
  const providers = join(folder, "providers.json");
  writeFileSync(keys, JSON.stringify({ keys: [jwk] }));
  writeFileSync(providers, JSON.stringify([{ name: "people", title: "People", issuer: ISSUER, clientId: CLIENT }]));
  return {
    settings: {
      issuerKeys: `${ISSUER}=${keys}`,
      loginProviders: providers,
      trustedIssuers: UNREACHABLE_ISSUER,
      registration: "open",
    },
    token: (claims) => tokenOf(privateKey, claims),
  };
}

function tokenOf(key: KeyObject, claims: Readonly<Record<string, unknown>>): string {
  const nowS = Math.floor(Date.now() / 1000);
  const all = { iss: ISSUER, aud: BASE_URL, iat: nowS, exp: nowS + 3_600, ...claims };
  return signToken({ alg: "ES256", kid: "key-0", typ: "JWT" }, all, key);
}

/** Makes what is in a service. */
export async function fillSide(side: Side, issuers: Issuers): Promise<Contents> {
  const bootstrap = async (org: string) =>
    JSON.parse(await side.command(["bootstrap", "--org", org, "-o", "json"])) as Record<string, string>;
  const { group: organisation = "", identity: ownerUid = "", token: owner = "" } = await bootstrap("acme.example");
  const { group: foreign = "", token: stranger = "" } = await bootstrap("other.example");
  await side.command(["admin", "groups", "verify", organisation]);
  const capabilities = CapabilitySchema.values
    .filter((value) => hasOption(value, capabilityName))
    .flatMap((value) => ["--capability", getOption(value, capabilityName)]);
  const role =
    (await side.command(["admin", "roles", "create", ...capabilities, "-o", "json"])).match(/[0-9a-f]{40}/)?.[0] ?? "";
  const bind = (identity: string, roleUid: string, ...more: string[]) =>
    side.command(["admin", "bind", "--identity", identity, "--role", roleUid, "--group", organisation, ...more]);
  await bind(ownerUid, role, "--internal");
  const tokenFor = async (identity: string, more: readonly string[] = [], skewMs = 0) =>
    (await side.command(["admin", "token", "--identity", identity, ...more], skewMs)).trim();

  async function call(method: string, path: string, body: object, token = owner): Promise<Record<string, string>> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const response = await fetch(side.url + path, { method, headers, body: JSON.stringify(body) });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${side.name}: ${method} ${path}: ${response.status} ${answer}`);
    return JSON.parse(answer === "" ? "{}" : answer) as Record<string, string>;
  }
  const create = async (collection: string, body: object, parent = organisation) =>
    (await call("POST", `/${collection}/${parent}`, body)).uid ?? "";
  const identityOf = (name: string, issuer: string) =>
    create("iam/v2beta1/identities", { name, claimMatch: { issuer, subject: name } });

  const viewerUid = await identityOf("viewer", ISSUER);
  const nobodyUid = await identityOf("nobody", ISSUER);
  const identity = await identityOf("ci", ISSUER);
  const unreachable = await identityOf("unreachable", UNREACHABLE_ISSUER);
  await bind(viewerUid, VIEWER);
  await bind(identity, VIEWER);
  const repo = await create("registry/v2beta1/repos", { name: "application" });
  const oidc = { issuer: "https://login.example", clientId: CLIENT, clientSecret: "secret" };
  const provider = await create("iam/v2beta1/identityProviders", { name: "login", oidc, defaultRole: VIEWER });
  const invite = await call("POST", `/iam/v2beta1/groupInvites/${organisation}`, {
    roleUid: VIEWER,
    ttl: "86400s",
  });

  const people = new Map<string, string>();
  const without: string[] = [];
  for (let n = 0; n < PEOPLE; n++) {
    const bearer = issuers.token({
      sub: `person ${n}`,
      aud: [CLIENT, BASE_URL],
      azp: CLIENT,
      email: `p${n}@acme.example`,
    });
    const { identity: uid = "" } = await call("POST", "/auth/v1/register", {}, bearer);
    const { token = "" } = await call("POST", `/sts/exchange?aud=${BASE_URL}`, {}, bearer);
    if (n < WITHOUT_REQUEST) without.push(token);
    else people.set(uid, token);
  }
  const expired = await tokenFor(viewerUid, [], -2 * HOUR_MS);
  const tokens = {
    ...{ owner, stranger, expired },
    viewer: await tokenFor(viewerUid),
    nobody: await tokenFor(nobodyUid),
    otherAudience: await tokenFor(viewerUid, ["--audience", "https://elsewhere.example"]),
  };
  const known = createKnown({ delete: [...people.keys()], asking: without, inviteCodes: [invite.code ?? ""] });
  return {
    ...{ organisation, foreign, repo, provider, identity, unreachable, tokens, people, known },
    inviteCode: invite.code ?? "",
  };
}
