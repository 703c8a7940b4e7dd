// Who may do what is asked at a resource: identities by their bindings, then the rules that let further people.
//
// The bindings of the resource's group and of each group above it are read in the order of identities and merged, so that
// all bindings of an identity come together. A call looks at a few thousand bindings; the next page goes on behind them.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Effect, type SubjectSchema } from "#gen/arbor/access/v1/access_pb.js";
import { hasBit } from "../../kernel/capability-set.js";
import { parentOf, rootOf } from "../../kernel/uidp.js";
import { mayCallAt } from "../../pipeline/auth/authorize.js";
import type { Caller } from "../../pipeline/auth/caller.js";
import type { UnaryCall } from "../../pipeline/call.js";
import type { BindingRow } from "../../store/iam/access-questions.js";
import { findDefaultRole } from "../../store/iam/identity-providers.js";
import type { Tx } from "../../store/transaction.js";
import { endOfCall } from "./answer.js";
import {
  buildEndTime,
  describeBindings,
  describeMapping,
  describeRole,
  type GrantInit,
  type GrantView,
} from "./grants.js";
import { buildHolder, type Holder, type Lookups, listInvites, listProviders } from "./holder.js";
import type { PageRequest, Position } from "./paging.js";
import type { Question } from "./question.js";

type SubjectInit = MessageInitShape<typeof SubjectSchema>;

/** Where subjects are looked for, and what they need. */
export interface SubjectSearch {
  readonly question: Question;
  readonly resource: string;
  /** The resource and the groups above it whose bindings the caller sees. */
  readonly groups: readonly string[];
  /** The caller, with its grants at the resource and above it. */
  readonly asker: Caller;
  readonly lookups: Lookups;
}

/** Subjects, and where the next ones begin: undefined after the last ones. */
interface Found {
  readonly subjects: SubjectInit[];
  readonly next: Position | undefined;
}

/** How many bindings one call looks at, and how many rules. */
const MAX_EXAMINED = 4_000;
/** How many rows a statement reads. */
const CHUNK = 256;
/** How many bindings of several groups are read before they are merged. */
const MAX_BUFFERED = 1_024;
/** The most grants that a subject shows. */
const MAX_GRANTS = 10;

/** Reads a page of subjects. */
export async function readSubjects(search: SubjectSearch, call: UnaryCall, page: PageRequest): Promise<Found> {
  const { from, limit } = page;
  const view: GrantView = { lookups: search.lookups, needed: search.question.capabilities, own: false };
  const parts = [readIdentities, readMappings, readProviders, readInvites];
  const subjects: SubjectInit[] = [];
  let after = from.uid;
  for (const [part, read] of parts.entries()) {
    if (part < from.part) continue;
    const found = await read({ ...search, view, call }, after, limit - subjects.length);
    subjects.push(...found.subjects);
    if (found.last !== undefined) return { subjects, next: { part, key: "", uid: found.last } };
    after = "";
    const isLast = part === parts.length - 1;
    if (subjects.length === limit && !isLast) return { subjects, next: { part: part + 1, key: "", uid: "" } };
  }
  return { subjects, next: undefined };
}

type Reading = SubjectSearch & { readonly view: GrantView; readonly call: UnaryCall };

interface PartFound {
  readonly subjects: SubjectInit[];
  /** The uid that the next page begins behind; undefined where the part has ended. */
  readonly last: string | undefined;
}

async function readIdentities(reading: Reading, after: string, limit: number): Promise<PartFound> {
  const { lookups, view, groups, question, resource, call } = reading;
  const candidates: BoundIdentity[] = [];
  const merged = new MergedBindings(call.tx, groups, after);
  let examined = 0;
  let last: string | undefined;
  while (candidates.length < limit && examined < MAX_EXAMINED) {
    const some = await merged.takeSome();
    if (some.length === 0) {
      last = undefined;
      break;
    }
    await lookups.load(some.flatMap(({ bindings }) => bindings));
    for (const next of some) {
      if (candidates.length === limit) break;
      examined += next.bindings.length;
      last = next.uid;
      if (await mayHold(next.bindings, question, lookups)) candidates.push(next);
    }
  }
  const stored = await call.tx.accessQuestions.findIdentities(candidates.map(({ uid }) => uid));
  const subjects: SubjectInit[] = [];
  const [top = resource] = groups;
  const context = { capabilities: question.capabilities, lookups, tx: call.tx, top };
  for (const { uid, bindings } of candidates) {
    const holder = await buildHolder(uid, stored.get(uid), bindings, context);
    if (holder.caller === undefined || !mayCallAt(question, holder.caller, resource)) continue;
    const endTime = buildEndTime({ endTimeMs: endOfCall(question, holder.caller, resource) });
    subjects.push(describeIdentity(uid, holder, endTime, await describeBindings(holder, view, MAX_GRANTS)));
  }
  return { subjects, last };
}

