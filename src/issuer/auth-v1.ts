// The handlers of Auth, version 1.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Auth, type RegistrationRequest, type WhoAmI, WhoAmISchema } from "#gen/chainguard/platform/auth/auth_pb.js";
import { groupRowV1 } from "../iam/groups/group-v1-view.js";
import { identities } from "../iam/identities/identity.js";
import { acceptInvite, requireInvite } from "../iam/people/accept-invite.js";
import { deletePerson } from "../iam/people/registration.js";
import { type RoomContext, requireRoomForInvite, requireRoomForLogin } from "../iam/people/room.js";
import { type SignIn, signIn } from "../iam/people/sign-in.js";
import { capabilityNamesIn } from "../iam/roles/capability-names.js";
import { roleRowV1 } from "../iam/roles/role-v1-view.js";
import { type CapabilitySet, intersectionOf } from "../kernel/capability-set.js";
import { type ApiError, invalidArgument, notFound, permissionDenied } from "../kernel/errors.js";
import type { Ids } from "../kernel/ids.js";
import type { QuotaLimits } from "../kernel/quotas.js";
import { isUidp } from "../kernel/uidp.js";
import type { Call } from "../pipeline/call.js";
import { prepared, serve } from "../pipeline/method-table.js";
import type { Quotas } from "../pipeline/quotas.js";
import type { RoleRow, Store, Tx } from "../store/port.js";
import { takeHeadlessSession } from "./oauth/headless.js";
import { bearerIn, type Exchanger } from "./sts/exchange.js";
import { type FailureLimiter, inviteFailureKey } from "./sts/failure-limiter.js";
import type { Proof } from "./sts/identify.js";

/** What the service needs. */
export interface AuthDeps {
  readonly exchanger: Pick<Exchanger, "verifyBearer" | "decide">;
  readonly ids: Ids;
  readonly store: Pick<Store, "read">;
  readonly quotas: Quotas;
  /** Whether people may register without an invite. */
  readonly open: boolean;
  /** Counts wrong codes of invites. */
  readonly guesses: FailureLimiter;
}

type PersonProof = Extract<Proof, { by: "person" }>;
type Registration = Pick<RegistrationRequest, "code" | "identityId">;

/** Auth, ready to be served. */
export function authV1({ exchanger, ids, store, quotas, open, guesses }: AuthDeps) {
  return serve(Auth, {
    validate: (_request, call) => whoAmI(call, quotas.limits),

    register: prepared({
      async prepare({ code, identityId }: Registration, { inbound, startMs }): Promise<Proof> {
        if (identityId !== "" && !isUidp(identityId)) {
          throw invalidArgument({ field: "identityId", description: "identityId must be a uid" });
        }
        const proof = await exchanger.verifyBearer(
          { identity: identityId, identityProvider: "" },
          bearerIn(inbound.header("authorization")),
          inbound.remoteAddress,
        );
        const context = { quotas, nowMs: startMs };
        await guesses.guard([inviteFailureKey(inbound.remoteAddress, code)], () =>
          store.read((tx) => requireRoomFor(tx, proof, code, context)),
        );
        return proof;
      },
      async handle({ code }: Registration, call, proof: Proof) {
        const { tx, startMs, inbound } = call;
        const { identity, group } = await guesses.guard([inviteFailureKey(inbound.remoteAddress, code)], () =>
          proof.by === "person"
            ? registered(tx, proof, code, { ids, nowMs: startMs })
            : joined(tx, proof, code, inbound.remoteAddress, startMs),
        );
        call.actorUid = identity;
        call.subjectUid = group === "" ? identity : group;
        return { identity, group };
      },
    }),

    async getHeadlessSession({ code }, { tx, startMs, responseHeader }) {
      responseHeader.set("cache-control", "no-store");
      const session = await takeHeadlessSession(tx, code, startMs);
      if (session === undefined) throw notYet();
      return session;
    },

    async delete({ id }, call) {
      const { tx, caller } = call;
      if (id !== caller.uid || !caller.unlimited) throw permissionDenied(`deleting ${id}`);
      call.subjectUid = id;
      await deletePerson(tx, id);
      return {};
    },
  });

  async function registered(
    tx: Tx,
    proof: PersonProof,
    code: string,
    context: { readonly ids: Ids; readonly nowMs: number },
  ) {
    const { identityUid, group = "" } = await signIn(tx, loginOf(proof, code), context);
    return { identity: identityUid, group };
  }

  function loginOf({ token: { issuer, subject, claims }, providerUid }: PersonProof, code: string): SignIn {
    return { issuer, subject, claims, providerUid, invite: code === "" ? undefined : code, register: open };
  }

  async function requireRoomFor(tx: Tx, proof: Proof, code: string, context: RoomContext): Promise<void> {
    if (proof.by === "person") return requireRoomForLogin(tx, loginOf(proof, code), context);
    const identity = await tx.identities.get(proof.identity);
    if (identity !== undefined) await requireRoomForInvite(tx, code, { person: identity }, context);
  }

  async function joined(tx: Tx, proof: Proof, code: string, address: string | undefined, nowMs: number) {
    const { identityUid } = await exchanger.decide(tx, proof, address);
    const identity = await tx.identities.get(identityUid);
    const invite = await requireInvite(tx, code, nowMs);
    if (identity === undefined) throw permissionDenied("accepting this invite");
    await acceptInvite(tx, invite, identity, { ids, nowMs });
    return { identity: identityUid, group: invite.groupUid };
  }
}

function notYet(): ApiError {
  return notFound(
    { noun: "login", type: "auth.chainguard.dev/HeadlessSession" },
    "",
    "there is no result of this login yet",
  );
}

// What the bearer of a token is told of itself.

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
    if (names.length > 0) told.push({ group: groupRowV1(group, limits), role: roleRowV1(role), capabilities: names });
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
