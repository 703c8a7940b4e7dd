// Compares a file with the service. It makes no calls, so that all rules about what is changed and what is kept are here.
import type { JsonObject } from "@bufbuild/protobuf";
import { isUidText } from "../../../kernel/uidp.js";
import { findRelationship, getKindRow } from "./kinds.js";
import {
  type Actual,
  type ActualState,
  type Change,
  type Desired,
  type DesiredState,
  depthOfPath,
  type FieldChange,
  isPathWithin,
  isSame,
  type Kept,
  type KindName,
  kindNames,
  type Plan,
  pathOf,
  type Reference,
  ROOT,
  splitPath,
  type Values,
} from "./model.js";
import { type FileFault, rejectFile } from "./parse.js";

/** How a plan is made. */
export interface PlanOptions {
  /** Whether to delete what the file does not have. */
  readonly isPrune: boolean;
  readonly nowMs: number;
}

/**
 * Plans the changes after which the service has what the file says.
 *
 * @throws CommandError INVALID_ARGUMENT with all in the file that cannot be, such as a reference to what neither the file nor
 * the service has, or to one of several of a name
 */
export function makePlan(desired: DesiredState, actual: ActualState, options: PlanOptions): Plan {
  return new Planner(desired, actual, options).plan();
}

/** Finds the fields that a file has, and that differ from those of the service. */
export function findDifferences({ kind, values }: Desired, { values: actual }: Actual): readonly FieldChange[] {
  return getKindRow(kind).fields.flatMap(({ name, complete }): FieldChange[] => {
    const [before, given] = [actual[name], values[name]];
    if (given === undefined) return [];
    const after = complete !== undefined && before !== undefined ? complete(given, before) : given;
    return isSame(before, after) ? [] : [{ field: name, ...(before !== undefined && { before }), after }];
  });
}

/** What a role binding joins, in a form in which the same one has the same text: paths, or uids of people and built-in roles. */
interface Bound {
  readonly identity: string;
  readonly role: string;
}

class Planner {
  readonly #desired: DesiredState;
  readonly #actual: ActualState;
  readonly #options: PlanOptions;
  readonly #index: Index;
  readonly #faults: FileFault[] = [];
  readonly #notes: string[] = [];

  constructor(desired: DesiredState, actual: ActualState, options: PlanOptions) {
    this.#desired = desired;
    this.#actual = actual;
    this.#options = options;
    this.#index = new Index(desired, actual);
  }

  plan(): Plan {
    const changes: Change[] = [];
    const matched = new Set<Actual>();
    const seen = new Map<string, Desired>();
    let unchanged = 0;
    for (const one of this.#desired.resources) {
      const key = this.#keyOf(one);
      if (key === undefined) continue;
      const first = seen.get(key);
      if (first !== undefined) this.#reject(one, `is the same ${one.kind} as that of line ${first.at.line}`);
      seen.set(key, one);
      const found = this.#index.actual.get(key) ?? [];
      if (found.length > 1)
        this.#reject(one, `is the name of several, with the uids ${listUids(found)}; rename or delete all but one`);
      const [existing] = found;
      if (existing !== undefined) for (const each of found) matched.add(each);
      const change = existing === undefined ? this.#create(one) : this.#update(one, existing);
      if (change === undefined) unchanged++;
      else changes.push(change);
    }
    if (this.#faults.length > 0) throw rejectFile(this.#faults);
    this.#noteGuard();
    const { deletions, kept } = this.#prune(matched);
    return { changes: [...sortCreations(changes), ...deletions], kept, notes: this.#notes, unchanged };
  }

  /** The key of a resource of the file; undefined where it refers to what is not there, which is noted. */
  #keyOf(one: Desired): string | undefined {
    if (one.kind === "group" && pathOf(one) === ROOT) return keyOf(one);
    if (!this.#index.hasGroup(one.group)) {
      this.#reject(one, `is in ${one.group}, which neither the file nor the organisation has`);
      return undefined;
    }
    const above = this.#index.findSeveral("group", one.group);
    if (above !== undefined) {
      this.#reject(one, `is in ${one.group}, which is the name of several groups, with the uids ${listUids(above)}`);
      return undefined;
    }
    if (one.kind !== "role binding") return keyOf(one);
    const bound = this.#resolve(one);
    return bound === undefined ? undefined : keyOf({ ...one, bound });
  }

  #resolve(one: Desired): Bound | undefined {
    const identity = one.identity && this.#find("identity", one.identity);
    const role = one.role && this.#find("role", one.role);
    if (identity === undefined || role === undefined) return undefined;
    if (one.role && role.startsWith("/") && !isPathWithin(one.group, splitPath(role).group)) {
      this.#fault(one.role, `a role is bound in its group or below: ${role} not in ${one.group}`);
      return undefined;
    }
    return { identity, role };
  }