// Leaves out most identities before their rows are read.
async function mayHold(bindings: readonly BindingRow[], { capabilities }: Question, lookups: Lookups) {
  const missing = new Set(capabilities.map(({ bit }) => bit));
  for (const { roleUid } of bindings) {
    const role = await lookups.role(roleUid);
    for (const bit of missing) if (role && hasBit(role.capabilities, bit)) missing.delete(bit);
  }
  return missing.size === 0;
}

function describeIdentity(
  uid: string,
  { identity, unconfirmed }: Holder,
  endTime: ReturnType<typeof buildEndTime>,
  grants: GrantInit[],
): SubjectInit {
  const { name = "", email = "" } = identity ?? {};
  return { subject: { case: "identity", value: { uid, name, email, unconfirmed, ...endTime } }, grants };
}

interface BoundIdentity {
  readonly uid: string;
  /** Its bindings, those of higher groups first. */
  readonly bindings: BindingRow[];
}

// The bindings of several groups, identity by identity.
class MergedBindings {
  readonly #groups: GroupBindings[];

  /** @param after the uid of the identity behind which they begin */
  constructor(tx: Tx, groups: readonly string[], after: string) {
    const size = Math.max(32, Math.floor(MAX_BUFFERED / groups.length));
    this.#groups = groups.map((uid) => new GroupBindings(tx, uid, after, size));
  }

  /** Some of the next identities with all their bindings, in the order of uids; none after the last one. */
  async takeSome(): Promise<BoundIdentity[]> {
    for (;;) {
      for (const group of this.#groups) if (group.isEmpty) await group.read();
      // Further bindings of the last identity that was read of a group may follow, and those of all before have come.
      const open = this.#groups.filter((group) => !group.hasEnded);
      const end = open.map(({ lastIdentity }) => lastIdentity).reduce((a, b) => (b < a ? b : a), NO_UID);
      const rows = this.#groups.flatMap((group) => group.takeBefore(end));
      if (rows.length > 0) return collect(rows);
      const behind = open.find(({ lastIdentity }) => lastIdentity === end);
      if (behind === undefined) return [];
      await behind.read();
    }
  }
}

/** Greater than every uid: uids are hex digits and slashes. */
const NO_UID = "g";

function collect(rows: readonly BindingRow[]): BoundIdentity[] {
  const byIdentity = new Map<string, BindingRow[]>();
  for (const row of rows) {
    const bindings = byIdentity.get(row.identityUid);
    if (bindings) bindings.push(row);
    else byIdentity.set(row.identityUid, [row]);
  }
  return [...byIdentity].map(([uid, bindings]) => ({ uid, bindings })).sort((a, b) => (a.uid < b.uid ? -1 : 1));
}

// The bindings of a group in the order of identities, as far as they are read and not yet taken.
class GroupBindings {
  readonly #tx: Tx;
  readonly #groupUid: string;
  readonly #size: number;
  #rows: BindingRow[] = [];
  #last: Pick<BindingRow, "identityUid" | "roleUid">;
  #ended = false;

  constructor(tx: Tx, groupUid: string, after: string, size: number) {
    this.#tx = tx;
    this.#groupUid = groupUid;
    this.#size = size;
    this.#last = { identityUid: after, roleUid: after === "" ? "" : NO_UID };
  }

  /** Whether nothing is left to take and more may follow. */
  get isEmpty(): boolean {
    return this.#rows.length === 0 && !this.#ended;
  }

  get hasEnded(): boolean {
    return this.#ended;
  }

  /** The uid of the last identity that was read. */
  get lastIdentity(): string {
    return this.#last.identityUid;
  }

  async read(): Promise<void> {
    const rows = await this.#tx.accessQuestions.findBindingsOfGroup(this.#groupUid, this.#last, this.#size);
    this.#rows.push(...rows);
    this.#last = rows.at(-1) ?? this.#last;
    this.#ended = rows.length < this.#size;
  }

