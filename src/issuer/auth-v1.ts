// The handlers of Auth, version 1.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Auth, type RegistrationRequest, type WhoAmI, WhoAmISchema } from "#gen/chainguard/platform/auth/auth_pb.js";
import type { DirectoryContext } from "../iam/directories/rights.js";
import { groupToProtoV1 } from "../iam/groups/group-v1.js";
import { finishDeletion } from "../iam/identities/deletion.js";
import { formatActorName, identities } from "../iam/identities/identity.js";
import { acceptInvite, requireInvite } from "../iam/people/accept-invite.js";
import { type RoomContext, requireRoomForInvite, requireRoomForLogin } from "../iam/people/join-quota.js";
import { deletePerson } from "../iam/people/registration.js";
import { type SignIn, sessionView, signIn } from "../iam/people/sign-in.js";
import { listCapabilityNames } from "../iam/roles/capability-names.js";
import { roleToProtoV1 } from "../iam/roles/role-v1.js";
import { type CapabilitySet, intersectionOf } from "../kernel/capability-set.js";
import { type ApiError, invalidArgument, notFound, notPermitted, permissionDenied } from "../kernel/errors.js";
import type { Ids } from "../kernel/ids.js";
import type { QuotaLimits } from "../kernel/quotas.js";
import { timestampOf } from "../kernel/time.js";
import { isUidp } from "../kernel/uidp.js";
import type { UnaryCall } from "../pipeline/call.js";
import { withOutcome, withPreparation } from "../pipeline/handlers.js";
import { serve } from "../pipeline/method-table.js";
import { renameErrorFields } from "../pipeline/operations.js";
import type { Quotas } from "../pipeline/resource/quota.js";
import { Reservation } from "../pipeline/resource/reservation.js";
import { groupKind } from "../store/iam/groups.js";
import { identityKind } from "../store/iam/identities.js";
import { roleBindingKind } from "../store/iam/role-bindings.js";
import { type RoleRow, roleKind } from "../store/iam/roles.js";
import type { Store } from "../store/store.js";
import type { Tx } from "../store/transaction.js";
import { type NoteTerminal, takeHeadlessSession } from "./oauth/headless.js";
import { type Exchanger, requireBearer } from "./sts/exchange.js";
import { type FailureLimiter, inviteFailureKey } from "./sts/failure-limiter.js";
import { type Proof, requireIssuedAfterRevocation } from "./sts/identify.js";

export interface AuthDeps {
  readonly exchanger: Pick<Exchanger, "verifyBearer" | "decide">;
  readonly ids: Ids;
  readonly store: Pick<Store, "read" | "write">;
  readonly quotas: Quotas;
  /** Whether people may register without an invite. */
  readonly open: boolean;
  /** Limits wrong invite codes. */
  readonly inviteLimiter: FailureLimiter;
  readonly noteTerminal: NoteTerminal;
}

type PersonProof = Extract<Proof, { by: "person" }>;
type HeadlessPoll = { readonly code: string };
type Registration = Pick<RegistrationRequest, "code" | "identityId">;

