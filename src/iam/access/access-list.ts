// What an identity may do, and where: its grants in the order of groups, then the mappings that apply to it.
import { Effect } from "#gen/arbor/access/v1/access_pb.js";
import { isUidp, isWithin, lineageOf, maximalOf, parentOf } from "../../kernel/uidp.js";
import type { Grant } from "../../pipeline/auth/caller.js";
import type { UnaryCall } from "../../pipeline/call.js";
import type { BindingRow } from "../../store/iam/access-questions.js";
import type { GroupMappingRow } from "../../store/iam/group-mappings.js";
import type { IdentityRow } from "../../store/iam/identities.js";
import { isPerson } from "../people/pending-bindings.js";
import { findMappingProvider, findOwnMappings } from "./answer.js";
import { describeBinding, describeLimited, describeMapping, type GrantInit, type GrantView } from "./grants.js";
import { hasNoAccess, isJoin, Lookups, listBindings } from "./holder.js";
import type { PageRequest, Position } from "./paging.js";

interface Found {
  readonly grants: GrantInit[];
  /** Where the next page begins; undefined after the last one. */
  readonly next: Position | undefined;
}

/** How many groups whose bindings the caller sees are looked at for one page. */
const MAX_TOPS = 64;
const CHUNK = 256;
const BINDINGS = 0;
const MAPPINGS = 1;

/**
 * Reads a page of the caller's own grants at `group` and below it; in all groups where it is empty. Of a limited token it
 * reads what the limit leaves of those that are not pending.
 */
export async function readOwnAccess(group: string, call: UnaryCall, page: PageRequest): Promise<Found> {
  const { caller } = call;
  const view: GrantView = { lookups: new Lookups(call.tx, undefined), own: true };
  if (!caller.unlimited) return readLimited(group, call, page, view);
  let found: Found = { grants: [], next: undefined };
  if (page.from.part === BINDINGS) {
    const describe = (binding: BindingRow) => describeBinding(binding, caller.providerUid, view);
    found = await readBindings(caller.uid, [group], call, page, { lookups: view.lookups, describe });
    if (found.next !== undefined || found.grants.length >= page.limit) return goOn(found);
  }
  const grants = [...found.grants];
  for (const mapping of await findOwnMappings(call)) {
    if (mapping.uid <= (page.from.part === MAPPINGS ? page.from.uid : "")) continue;
    const last = grants.at(-1);
    if (grants.length >= page.limit) return { grants, next: { part: MAPPINGS, key: "", uid: last?.mapping ?? "" } };
    const grant =
      group === "" || isWithin(mapping.scope, group) ? await describeMapping(mapping, Effect.COUNTS, view) : undefined;
    if (grant) grants.push(grant);
  }
  return { grants, next: undefined };
}

async function readLimited(group: string, { caller }: UnaryCall, page: PageRequest, view: GrantView): Promise<Found> {
  const keyOf = ({ groupUid, roleUid }: Grant) => `${groupUid} ${roleUid}`;
  // A binding and a mapping may grant the same.
  const grants = new Map(caller.grants.map((grant) => [keyOf(grant), grant]));
  const keys = [...grants.keys()].filter((key) => key > page.from.key).sort();
  const isBelow = ({ groupUid }: Grant) => group === "" || isWithin(groupUid, group);
  const rest = keys.flatMap((key) => grants.get(key) ?? []).filter(isBelow);
  const shown = rest.slice(0, page.limit);
  const last = shown.at(-1);
  return {
    grants: await describeLimited(shown, caller, view, page.limit),
    next: rest.length > page.limit && last ? { part: BINDINGS, key: keyOf(last), uid: "" } : undefined,
  };
}

/** Reads a page of the grants of another identity that lists show to the caller. */
export async function readAccessOf(identity: string, group: string, call: UnaryCall, page: PageRequest) {
  const { tx, caller } = call;
  const seen = await call.visibleGroups({ descendantsOf: group, childrenOf: "" }, "", listBindings);
  const tops = isUidp(group) ? clip(seen, group) : seen;
  const lookups = new Lookups(tx, caller);
  const stored = (await tx.accessQuestions.findIdentities([identity])).get(identity);
  const view: GrantView = { lookups, own: false };
  const nobody = { grants: [], next: undefined, unconfirmed: isPerson(identity) };
  if (hasNoAccess(stored, seen)) return nobody;
  const unconfirmed = isPerson(identity) && !(await hasJoined(identity, seen, call));
  const known = unconfirmed ? undefined : stored;
  const describe = (binding: BindingRow) => describeBinding(binding, known?.providerUid ?? null, view);
  let found: Found = { grants: [], next: undefined };
  if (page.from.part === BINDINGS) {
    found = await readBindings(identity, tops, call, page, { lookups, describe });
    if (found.next !== undefined || found.grants.length >= page.limit) return { ...goOn(found), unconfirmed };
  }
  const rest = { ...page, limit: page.limit - found.grants.length };
  const rules = await readMappings(known, { tops, call, view, page: rest });
  return { grants: [...found.grants, ...rules.grants], next: rules.next, unconfirmed };
}