  /** Takes the bindings of identities before `end`. */
  takeBefore(end: string): BindingRow[] {
    const count = this.#rows.findIndex(({ identityUid }) => identityUid >= end);
    return this.#rows.splice(0, count < 0 ? this.#rows.length : count);
  }
}

// Whether a role has all that is needed: a rule grants one role.
async function grantsAll(roleUid: string, { question, lookups }: Reading): Promise<boolean> {
  const role = await lookups.role(roleUid);
  return role !== undefined && question.capabilities.every(({ bit }) => hasBit(role.capabilities, bit));
}

// Mappings may grant a role at any group, and their providers may be in any group.
async function readMappings(reading: Reading, after: string, limit: number): Promise<PartFound> {
  const { call, groups, resource, view } = reading;
  const root = rootOf(resource);
  const tops = await call.visibleGroups({ descendantsOf: root, childrenOf: "" }, "", listProviders);
  const own = tops.filter((uid) => rootOf(uid) === root);
  async function read(position: string, size: number) {
    for (const top of own) {
      const rows = await call.tx.accessQuestions.findMappingsBelow(top, position, size);
      if (rows.length > 0) return rows;
    }
    return [];
  }
  return readRules({ after, limit, read }, async (mapping) => {
    if (!groups.includes(mapping.scope) || !(await grantsAll(mapping.roleUid, reading))) return undefined;
    const { uid, providerUid: identityProvider, externalGroupId } = mapping;
    const grant = await describeMapping(mapping, Effect.WITH_DIRECTORY_GROUP, view);
    const group = await view.lookups.directoryGroup(mapping);
    const directory = { directoryGroup: group?.uid ?? "", directoryGroupName: group?.displayName ?? "" };
    const value = { uid, identityProvider, externalGroupId, ...directory };
    return { subject: { case: "mapping", value }, grants: grant ? [grant] : [] };
  });
}

async function readProviders(reading: Reading, after: string, limit: number): Promise<PartFound> {
  const { accessQuestions } = reading.call.tx;
  const groups = reading.groups.filter((uid) => reading.asker.holds(listProviders, uid));
  const read = readInGroups(groups, (...from) => accessQuestions.findProvidersIn(...from));
  return readRules({ after, limit, read }, async ({ uid, name, groupUid, ...row }) => {
    const defaultRole = findDefaultRole(row);
    if (defaultRole === undefined || !(await grantsAll(defaultRole, reading))) return undefined;
    const grants = [await describeRule(groupUid, defaultRole, reading)];
    return { subject: { case: "provider", value: { uid, name } }, grants };
  });
}

async function readInvites(reading: Reading, after: string, limit: number): Promise<PartFound> {
  const { tx, startMs } = reading.call;
  const groups = reading.groups.filter((uid) => reading.asker.holds(listInvites, uid));
  const read = readInGroups(groups, (...from) => tx.accessQuestions.findInvitesIn(...from));
  return readRules({ after, limit, read }, async ({ uid, email, groupUid, roleUid, expireTimeMs }) => {
    if (expireTimeMs <= startMs || !(await grantsAll(roleUid, reading))) return undefined;
    const grants = [await describeRule(groupUid, roleUid, reading)];
    return { subject: { case: "invite", value: { uid, email } }, grants };
  });
}

type ReadAfter<Row> = (after: string, size: number) => Promise<readonly Row[]>;

// Reads the rules of one group after the other, in the order of groups.
function readInGroups<Row>(
  groups: readonly string[],
  readGroup: (groupUid: string, after: string, size: number) => Promise<readonly Row[]>,
): ReadAfter<Row> {
  return async (after, size) => {
    const current = parentOf(after);
    // Of groups in one line those above come first in the order of uids.
    for (const uid of groups.filter((one) => current === undefined || one >= current)) {
      const rows = await readGroup(uid, uid === current ? after : "", size);
      if (rows.length > 0) return rows;
    }
    return [];
  };
}

async function describeRule(groupUid: string, roleUid: string, { lookups, question }: Reading): Promise<GrantInit> {
  return {
    ...(await describeRole(groupUid, roleUid, lookups)),
    capabilities: question.capabilities.map(({ name }) => name),
    effect: Effect.COUNTS,
  };
}

interface RuleReading<Row> {
  readonly after: string;
  readonly limit: number;
  /** Reads the rules after the one with this uid. */
  readonly read: ReadAfter<Row>;
}

// Reads rules of one kind until the page is full, they have ended, or enough were looked at.
async function readRules<Row extends { readonly uid: string }>(
  { after, limit, read }: RuleReading<Row>,
  describe: (row: Row) => Promise<SubjectInit | undefined>,
): Promise<PartFound> {
  const subjects: SubjectInit[] = [];
  let position = after;
  let examined = 0;
  while (examined < MAX_EXAMINED) {
    if (subjects.length === limit) return { subjects, last: position };
    const rows = await read(position, CHUNK);
    if (rows.length === 0) return { subjects, last: undefined };
    for (const row of rows) {
      if (subjects.length === limit) break;
      position = row.uid;
      examined++;
      const subject = await describe(row);
      if (subject) subjects.push(subject);
    }
  }
  return { subjects, last: position };
}
