// Whether an identity may do what is asked, and why.
import { Effect } from "#gen/arbor/access/v1/access_pb.js";
import { invalidArgument, permissionDenied } from "../../kernel/errors.js";
import { isUidp, lineageOf } from "../../kernel/uidp.js";
import { addMappedGrants, mayCallAt } from "../../pipeline/auth/authorize.js";
import { type Caller, effectiveGrants } from "../../pipeline/auth/caller.js";
import type { UnaryCall } from "../../pipeline/call.js";
import type { NeededCapability } from "../../pipeline/method-table.js";
import type { GroupMappingRow } from "../../store/iam/group-mappings.js";
import type { IdentityRow } from "../../store/iam/identities.js";
import { scimUserKind } from "../../store/iam/scim-users.js";
import type { Tx } from "../../store/transaction.js";
import {
  describeBindings,
  describeLimited,
  describeMapping,
  type GrantInit,
  type GrantView,
  grantsAt,
} from "./grants.js";
import { buildHolder, type Holder, Lookups, listBindings, listProviders } from "./holder.js";
import type { Question } from "./question.js";

/** The answer to a question. */
export interface Answer {
  readonly allowed: boolean;
  readonly missing: readonly NeededCapability[];
  /** Whether something was left out, also of the explanation where it was read. */
  readonly isPartial: () => boolean;
  readonly unconfirmed: boolean;
  /** When it is no longer allowed, as things are now, in epoch milliseconds; null where it will be for ever. */
  readonly endTimeMs: number | null;
  /** Reads what grants the needed capabilities. */
  readonly explain: () => Promise<GrantInit[]>;
}

/** The most grants that an explanation has. */
const MAX_GRANTS = 200;

/**
 * Answers a question about an identity.
 *
 * @param identity its uid; empty for the caller
 * @param resource the uid of the resource; empty for a method that can be called without one
 * @throws ApiError INVALID_ARGUMENT for an identity that is no uid, PERMISSION_DENIED where the caller asks about another
 * identity and may not list the bindings at the resource.
 */
export async function answerQuestion(
  question: Question,
  identity: string,
  resource: string,
  call: UnaryCall,
): Promise<Answer> {
  if (identity !== "" && !isUidp(identity)) {
    throw invalidArgument({ field: "identity", rule: "must be a uid, such as the service assigns" });
  }
  // What needs no capability is allowed to everybody, so that the answer does not tell whether the identity exists.
  if (question.capabilities.length === 0 || resource === "") {
    const explain = async () => [];
    return { allowed: true, missing: [], isPartial: () => false, unconfirmed: false, endTimeMs: null, explain };
  }
  if (identity === "" || identity === call.caller.uid) return answerForCaller(question, resource, call);
  return answerForOther(question, identity, resource, call);
}

async function answerForCaller(question: Question, resource: string, call: UnaryCall): Promise<Answer> {
  const { tx } = call;
  const { principal, uid } = call.caller;
  const lineage = lineageOf(resource);
  // Not by `callerAt`: whoever asks whether a pending binding would count has not used it.
  const rows = await addMappedGrants(principal, tx.access.findGrantsAt(uid, lineage), tx);
  const caller = call.caller.withGrants(rows);
  const view: GrantView = { lookups: new Lookups(tx, undefined), needed: question.capabilities, own: true };
  const explain = async () => {
    if (!caller.unlimited) {
      const grants = grantsAt(effectiveGrants(principal, rows), resource);
      return sortByGroup(await describeLimited(grants, caller, view, MAX_GRANTS));
    }
    const bindings = await tx.accessQuestions.findBindingsAt(uid, lineage);
    const grants = await describeBindings({ caller, bindings }, view, MAX_GRANTS);
    for (const mapping of await findOwnMappings(call)) {
      if (!lineage.includes(mapping.scope)) continue;
      const grant = await describeMapping(mapping, Effect.COUNTS, view);
      if (grant) grants.push(grant);
    }
    return sortByGroup(grants).slice(0, MAX_GRANTS);
  };
  return { ...decide(question, caller, resource), isPartial: () => false, unconfirmed: false, explain };
}

// Those of higher groups first: all groups are in one line.
function sortByGroup(grants: GrantInit[]): GrantInit[] {
  const lengthOf = ({ group }: GrantInit) => group?.uid?.length ?? 0;
  return grants.sort((a, b) => lengthOf(a) - lengthOf(b));
}

