// The handlers of Auth, version 1.
import { Auth, type RegistrationRequest } from "#gen/chainguard/platform/auth/auth_pb.js";
import { acceptInvite, requireInvite } from "../iam/people/accept-invite.js";
import { type RoomContext, requireRoomForInvite, requireRoomForLogin } from "../iam/people/join-quota.js";
import { deletePerson } from "../iam/people/registration.js";
import { type SignIn, signIn } from "../iam/people/sign-in.js";
import { type ApiError, invalidArgument, notFound, permissionDenied } from "../kernel/errors.js";
import type { Ids } from "../kernel/ids.js";
import { isUidp } from "../kernel/uidp.js";
import { prepared, serve } from "../pipeline/method-table.js";
import type { Quotas } from "../pipeline/quotas.js";
import type { Store, Tx } from "../store/port.js";
import { inviteFailureKey } from "./invite-failures.js";
import { takeHeadlessSession } from "./oauth/headless.js";
import { bearerIn } from "./sts/bearer.js";
import type { Exchanger } from "./sts/exchange.js";
import type { Proof } from "./sts/identify.js";
import type { Refusals } from "./sts/refusals.js";
import { whoAmI } from "./who-am-i.js";

/** What the service needs. */
export interface AuthDeps {
  readonly exchanger: Pick<Exchanger, "verifyBearer" | "decide">;
  readonly ids: Ids;
  readonly store: Pick<Store, "read">;
  readonly quotas: Quotas;
  /** Whether people may register without an invite. */
  readonly open: boolean;
  /** Counts wrong codes of invites. */
  readonly guesses: Refusals;
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