  #find(kind: "identity" | "role", reference: Reference): string | undefined {
    const { text } = reference;
    if (isUidText(text)) return this.#index.nameOf(kind, text);
    if (text.startsWith("/")) {
      const several = this.#index.findSeveral(kind, text);
      if (several !== undefined)
        this.#fault(reference, `${text} is the name of several, with the uids ${listUids(several)}`);
      else if (!this.#index.has(kind, text))
        this.#fault(reference, `there is no ${kind} ${text}, in the file or in the organisation`);
      else return text;
      return undefined;
    }
    const uids = kind === "role" ? this.#index.findBuiltIn(text) : [...(this.#actual.people.get(text) ?? [])];
    if (uids.length === 1) return uids[0];
    if (kind === "role")
      this.#fault(reference, `there is no built-in role ${text}; one of the organisation has a path, such as /${text}`);
    else if (uids.length > 1)
      this.#fault(
        reference,
        `${text} is the address of several people, with the uids ${uids.join(", ")}; give the uid`,
      );
    else {
      const how = `arbor iam group-invites create --parent ${this.#actual.organization.name} --email ${text} --role ROLE`;
      this.#fault(
        reference,
        `nobody with the address ${text} has joined an organisation that you see; invite them: ${how}`,
      );
    }
    return undefined;
  }

  #create(one: Desired): Change | undefined {
    if (one.kind === "identity") {
      if (findRelationship(one.values) === undefined) {
        this.#reject(one, "is new, and needs claimMatch, staticKeys, awsIdentity or servicePrincipal");
        return undefined;
      }
      this.#checkKeys(one);
      this.#checkConditions(one, {});
    }
    if (one.kind === "role" && one.values.capabilities === undefined) {
      this.#reject(one, "is new, and needs capabilities");
      return undefined;
    }
    if (one.kind === "role binding" && this.#hasEnded(one.values)) {
      this.#notes.push(`${this.#label(one)}: has ended at ${one.values.endTime}, and is not created`);
      return undefined;
    }
    return { action: "create", kind: one.kind, label: this.#label(one), desired: one };
  }

  #update(one: Desired, existing: Actual): Change | undefined {
    const fields = findDifferences(one, existing);
    if (fields.length === 0) return undefined;
    const label = this.#label(one);
    if (existing.managedBy !== undefined) {
      this.#reject(one, `is managed by ${existing.managedBy}, and changed there alone`);
      return undefined;
    }
    if (one.kind === "identity") {
      this.#checkRelation(one, existing, fields);
      this.#checkConditions(one, existing.values);
    }
    if (one.kind === "role binding" && this.#hasEnded(one.values))
      this.#reject(one, "has an endTime that is in the past; delete the entry, and the role binding with --prune");
    const values = { ...one.values, ...Object.fromEntries(fields.map(({ field, after }) => [field, after])) };
    return { action: "update", kind: one.kind, label, desired: { ...one, values }, actual: existing, fields };
  }

  #hasEnded({ endTime }: Values): boolean {
    return typeof endTime === "string" && Date.parse(endTime) <= this.#options.nowMs;
  }

  #checkRelation(one: Desired, { values }: Actual, fields: readonly FieldChange[]): void {
    const [before, after] = [findRelationship(values), findRelationship(one.values)];
    if (after === undefined || before === undefined) return;
    if (before !== after && [before, after].some((name) => name === "staticKeys" || name === "servicePrincipal"))
      this.#reject(one, `cannot change from ${before} to ${after}: create an identity of another name`);
    if (fields.some(({ field }) => field === "staticKeys")) this.#checkKeys(one);
  }

  #checkKeys(one: Desired): void {
    const { expirationTime } = (one.values.staticKeys ?? {}) as JsonObject;
    if (typeof expirationTime === "string" && Date.parse(expirationTime) <= this.#options.nowMs)
      this.#reject(one, "has a staticKeys.expirationTime that is in the past");
  }

  #checkConditions({ values, ...one }: Desired, before: Values): void {
    const conditions = values.conditions ?? before.conditions ?? [];
    const relationship = findRelationship(values) ?? findRelationship(before);
    if (!Array.isArray(conditions) || conditions.length === 0) return;
    if (relationship !== "claimMatch" && relationship !== "staticKeys")
      this.#reject({ ...one, values }, "has conditions, which apply to claimMatch and staticKeys alone");
  }

  #noteGuard(): void {
    const hasGuard = this.#actual.resources.some(({ kind }) => kind === "issuer guard");
    if (this.#desired.hasNoGuard && hasGuard && !this.#options.isPrune)
      this.#notes.push("the file says that there is no issuer guard: --prune removes the one that there is");
  }

  #prune(matched: ReadonlySet<Actual>): { deletions: Change[]; kept: Kept[] } {
    const kept: Kept[] = [];
    const deleted = new Set<Actual>();
    const listed = new Set(this.#desired.resources.filter(({ kind }) => kind === "group").map(pathOf));
    const absent = this.#actual.resources.filter(
      (one) => this.#desired.sections.has(one.kind) && !matched.has(one) && this.#isListed(one, listed),
    );
    if (!this.#options.isPrune) {
      if (absent.length > 0) this.#notes.push(`not in the file, and kept without --prune: ${absent.length}`);
      return { deletions: [], kept };
    }
    // What refers to others goes first, and groups from the deepest on.
    const order = [...absent].sort(
      (a, b) =>
        kindNames.indexOf(b.kind) - kindNames.indexOf(a.kind) || depthOfPath(pathOf(b)) - depthOfPath(pathOf(a)),
    );
    for (const one of order) {
      const reason = this.#findReason(one, deleted);
      const [kind, label] = [one.kind, this.#labelOf(one)];
      if (reason === undefined) deleted.add(one);
      else kept.push({ kind, label, uid: one.uid, reason });
    }
    const deletions = [...deleted].map(
      (actual): Change => ({ action: "delete", kind: actual.kind, label: this.#labelOf(actual), actual }),
    );
    return { deletions, kept };
  }

  // The guard is not absent because the file does not have it, but because the file says that there is none.
  #isListed(one: Actual, listed: ReadonlySet<string>): boolean {
    if (one.kind === "issuer guard") return this.#desired.hasNoGuard;
    return one.uid !== this.#actual.organization.uid && listed.has(one.group);
  }

  /** Why a resource that the file does not have stays; undefined for one that goes. */
  #findReason(one: Actual, deleted: ReadonlySet<Actual>): string | undefined {
    const { caller, resources, occupied } = this.#actual;
    if (one.managedBy !== undefined) return `managed by ${one.managedBy}`;
    if (one.uid === caller || one.identityUid === caller) return "yours: you would lose access";
    const staying = resources.filter((other) => other !== one && !deleted.has(other));
    const binding = staying.find(
      ({ kind, roleUid, identityUid }) =>
        kind === "role binding" &&
        (one.kind === "role" ? roleUid === one.uid : one.kind === "identity" && identityUid === one.uid),
    );
    if (binding !== undefined) return `a role binding in ${binding.group} stays`;
    if (one.kind !== "group") return undefined;
    const path = pathOf(one);
    const child = staying.find((other) => other.uid.startsWith(`${one.uid}/`));
    if (child !== undefined) return `it has the ${child.kind} ${this.#labelOf(child)}`;
    const planned = this.#desired.resources.find(({ group }) => isPathWithin(group, path));
    if (planned !== undefined) return `the file has a ${planned.kind} in it`;
    const other = occupied.get(one.uid);
    return other === undefined ? undefined : `it has a ${other}`;
  }

  #label(one: Desired): string {
    const { identity, role } = one;
    return one.kind === "role binding" ? formatBinding(one.group, identity?.text, role?.text) : labelOf(one);
  }

  #labelOf(one: Actual): string {
    if (one.kind !== "role binding") return labelOf(one);
    const { identityUid = "", roleUid = "", identityText, roleText } = one;
    const identity = this.#index.nameOf("identity", identityUid);
    const role = this.#index.nameOf("role", roleUid);
    return formatBinding(
      one.group,
      identity.startsWith("/") ? identity : identityText || identity,
      role.startsWith("/") ? role : roleText || role,
    );
  }

  #reject(one: Desired, text: string): void {
    this.#faults.push({ at: one.at, text: `the ${one.kind} ${this.#label(one)} ${text}` });
  }

  #fault({ at }: Reference, text: string): void {
    if (at !== undefined) this.#faults.push({ at, text });
  }
}