/** The mappings whose groups the token of the caller says that it is in, as they are stored now, where that counts. */
export async function findOwnMappings({ tx, caller }: UnaryCall): Promise<GroupMappingRow[]> {
  const { principal, providerUid } = caller;
  if (providerUid === null || (await tx.table(scimUserKind).hasAny(providerUid))) return [];
  const mappings = await tx.accessQuestions.findMappings(principal.mappings ?? []);
  return mappings.filter((mapping) => mapping.providerUid === providerUid);
}

/**
 * The provider whose mappings may count for a person, if the person's next token has the group, where the asker may list them.
 * If its directory sends people by SCIM, the role bindings that it manages say what counts.
 */
export async function findMappingProvider(
  identity: IdentityRow | undefined,
  { tx, caller }: UnaryCall,
): Promise<string | undefined> {
  const providerUid = identity?.providerUid ?? undefined;
  if (providerUid === undefined || !caller.holds(listProviders, providerUid)) return undefined;
  return (await tx.table(scimUserKind).hasAny(providerUid)) ? undefined : providerUid;
}

async function answerForOther(
  question: Question,
  identity: string,
  resource: string,
  call: UnaryCall,
): Promise<Answer> {
  const { tx } = call;
  const { asker, groups, partial } = await findSeenGroups(resource, call);
  const lookups = new Lookups(tx, asker);
  const stored = (await tx.accessQuestions.findIdentities([identity])).get(identity);
  const bindings = await tx.accessQuestions.findBindingsAt(identity, groups);
  const [top = resource] = groups;
  const { capabilities } = question;
  const holder = await buildHolder(identity, stored, bindings, { capabilities, lookups, tx, top });
  const view: GrantView = { lookups, needed: capabilities, own: false };
  const explain = async () => {
    const grants = await describeBindings(holder, view, MAX_GRANTS);
    return sortByGroup([...grants, ...(await describeRules(holder, groups, view, call, MAX_GRANTS - grants.length))]);
  };
  return {
    ...decide(question, holder.caller, resource),
    isPartial: () => partial || lookups.hidRole,
    unconfirmed: holder.unconfirmed,
    explain,
  };
}

/**
 * Finds the resource and the groups above it where the caller sees bindings.
 *
 * @throws ApiError PERMISSION_DENIED where it does not see those of the resource
 */
export async function findSeenGroups(resource: string, call: UnaryCall) {
  const asker = await call.callerAt(resource);
  const lineage = lineageOf(resource);
  const groups = lineage.filter((uid) => asker.holds(listBindings, uid));
  if (groups.length === 0) throw permissionDenied(`role_bindings.list at ${resource}`);
  return { asker, groups, partial: groups.length < lineage.length };
}

function decide(question: Question, caller: Caller | undefined, resource: string) {
  const { capabilities } = question;
  if (caller === undefined) return { allowed: false, missing: capabilities, endTimeMs: null };
  if (!mayCallAt(question, caller, resource)) {
    const missing = capabilities.filter((one) => !caller.holds([one], resource));
    return { allowed: false, missing, endTimeMs: null };
  }
  return { allowed: true, missing: [], endTimeMs: endOfCall(question, caller, resource) };
}

/** When a caller that may call a method about a resource no longer may; null where it may for ever. */
export function endOfCall({ capabilities }: Question, caller: Caller, resource: string): number | null {
  // People may do some things about themselves without any grant.
  return caller.holds(capabilities, resource) ? caller.endOf(capabilities, resource) : null;
}

const MAPPINGS_AT_ONCE = 200;
/** The most mappings of a provider that one answer looks at. */
const MAX_MAPPINGS = 2_000;

// The mappings of the person's provider at these groups.
async function describeRules(
  { identity }: Holder,
  groups: readonly string[],
  view: GrantView,
  call: UnaryCall,
  limit: number,
): Promise<GrantInit[]> {
  const found: GrantInit[] = [];
  const providerUid = await findMappingProvider(identity, call);
  if (providerUid === undefined) return found;
  for await (const mapping of readMappings(call.tx, providerUid)) {
    if (found.length === limit) break;
    const grant = groups.includes(mapping.scope)
      ? await describeMapping(mapping, Effect.WITH_DIRECTORY_GROUP, view)
      : undefined;
    if (grant) found.push(grant);
  }
  return found;
}

async function* readMappings(tx: Tx, providerUid: string) {
  let after = "";
  for (let read = 0; read < MAX_MAPPINGS; read += MAPPINGS_AT_ONCE) {
    const mappings = await tx.accessQuestions.findMappingsBelow(providerUid, after, MAPPINGS_AT_ONCE);
    yield* mappings;
    if (mappings.length < MAPPINGS_AT_ONCE) return;
    after = mappings.at(-1)?.uid ?? "";
  }
}
