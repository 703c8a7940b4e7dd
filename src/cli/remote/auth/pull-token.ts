// `arbor auth pull-tokens`: registry passwords that are valid for weeks, for machines that cannot get OIDC tokens. Each
// is an identity with a static key, which signs one token, the password, and is not stored.
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  CreateIdentityRequestSchema,
  DeleteIdentityRequestSchema,
  GetIdentityRequestSchema,
  IdentitiesService,
  ListIdentitiesRequestSchema,
  RelationshipType,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import {
  CreateRoleBindingRequestSchema,
  RoleBindingsService,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { builtinRoleUid } from "../../../kernel/ids.js";
import { timestampOf } from "../../../kernel/time.js";
import { Code, CommandError, invalidFlag } from "../../errors.js";
import { confirm } from "../../output/confirm.js";
import { formatNamed } from "../../output/describe.js";
import { createListFormatter, formatResponse } from "../../output/format.js";
import { type CommonFlags, isTable } from "../flags.js";
import { addColumn, createColumn } from "../iam/columns.js";
import { findLastSeen } from "../iam/last-seen.js";
import { type ColumnFlags, selectColumns } from "../iam/select-columns.js";
import { readPages } from "../method-call.js";
import { fetchIssuer, resolveApi } from "../service.js";
import { type Session, withSession } from "../session.js";

const PREFIX = "pull-token-";
/** The issuer of the passwords. It is no service, because each password has its own key. */
const ISSUER = "https://pull-token.invalid";
const PAGE_SIZE = 200;

const HOUR_MS = 60 * 60 * 1000;
const UNITS_MS: Readonly<Record<string, number>> = { h: HOUR_MS, d: 24 * HOUR_MS };
const MAX_HOURS = 8760;

/** The flags of `arbor auth pull-tokens create`. */
export interface CreateFlags extends CommonFlags {
  readonly group: string;
  readonly name?: string;
  readonly ttl: string;
}

/**
 * `arbor auth pull-tokens create`: prints the name and the password, which cannot be shown again.
 *
 * @throws CommandError INVALID_ARGUMENT for an invalid time to live; the error of the service
 */
export async function createPullToken(flags: CreateFlags): Promise<void> {
  const nowS = Math.floor(Date.now() / 1000);
  const expiresS = nowS + parseLifetimeMs(flags.ttl) / 1000;
  const api = resolveApi(flags);
  const audience = await fetchIssuer(api);
  if (audience === undefined) throw new CommandError(Code.Unknown, `${api} does not name its issuer`);
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const subject = randomBytes(16).toString("hex");
  const keys = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "1", alg: "RS256", use: "sig" }] };
  await withSession(flags, async (session) => {
    const identity = create(CreateIdentityRequestSchema, {
      parent: flags.group,
      identity: {
        name: PREFIX + (flags.name ?? subject.slice(0, 8)),
        description: "Pulls from the registry with a password",
        relationship: {
          case: "staticKeys",
          value: {
            issuer: ISSUER,
            subject,
            issuerKeys: JSON.stringify(keys),
            expirationTime: timestampOf(expiresS * 1000),
            audiences: [audience],
          },
        },
      },
    });
    const { uid, name } = await session.call(IdentitiesService.method.createIdentity, identity);
    const identityUid = String(uid);
    await bindPullRole(session, flags.group, identityUid);
    const claims = { iss: ISSUER, sub: subject, aud: audience, iat: nowS, exp: expiresS };
    const expireTime = new Date(expiresS * 1000).toISOString();
    const response = { name: String(name), username: identityUid, password: signJwt(claims, privateKey), expireTime };
    const { write, terminal } = session.output;
    await write(formatResponse(flags.output, response, () => Object.entries(response), terminal));
  });
}

// Without its binding the identity is useless, so it is deleted after a failure.
async function bindPullRole({ call }: Session, group: string, identityUid: string): Promise<void> {
  const roleBinding = { identityUid, roleUid: builtinRoleUid("registry.pull") };
  try {
    await call(
      RoleBindingsService.method.createRoleBinding,
      create(CreateRoleBindingRequestSchema, { parent: group, roleBinding }),
    );
  } catch (error) {
    const request = create(DeleteIdentityRequestSchema, { uid: identityUid });
    // The caller may not have the right to delete identities. The first error is thrown, because it says more.
    await call(IdentitiesService.method.deleteIdentity, request).catch(() => {});
    throw error;
  }
}