/** What there is, by kind and path. */
class Index {
  readonly actual = new Map<string, Actual[]>();
  readonly #desired = new Set<string>();
  readonly #byUid = new Map<string, Actual>();
  readonly #builtIn: ReadonlyMap<string, string>;

  constructor({ resources: wanted }: DesiredState, { resources, builtInRoles }: ActualState) {
    this.#builtIn = builtInRoles;
    for (const one of wanted) if (one.kind !== "role binding") this.#desired.add(keyOf(one));
    for (const one of resources)
      this.#byUid.set(one.uid, one.kind === "issuer guard" ? (this.#byUid.get(one.uid) ?? one) : one);
    const isBinding = ({ kind }: Actual) => kind === "role binding";
    for (const one of resources.filter((each) => !isBinding(each))) this.#add(keyOf(one), one);
    for (const one of resources.filter(isBinding)) {
      // Callers cannot change what a directory manages, and may have the same beside it.
      if (one.managedBy === "a directory, by SCIM") continue;
      const identity = this.nameOf("identity", one.identityUid ?? "");
      const role = this.nameOf("role", one.roleUid ?? "");
      this.#add(keyOf({ ...one, bound: { identity, role } }), one);
    }
  }

  #add(key: string, one: Actual): void {
    const same = this.actual.get(key);
    if (same === undefined) this.actual.set(key, [one]);
    else same.push(one);
  }

  has(kind: KindName, path: string): boolean {
    const key = keyOf({ kind, ...splitPath(path) });
    return this.#desired.has(key) || this.actual.has(key);
  }

  hasGroup(path: string): boolean {
    return path === ROOT || this.has("group", path);
  }

  /** The resources that share a path with another; undefined for a path of one, or none. */
  findSeveral(kind: KindName, path: string): readonly Actual[] | undefined {
    for (let group = kind === "group" ? path : splitPath(path).group; group !== ROOT; { group } = splitPath(group)) {
      const found = this.actual.get(keyOf({ kind: "group", ...splitPath(group) }));
      if (found !== undefined && found.length > 1) return found;
    }
    const found = this.actual.get(keyOf({ kind, ...splitPath(path) }));
    return found !== undefined && found.length > 1 ? found : undefined;
  }

  findBuiltIn(name: string): string[] {
    const uid = this.#builtIn.get(name);
    return uid === undefined ? [] : [uid];
  }

  /** The path of an identity or a role of the organisation that is the only one there, or else its uid. */
  nameOf(kind: "identity" | "role", uid: string): string {
    const one = this.#byUid.get(uid);
    if (one === undefined || one.kind !== kind) return uid;
    const path = pathOf(one);
    return this.findSeveral(kind, path) === undefined ? path : uid;
  }
}

function keyOf({
  kind,
  group,
  name,
  bound,
}: Pick<Desired, "kind" | "group" | "name"> & { readonly bound?: Bound }): string {
  return JSON.stringify([kind, group, name, bound?.identity ?? "", bound?.role ?? ""]);
}

function labelOf(one: Pick<Desired, "kind" | "group" | "name">): string {
  if (one.kind === "issuer guard") return "of the organisation";
  return one.kind === "subscription" ? `${one.group}: ${one.name}` : pathOf(one);
}

function formatBinding(group: string, identity = "", role = ""): string {
  return `${group}: ${identity} has ${role}`;
}

function listUids(found: readonly Actual[]): string {
  return found.map(({ uid }) => uid).join(" and ");
}

// Each kind after those that it refers to, and groups before those below them.
function sortCreations(changes: readonly Change[]): Change[] {
  const rank = ({ kind }: Change) => kindNames.indexOf(kind);
  const depth = (change: Change) =>
    change.action !== "delete" && change.kind === "group" ? depthOfPath(pathOf(change.desired)) : 0;
  return [...changes].sort((a, b) => rank(a) - rank(b) || depth(a) - depth(b));
}