// After the bindings come the mappings, on the next page where this one is full.
function goOn({ grants, next }: Found): Found {
  return { grants, next: next ?? { part: MAPPINGS, key: "", uid: "" } };
}

function clip(seen: readonly string[], group: string): string[] {
  return maximalOf(seen.flatMap((top) => (isWithin(group, top) ? [group] : isWithin(top, group) ? [top] : [])));
}

// Whether lists of bindings show the asker who the person is: by a binding in any group that it sees.
async function hasJoined(identity: string, seen: readonly string[], { tx }: UnaryCall): Promise<boolean> {
  const tops = new Set(seen);
  for (let after: BindingRow | undefined; ; ) {
    const rows = await tx.accessQuestions.findBindingsBelow(identity, "", after, CHUNK);
    if (rows.some((row) => isJoin(row) && lineageOf(row.groupUid).some((uid) => tops.has(uid)))) return true;
    if (rows.length < CHUNK) return false;
    after = rows.at(-1);
  }
}

interface BindingView {
  readonly lookups: Lookups;
  readonly describe: (binding: BindingRow) => Promise<GrantInit | undefined>;
}

// Reads bindings below some groups, in the order of groups.
async function readBindings(
  identity: string,
  tops: readonly string[],
  { tx }: UnaryCall,
  { from, limit }: PageRequest,
  { lookups, describe }: BindingView,
): Promise<Found> {
  const grants: GrantInit[] = [];
  let after = parseAfter(from);
  const size = Math.min(CHUNK, limit + 1);
  const rest = tops.filter(
    (top) => after === undefined || top === "" || top >= after.groupUid || isWithin(after.groupUid, top),
  );
  for (const [i, top] of rest.entries()) {
    if (i === MAX_TOPS) return { grants, next: { part: BINDINGS, key: "", uid: top } };
    for (;;) {
      const inTop = after !== undefined && (top === "" || isWithin(after.groupUid, top)) ? after : undefined;
      const rows = await tx.accessQuestions.findBindingsBelow(identity, top, inTop, size);
      await lookups.load(rows);
      for (const row of rows) {
        if (grants.length >= limit) return { grants, next: positionOf(after) };
        const grant = await describe(row);
        if (grant) grants.push(grant);
        after = row;
      }
      if (rows.length < size) break;
    }
  }
  return { grants, next: undefined };
}

type After = Pick<BindingRow, "groupUid" | "roleUid" | "uid">;

function positionOf(after: After | undefined): Position {
  return { part: BINDINGS, key: after?.roleUid ?? "", uid: after?.uid ?? "" };
}

// A position without a role is that of a group, before its bindings.
function parseAfter({ key: roleUid, uid }: Position): After | undefined {
  if (uid === "") return undefined;
  return roleUid === "" ? { groupUid: uid, roleUid, uid: "" } : { groupUid: parentOf(uid) ?? "", roleUid, uid };
}

interface MappingReading {
  readonly tops: readonly string[];
  readonly call: UnaryCall;
  readonly view: GrantView;
  readonly page: PageRequest;
}

// The mappings of the person's provider at groups whose bindings the caller sees.
async function readMappings(
  identity: IdentityRow | undefined,
  { tops, call, view, page }: MappingReading,
): Promise<Found> {
  const providerUid = await findMappingProvider(identity, call);
  if (providerUid === undefined) return { grants: [], next: undefined };
  const after = page.from.part === MAPPINGS ? page.from.uid : "";
  const rows: GroupMappingRow[] = await call.tx.accessQuestions.findMappingsBelow(providerUid, after, page.limit + 1);
  const grants: GrantInit[] = [];
  for (const mapping of rows.slice(0, page.limit)) {
    if (!tops.some((top) => isWithin(mapping.scope, top))) continue;
    const grant = await describeMapping(mapping, Effect.WITH_DIRECTORY_GROUP, view);
    if (grant) grants.push(grant);
  }
  const last = rows.length > page.limit ? rows[page.limit - 1] : undefined;
  return { grants, next: last && { part: MAPPINGS, key: "", uid: last.uid } };
}