function signJwt(claims: object, key: KeyObject): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const input = `${part({ alg: "RS256", kid: "1", typ: "JWT" })}.${part(claims)}`;
  return `${input}.${sign("sha256", Buffer.from(input), key).toString("base64url")}`;
}

function parseLifetimeMs(ttl: string): number {
  const match = /^(\d{1,4})([hd])$/.exec(ttl);
  const ms = Number(match?.[1]) * (UNITS_MS[match?.[2] ?? ""] ?? 0);
  if (ms > 0 && ms <= MAX_HOURS * HOUR_MS) return ms;
  throw invalidFlag("--ttl", `must be a number of h or d, at most ${MAX_HOURS}h`);
}

/** The flags of `arbor auth pull-tokens list`. */
export interface ListFlags extends CommonFlags, ColumnFlags {
  readonly group?: string;
}

/** The columns of the list. */
export const columns = [
  createColumn("NAME", "name"),
  createColumn("EXPIRES", "expireTime"),
  createColumn("LAST SEEN", "lastSeenTime"),
  createColumn("UID", "uid"),
];
const created = createColumn("CREATED", "createTime");

/** `arbor auth pull-tokens list`: the pull tokens that the caller may see, or those of a group and its descendants. */
export async function listPullTokens({ group, ...flags }: ListFlags): Promise<void> {
  const isShort = flags.output !== "wide" && flags.columns === undefined;
  const shown = selectColumns(undefined, isShort ? columns : addColumn(columns, created), flags);
  await withSession(flags, async ({ call, output }) => {
    const list = createListFormatter(flags.output, "pullTokens", shown, output.terminal);
    const request = create(ListIdentitiesRequestSchema, {
      relationshipType: RelationshipType.STATIC,
      orderBy: "name",
      pageSize: PAGE_SIZE,
      ...(group !== undefined && { uidp: { descendantsOf: group } }),
    });
    for await (const { identities = [] } of readPages(call, IdentitiesService.method.listIdentities, request))
      await output.write(list.page((identities as JsonObject[]).filter(isPullToken).map(toRow)));
    await output.write(list.end({}));
  });
}

function toRow(identity: JsonObject): JsonObject {
  const { uid, name, staticKeys, createTime } = identity;
  const { expirationTime = "" } = staticKeys as JsonObject;
  return {
    uid: uid ?? "",
    name: name ?? "",
    expireTime: expirationTime,
    createTime: createTime ?? "",
    lastSeenTime: findLastSeen(identity),
  };
}

/** Whether an identity is a pull token. */
export function isPullToken({ name, staticKeys }: JsonObject): boolean {
  return String(name).startsWith(PREFIX) && (staticKeys as JsonObject | undefined)?.issuer === ISSUER;
}

/** The flags of `arbor auth pull-tokens revoke`. */
export interface RevokeFlags extends CommonFlags {
  /** Whether to skip the confirmation. */
  readonly yes?: boolean;
}

/**
 * `arbor auth pull-tokens revoke`: deletes the identity and its bindings.
 *
 * @throws CommandError INVALID_ARGUMENT for another identity; the error of the service
 */
export async function revokePullToken(text: string, { yes = false, ...flags }: RevokeFlags): Promise<void> {
  await withSession(flags, async ({ call, output }) => {
    const request = create(GetIdentityRequestSchema, { uid: text });
    const identity = await call(IdentitiesService.method.getIdentity, request);
    if (!isPullToken(identity)) throw invalidFlag("uid", `${text} is no pull token`);
    const uid = String(identity.uid);
    if (!yes)
      await confirm(
        `Revoke ${formatNamed("pull token", String(identity.name), uid)}?`,
        undefined,
        "nothing was revoked",
      );
    await call(IdentitiesService.method.deleteIdentity, create(DeleteIdentityRequestSchema, { uid }));
    const empty = formatResponse(flags.output, {}, () => [], output.terminal);
    await output.write(isTable(flags.output) ? `revoked ${uid}\n` : empty);
  });
}
