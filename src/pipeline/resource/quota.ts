// Quotas: which methods create what they limit, as the definitions of the kinds declare it. Only these methods are
// checked. Events of a registry and commands on the host are not, but their rows count.
// Logins that create people or role bindings check by themselves (src/iam/people/join-quota.ts).
import type { DescMessage, DescMethod, DescMethodUnary, Message, MessageShape } from "@bufbuild/protobuf";
import { quotaExceeded } from "../../kernel/errors.js";
import {
  limitsFor,
  type OrganisationQuota,
  type QuotaDefinition,
  type QuotaKind,
  type QuotaLimits,
  quotas,
} from "../../kernel/quotas.js";
import { rootOf } from "../../kernel/uidp.js";
import { groupKind } from "../../store/iam/groups.js";
import type { Tx } from "../../store/transaction.js";
import type { Caller } from "../auth/caller.js";
import { type RoomCheck, readAuthRule } from "../method-table.js";
import { createReservedCounts, type Reservation } from "./reservation.js";

/** What a request adds; the quota is that of the kind unless another is named. */
export type RequestedAddition = Omit<Addition, "kind"> & { readonly kind?: QuotaKind };

type Additions = RequestedAddition | readonly RequestedAddition[] | undefined;

/** A method that creates resources of a kind, and how many of them a request creates. */
export interface CreatingMethod {
  readonly method: DescMethod;
  /** Undefined for a request that the caller may not make: the handler rejects it with the right error. */
  readonly addition: (request: Message, caller: Caller, tx: Tx) => Additions | Promise<Additions>;
}

/** Declares a method that creates resources. */
export function creates<I extends DescMessage>(
  method: DescMethodUnary<I>,
  addition: (request: MessageShape<I>, caller: Caller, tx: Tx) => Additions | Promise<Additions>,
): CreatingMethod {
  return { method, addition: addition as CreatingMethod["addition"] };
}

/**
 * Declares a method whose scope is the parent of the new resource.
 *
 * @param count how many a request creates; one unless given
 * @throws TypeError when the method declares no scope.
 */
export function createsInScope<I extends DescMessage>(
  method: DescMethodUnary<I>,
  count: (request: MessageShape<I>) => Pick<Addition, "most" | "exact"> = () => ({}),
): CreatingMethod {
  const auth = readAuthRule(method);
  const scope = auth.mode === "guarded" ? auth.scope : undefined;
  if (scope === undefined) throw new TypeError(`${method} has no scope`);
  return creates(method, (request) => ({ ownerUid: rootOf(scope.of(request)), ...count(request) }));
}

/**
 * Builds the checks that run before a creating method.
 *
 * @returns for each method its check; undefined for a method that creates nothing a quota limits
 */
export function buildRoomChecks(
  definitions: readonly {
    readonly kind?: { readonly quota?: OrganisationQuota };
    readonly createdBy?: readonly CreatingMethod[];
  }[],
  quotas: Quotas,
): (method: DescMethod) => RoomCheck | undefined {
  const checks = new Map<string, RoomCheck>();
  for (const { kind, createdBy = [] } of definitions) {
    const quota = kind?.quota;
    if (quota === undefined) continue;
    for (const { method, addition } of createdBy) {
      checks.set(betaName(method), async (request, caller, tx, reservation) => {
        const added = (await addition(request, caller, tx)) ?? [];
        for (const one of "ownerUid" in added ? [added] : added) {
          await quotas.requireRoom(tx, { kind: quota, ...one }, reservation);
        }
      });
    }
  }
  return (method) => checks.get(betaName(method));
}

function betaName({ parent, name }: DescMethod): string {
  return `${parent.typeName.replace(".v2.", ".v2beta1.")}.${name}`;
}

// The count is read before the unit of work that creates: within it, all who create something in one organisation would
// write after reading the same counter, and lose against each other. Where a limit is near, the unit counts again, and
// those that lose see what the others created. Until then there is room for all that the calls of this process are about
// to create, and for some of other processes.

/** From this share of a limit on, the unit of work that creates counts. */
const NEAR = 0.95;
/** Below this limit it always counts: its share would leave no room for the calls of other processes. */
const SMALL_LIMIT = 1_000;

/** What a call would add to what a quota limits. */
export interface Addition {
  readonly kind: QuotaKind;
  /** The root group of the organisation, or the person or the identity where the quota is theirs. */
  readonly ownerUid: string;
  /** The root group of the organisation in which an identity's quota counts. */
  readonly rootUid?: string;
  /** How many things at most; 1 unless set. */
  readonly most?: number;
  /** How many exactly, where some of them may exist already; read only where `most` are too many. */
  readonly exact?: (tx: Tx) => Promise<number>;
}

function describeOwner(per: QuotaDefinition["per"], uid: string): [subject: string, owner: string] {
  switch (per) {
    case "organisation":
      return [`group:${uid}`, "the organisation"];
    case "person":
      return [`identity:${uid}`, "a person"];
    case "identity":
      return [`identity:${uid}`, "an identity"];
  }
}

export type Quotas = ReturnType<typeof createQuotas>;

/**
 * Creates the quotas from what the settings say; an organisation's own limits take their place.
 *
 * @param onRejection called with the kind of each addition that is rejected, for metrics
 */
export function createQuotas(limits: QuotaLimits, onRejection: (kind: QuotaKind) => void = () => {}) {
  const reserved = createReservedCounts();
  return {
    /** What the settings say. */
    limits,

    /**
     * Makes sure that there is room for `addition`. Call it in a read, and only for callers who may create
     * the resource: others must not learn whether the quota is full. Where `reservation.mustRecount` is set then, call
     * it again in the transaction that creates, before anything is created.
     *
     * @param reservation what the call is about to create; in the transaction that creates, nothing
     * @throws ApiError RESOURCE_EXHAUSTED with QuotaFailure
     */
    async requireRoom(
      tx: Tx,
      { kind, ownerUid, rootUid = "", most = 1, exact }: Addition,
      reservation?: Reservation,
    ): Promise<void> {
      const { per, displayName } = quotas[kind];
      // Reserved before the count is read, so that no other call is missing in both.
      const others =
        reservation === undefined ? 0 : reserved.reserve(`${kind} ${ownerUid} ${rootUid}`, most, reservation);
      const own = per === "organisation" ? (await tx.table(groupKind).find(ownerUid))?.resourceLimits : undefined;
      const limit = limitsFor(own, limits)[kind];
      const used = await tx.usage.count(kind, ownerUid, limit, rootUid);
      const isNear = limit < SMALL_LIMIT || used + others + most > limit * NEAR;
      if (isNear && reservation !== undefined) reservation.mustRecount = true;
      if (used + most <= limit) return;
      const more = exact === undefined ? most : await exact(tx);
      if (more === 0 || used + more <= limit) return;
      const [subject, owner] = describeOwner(per, ownerUid);
      const rule = `${owner}'s limit of ${displayName} is ${limit}, and ${more} more would exceed it`;
      onRejection(kind);
      throw quotaExceeded(subject, kind, rule);
    },
  };
}
