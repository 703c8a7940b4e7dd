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
import type { Tx } from "../../store/transaction.js";
import { describeBindings, describeMapping, type GrantInit, type GrantView } from "./grants.js";
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
  const candidates: { uid: string; bindings: BindingRow[] }[] = [];
  const merged = new MergedBindings(call.tx, groups, after);
  let examined = 0;
  let last: string | undefined;
  for (;;) {
    const next = await merged.takeIdentity();
    if (next === undefined) {
      last = undefined;
      break;
    }
    examined += next.bindings.length;
    last = next.uid;
    if (await mayHold(next.bindings, question, lookups)) candidates.push(next);
    if (candidates.length === limit || examined >= MAX_EXAMINED) break;
  }
  const stored = await call.tx.accessQuestions.findIdentities(candidates.map(({ uid }) => uid));
  const subjects: SubjectInit[] = [];
  for (const { uid, bindings } of candidates) {
    const holder = await buildHolder(uid, stored.get(uid), bindings, { capabilities: question.capabilities, lookups });
    if (holder.caller === undefined || !mayCallAt(question, holder.caller, resource)) continue;
    subjects.push(describeIdentity(uid, holder, await describeBindings(holder, view, MAX_GRANTS)));
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

function describeIdentity(uid: string, { identity, unconfirmed }: Holder, grants: GrantInit[]): SubjectInit {
  const { name = "", email = "" } = identity ?? {};
  return { subject: { case: "identity", value: { uid, name, email, unconfirmed } }, grants };
}

// The bindings of several groups, identity by identity.
class MergedBindings {
  readonly #groups: GroupBindings[];

  constructor(tx: Tx, groups: readonly string[], after: string) {
    this.#groups = groups.map((uid) => new GroupBindings(tx, uid, after));
  }

  /** The next identity with all its bindings, those of higher groups first; undefined after the last one. */
  async takeIdentity(): Promise<{ uid: string; bindings: BindingRow[] } | undefined> {
    let uid: string | undefined;
    for (const group of this.#groups) {
      const first = await group.peek();
      if (first !== undefined && (uid === undefined || first < uid)) uid = first;
    }
    if (uid === undefined) return undefined;
    const bindings: BindingRow[] = [];
    for (const group of this.#groups) await group.take(uid, bindings);
    return { uid, bindings };
  }
}

class GroupBindings {
  readonly #tx: Tx;
  readonly #groupUid: string;
  #rows: readonly BindingRow[] = [];
  #at = 0;
  #last: Pick<BindingRow, "identityUid" | "roleUid">;
  #ended = false;

  /** @param after the uid of the identity behind which the bindings begin */
  constructor(tx: Tx, groupUid: string, after: string) {
    this.#tx = tx;
    this.#groupUid = groupUid;
    // Greater than the uid of every role.
    this.#last = { identityUid: after, roleUid: after === "" ? "" : "g" };
  }

  /** The uid of the next identity; undefined after the last one. */
  async peek(): Promise<string | undefined> {
    if (this.#at === this.#rows.length && !this.#ended) await this.#read();
    return this.#rows[this.#at]?.identityUid;
  }

  /** Adds the bindings of the identity to `taken`, if it is the next one. */
  async take(identityUid: string, taken: BindingRow[]): Promise<void> {
    while ((await this.peek()) === identityUid) {
      const row = this.#rows[this.#at++];
      if (row) taken.push(row);
    }
  }

  async #read(): Promise<void> {
    this.#rows = await this.#tx.accessQuestions.findBindingsOfGroup(this.#groupUid, this.#last, CHUNK);
    this.#at = 0;
    this.#last = this.#rows.at(-1) ?? this.#last;
    this.#ended = this.#rows.length < CHUNK;
  }
}

// Whether a role has all that is needed: a rule grants one role.
async function grantsAll(roleUid: string, { question, lookups }: Reading): Promise<boolean> {
  const role = await lookups.role(roleUid);
  return role !== undefined && question.capabilities.every(({ bit }) => hasBit(role.capabilities, bit));
}

// Mappings grant a role at the root group of their provider, which may be in any group.
async function readMappings(reading: Reading, after: string, limit: number): Promise<PartFound> {
  const { call, groups, resource, view } = reading;
  const root = rootOf(resource);
  if (!groups.includes(root)) return { subjects: [], last: undefined };
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
    const value = { uid, identityProvider, externalGroupId };
    return { subject: { case: "mapping", value }, grants: grant ? [grant] : [] };
  });
}

async function readProviders(reading: Reading, after: string, limit: number): Promise<PartFound> {
  const { accessQuestions } = reading.call.tx;
  const groups = reading.groups.filter((uid) => reading.asker.holds(listProviders, uid));
  const read = readInGroups(groups, (...from) => accessQuestions.findProvidersIn(...from));
  return readRules({ after, limit, read }, async ({ uid, name, groupUid, defaultRole }) => {
    if (!(await grantsAll(defaultRole, reading))) return undefined;
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
    for (const uid of current === undefined ? groups : groups.slice(groups.indexOf(current))) {
      const rows = await readGroup(uid, uid === current ? after : "", size);
      if (rows.length > 0) return rows;
    }
    return [];
  };
}

async function describeRule(groupUid: string, roleUid: string, { lookups, question }: Reading): Promise<GrantInit> {
  return {
    group: { uid: groupUid, name: await lookups.groupName(groupUid) },
    role: { uid: roleUid, name: await lookups.roleName(roleUid) },
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
