// What the bearer of a token is told of itself.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type WhoAmI, WhoAmISchema } from "#gen/chainguard/platform/auth/auth_pb.js";
import { groupToProtoV1 } from "../iam/groups/group-v1.js";
import { identities } from "../iam/identities/identity.js";
import { capabilityNamesIn } from "../iam/roles/capability-names.js";
import { roleToProtoV1 } from "../iam/roles/role-v1.js";
import { type CapabilitySet, intersectionOf } from "../kernel/capability-set.js";
import { notFound } from "../kernel/errors.js";
import type { QuotaLimits } from "../kernel/quotas.js";
import type { Call } from "../pipeline/call.js";
import type { RoleRow } from "../store/port.js";

/** At most this many bindings are told of; who has more lists them. Those that are pending are told of nowhere but there. */
const MAX_TOLD = 200;

type Told = NonNullable<MessageInitShape<typeof WhoAmISchema>["capabilities"]>[number];

/**
 * Tells the caller of itself: its token, and what that may be used for.
 *
 * @param limits the quotas of organisations that have none of their own
 */
export async function whoAmI(call: Call, limits: QuotaLimits): Promise<WhoAmI> {
  const { tx, caller, inbound } = call;
  const { principal } = caller;
  const row = await tx.identities.get(caller.uid);
  if (row === undefined) throw notFound(identities, caller.uid);
  const told: Told[] = [];
  const namesOf = cachedNames();
  const roles = new Map<string, RoleRow>();
  for (const { groupUid, roleUid } of await tx.roleBindings.byPending(caller.uid, false, "", MAX_TOLD)) {
    const role = roles.get(roleUid) ?? (await tx.roles.get(roleUid));
    const group = await tx.groups.get(groupUid);
    if (role === undefined || group === undefined) continue;
    roles.set(roleUid, role);
    // What the token is not good for, or does not count there, the caller does not have.
    const names = namesOf(role.capabilities, caller.rightsAt(groupUid));
    if (names.length > 0)
      told.push({ group: groupToProtoV1(group, limits), role: roleToProtoV1(role), capabilities: names });
  }
  const { iss, aud, upstream } = claimsOf(inbound.header("authorization") ?? "");
  return create(WhoAmISchema, {
    issuer: iss,
    subject: caller.uid,
    audience: [aud].flat(),
    expiry: timestampFromMs(principal.expiresAt * 1000),
    issuedAt: timestampFromMs(principal.issuedAt * 1000),
    capabilities: told,
    email: row.email,
    ...(upstream && {
      profile: {
        name: upstream.name ?? "",
        picture: upstream.picture ?? "",
        givenName: upstream.given_name ?? "",
        familyName: upstream.family_name ?? "",
      },
    }),
  });
}

// Of hundreds of bindings most have the same role and the same rights.
function cachedNames(): (role: CapabilitySet, rights: CapabilitySet) => string[] {
  const known = new Map<string, string[]>();
  return (role, rights) => {
    const key = role + rights;
    let names = known.get(key);
    if (names === undefined) {
      names = capabilityNamesIn(intersectionOf(role, rights));
      known.set(key, names);
    }
    return names;
  };
}

interface Claims {
  readonly iss: string;
  readonly aud: string | string[];
  readonly upstream?: Readonly<Record<string, string>>;
}

// The token was verified before the call came here, and it is one of ours.
function claimsOf(authorization: string): Claims {
  return JSON.parse(Buffer.from(authorization.split(".")[1] ?? "", "base64url").toString()) as Claims;
}