/** Creates the handlers of Auth, version 1. */
export function authV1({ exchanger, ids, store, quotas, open, inviteLimiter, noteTerminal }: AuthDeps) {
  return serve(
    Auth,
    {
      validate: (_request, call) => whoAmI(call, quotas.limits),

      register: withPreparation({
        async prepare({ code, identityId }: Registration, call): Promise<Proof> {
          const { inbound, startMs, trace } = call;
          if (identityId !== "" && !isUidp(identityId)) {
            throw invalidArgument({ field: "identityId", rule: "must be a uid" });
          }
          const bearer = requireBearer(inbound.header("authorization"));
          const asserted = { identity: identityId, identityProvider: "", trace, record: inbound.record };
          const proof = await exchanger.verifyBearer(asserted, bearer, inbound.remoteAddress).catch((error) => {
            throw renameErrorFields(error, { identity: "identityId" });
          });
          const reservation = new Reservation();
          call.reservation = reservation;
          const context = { quotas, nowMs: startMs, reservation };
          await inviteLimiter.guard([inviteFailureKey(inbound.remoteAddress, code)], () =>
            store.read((tx) => requireRoomFor(tx, proof, code, context)),
          );
          return proof;
        },
        async handle({ code }: Registration, { tx, startMs, inbound, reservation }, proof: Proof) {
          if (reservation?.mustRecount) await requireRoomFor(tx, proof, code, { quotas, nowMs: startMs });
          const { identity, group } = await inviteLimiter.guard([inviteFailureKey(inbound.remoteAddress, code)], () =>
            proof.by === "person"
              ? registerPerson(tx, proof, code, { ids, nowMs: startMs, quotas })
              : acceptAsIdentity(tx, proof, code, inbound.remoteAddress, startMs),
          );
          return withOutcome({ identity, group }, { subjectUid: group === "" ? identity : group, actorUid: identity });
        },
      }),

      getHeadlessSession: withPreparation({
        async prepare({ code }: HeadlessPoll, { inbound, startMs }): Promise<void> {
          // Browsers send this header, terminals do not. Another site could make the person's browser poll, and its
          // address would be taken for that of the terminal.
          if (inbound.header("sec-fetch-site") !== undefined) return;
          await noteTerminal(code, inbound.remoteAddress, startMs);
        },
        async handle({ code }: HeadlessPoll, { tx, startMs, responseHeader }) {
          responseHeader.set("cache-control", "no-store");
          const session = await takeHeadlessSession(tx, code, startMs);
          if (session === undefined) throw headlessSessionNotFound();
          return session;
        },
      }),

      async delete({ id }, call) {
        const { caller } = call;
        if (id !== caller.uid) throw permissionDenied(`deleting ${id}`);
        if (!caller.unlimited) throw notPermitted("deleting an identity needs a token that is not limited");
        const { person, isDeleted } = await deletePerson(call.tx, id, call.startMs);
        call.actorName = formatActorName(person);
        if (!isDeleted) call.finish = () => finishDeletion(store, id);
        return withOutcome({}, { subjectUid: id });
      },
    },
    {
      register: { body: { view: sessionView } },
      getHeadlessSession: { selfAuthenticating: true, ignoreUnknownQuery: true },
    },
  );

  async function registerPerson(tx: Tx, proof: PersonProof, code: string, context: DirectoryContext) {
    await requireIssuedAfterRevocation(tx, proof);
    const { identityUid, group = "" } = await signIn(tx, buildSignIn(proof, code), context);
    return { identity: identityUid, group };
  }

  function buildSignIn({ token: { issuer, subject, claims }, providerUid }: PersonProof, code: string): SignIn {
    const invite = code === "" ? undefined : code;
    // UserInfo is asked at logins in a browser alone.
    return { issuer, subject, claims, isPartial: true, providerUid, invite, register: open };
  }

  async function requireRoomFor(tx: Tx, proof: Proof, code: string, context: RoomContext): Promise<void> {
    if (proof.by === "person") {
      await requireIssuedAfterRevocation(tx, proof);
      return requireRoomForLogin(tx, buildSignIn(proof, code), context);
    }
    const identity = await tx.table(identityKind).find(proof.identity);
    if (identity !== undefined) await requireRoomForInvite(tx, code, { person: identity }, context);
  }

  async function acceptAsIdentity(tx: Tx, proof: Proof, code: string, address: string | undefined, nowMs: number) {
    const { identityUid } = await exchanger.decide(tx, proof, address);
    const identity = await tx.table(identityKind).find(identityUid);
    const invite = await requireInvite(tx, code, nowMs);
    if (identity === undefined) throw permissionDenied("accepting this invite");
    await acceptInvite(tx, invite, identity, { ids, nowMs });
    return { identity: identityUid, group: invite.groupUid };
  }
}

function headlessSessionNotFound(): ApiError {
  return notFound(
    { displayName: "login", type: "auth.chainguard.dev/HeadlessSession" },
    "",
    "there is no result of this login yet",
  );
}

/** The largest number of role bindings in the response; callers with more list them. Pending bindings are left out. */
const MAX_BINDINGS = 200;

type WhoAmICapability = NonNullable<MessageInitShape<typeof WhoAmISchema>["capabilities"]>[number];

/**
 * Describes the caller: its token, and what it may be used for.
 *
 * @param limits the quotas of organisations without limits of their own
 */
async function whoAmI(call: UnaryCall, limits: QuotaLimits): Promise<WhoAmI> {
  const { tx, caller, inbound } = call;
  const { principal } = caller;
  const row = await tx.table(identityKind).find(caller.uid);
  if (row === undefined) throw notFound(identities, caller.uid);
  const capabilities: WhoAmICapability[] = [];
  const namesOf = createNameCache();
  const roles = new Map<string, RoleRow>();
  for (const { groupUid, roleUid } of await tx
    .table(roleBindingKind)
    .findByPending(caller.uid, false, "", MAX_BINDINGS)) {
    const role = roles.get(roleUid) ?? (await tx.table(roleKind).find(roleUid));
    const group = await tx.table(groupKind).find(groupUid);
    if (role === undefined || group === undefined) continue;
    roles.set(roleUid, role);
    // The caller lacks capabilities that its token does not have or that are not effective there.
    const names = namesOf(role.capabilities, caller.rightsAt(groupUid));
    if (names.length > 0)
      capabilities.push({ group: groupToProtoV1(group, limits), role: roleToProtoV1(role), capabilities: names });
  }
  const { iss, aud, upstream } = decodeClaims(inbound.header("authorization") ?? "");
  return create(WhoAmISchema, {
    issuer: iss,
    subject: caller.uid,
    audience: [aud].flat(),
    expiry: timestampOf(principal.expiresAt * 1000),
    issuedAt: timestampOf(principal.issuedAt * 1000),
    capabilities: capabilities,
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

// Callers may have hundreds of bindings, most with the same role and rights.
function createNameCache(): (role: CapabilitySet, rights: CapabilitySet) => string[] {
  const known = new Map<string, string[]>();
  return (role, rights) => {
    const key = role + rights;
    let names = known.get(key);
    if (names === undefined) {
      names = listCapabilityNames(intersectionOf(role, rights));
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

// The caller authenticated with this token, which this service issued.
function decodeClaims(authorization: string): Claims {
  return JSON.parse(Buffer.from(authorization.split(".")[1] ?? "", "base64url").toString()) as Claims;
}
