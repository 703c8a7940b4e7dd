// Find: what a text names, among what the lists of the caller show. The parts of an answer come one after another. Each reads
// rows by an index, and shows of them what the list of their kind shows (found.ts). A call looks at a few thousand rows; the
// next page goes on after them. How much it looks at depends on what is in the organisations of the caller alone, except for
// an e-mail address, which people of other organisations may have as well.
import { FoundKind, Match } from "#gen/arbor/access/v1/access_pb.js";
import { deadlineExceeded } from "../../kernel/errors.js";
import type { Clock } from "../../kernel/time.js";
import { lineageOf, rootOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type AuditEventRow, scopeOf } from "../../store/audit/events.js";
import type { PersonKey } from "../../store/iam/access-questions.js";
import type { IdentityRow } from "../../store/iam/identities.js";
import type { HydratedBinding } from "../../store/iam/role-bindings.js";
import { type RoleRow, roleKind } from "../../store/iam/roles.js";
import type { ListFilter } from "../../store/lists/query.js";
import type { ListedRow } from "../../store/lists/resource.js";
import { type NameWord, splitName } from "../../store/name-words.js";
import { tagKind } from "../../store/registry/tags.js";
import { isPerson } from "../people/pending-bindings.js";
import { isOperatorRole } from "../roles/builtin-roles.js";
import { type FindQuery, foldText, type NamePath, splitStart, splitWords, withoutHost } from "./find-query.js";
import {
  bindingList,
  type Found,
  type FoundList,
  foundLists,
  groupList,
  isIn,
  namedLists,
  repoList,
  roleList,
  ShownLists,
  tagList,
  toFound,
} from "./found.js";
import { isJoin } from "./holder.js";
import type { PageRequest, Position } from "./paging.js";

export interface FindDeps {
  /** The ids of audit events that clients see. */
  readonly eventIds: {
    readonly format: (id: number) => string;
    /** The number of the row; undefined for a text that is no id of this installation. */
    readonly parse: (text: string) => number | undefined;
  };
  readonly clock: Clock;
}
type EventIds = FindDeps["eventIds"];

interface Search extends FindDeps {
  readonly query: FindQuery;
  readonly call: UnaryCall;
  readonly shown: ShownLists;
  /** How many more rows the call may look at. */
  budget: number;
}

/** Where the page before ended in a part; undefined where the part begins with this page. */
type After = Place | undefined;
type Place = Omit<Position, "part">;

interface PartFound {
  readonly found: readonly Found[];
  /** Where the part goes on; undefined where it has ended. */
  readonly next: Place | undefined;
}

interface Part {
  /** The kind of all that it finds; undefined where it finds several. */
  readonly kind?: FoundKind;
  readonly applies: (query: FindQuery) => boolean;
  readonly read: (search: Search, after: After, limit: number) => Promise<PartFound>;
}

/** How many rows one call looks at. */
const MAX_EXAMINED = 4_096;
/** How many rows a statement reads. */
const CHUNK = 256;
/** How many organisations, or groups, one statement or one call reads words or tags of. */
const MAX_PLACES = 64;
/** How many things of one name a path goes through. */
const MAX_SAME_NAME = 16;
/** How many people of one address are found. */
const MAX_SAME_EMAIL = 64;
/** How many groups it costs as much to ask for bindings of a person as to look at a row. */
const TOPS_PER_ROW = 16;
/** The key of positions among rows, and not among words. */
const IN_PARTS = "-";
/** Comes before all uids. */
const FIRST = "0";
/** The audit logs of how many organisations one call reads a slice of. */
const MAX_LOGS = 8;

const parts: readonly Part[] = [
  { applies: ({ uid, requestId }) => (uid ?? requestId) !== undefined, read: readByUid },
  { applies: ({ path }) => path !== undefined, read: readByPath },
  { applies: ({ digest }) => digest !== undefined, read: readByDigest },
  { applies: ({ isText }) => isText, read: readByEmail },
  ...namedLists.map(
    (list): Part => ({
      kind: list.kind,
      applies: ({ isText }) => isText,
      read: (...of) => readByName(list, ...of),
    }),
  ),
  { applies: hasWordsOfNames, read: (...of) => readBuiltinRoles(Match.NAME, ...of) },
  ...namedLists.map(
    (list): Part => ({ kind: list.kind, applies: hasWordsOfNames, read: (...of) => readByWords(list, ...of) }),
  ),
  { applies: hasWordsOfNames, read: (...of) => readBuiltinRoles(Match.WORDS, ...of) },
  { applies: ({ isText }) => isText, read: readPeople },
  { applies: ({ requestId }) => requestId !== undefined, read: readByRequest },
];

export interface FindOptions {
  readonly query: FindQuery;
  /** The kind of all that is found; unspecified for all kinds. */
  readonly kind: FoundKind;
}

/** Finds a page of what the query names. */
export async function find(
  { query, kind }: FindOptions,
  call: UnaryCall,
  deps: FindDeps,
  { from, limit }: PageRequest,
) {
  const shown = new ShownLists(call);
  const search: Search = { ...deps, query, call, shown, budget: MAX_EXAMINED };
  const found: Found[] = [];
  let next: Position | undefined;
  const isAsked = (one: FoundKind | undefined) => kind === FoundKind.UNSPECIFIED || one === kind;
  for (const [part, { applies, read, kind: only }] of parts.entries()) {
    if (part < from.part || !applies(query) || !isAsked(only ?? kind)) continue;
    if (found.length >= limit) {
      next = { part, key: "", uid: "" };
      break;
    }
    const after = part === from.part && from.uid !== "" ? from : undefined;
    const some = await read(search, after, limit - found.length);
    found.push(...some.found.filter((one) => isAsked(one.kind)));
    if (some.next !== undefined) {
      next = { ...some.next, part };
      break;
    }
  }
  return { resources: await shown.describe(found), next };
}

// What is read as a whole, because it is little: the rest of it after the page before.
function takeRest(all: readonly Found[], after: After, limit: number): PartFound {
  const keyOf = ({ kind, uid }: Found) => `${String(kind).padStart(3, "0")} ${uid}`;
  const unique = new Map(all.map((one) => [keyOf(one), one]));
  const rest = [...unique]
    .filter(([key]) => after === undefined || key > after.key)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const found = rest.slice(0, limit).map(([, one]) => one);
  const last = rest[limit - 1];
  return { found, next: rest.length > limit && last ? { key: last[0], uid: last[1].uid } : undefined };
}

async function readByUid({ query, call, shown, eventIds }: Search, after: After, limit: number) {
  const found: Found[] = [];
  const { uid, requestId } = query;
  if (uid !== undefined) {
    for (const list of foundLists) {
      const row = (await shown.readByUids(list, [uid])).get(uid);
      if (row) found.push(toFound(list, row, Match.UID));
    }
    const role = (await listBuiltinRoles(call)).find((one) => one.uid === uid);
    if (role) found.push(toFound(roleList, role, Match.UID));
    if (isPerson(uid)) found.push(...(await findPeople({ uid }, Match.UID, 1, call, shown)));
  }
  const event = await findEvent(requestId, call, eventIds);
  if (event) found.push(describeEvent(event, Match.UID, eventIds));
  return takeRest(found, after, limit);
}

async function findEvent(id: string | undefined, call: UnaryCall, eventIds: EventIds) {
  const number = id === undefined ? undefined : eventIds.parse(id);
  const row = number === undefined ? undefined : await call.tx.auditEvents.find(number);
  const scope = row && scopeOf(row);
  return scope !== undefined && call.caller.holds(bindingList.needed, scope) ? row : undefined;
}

// Lists show who people are where they have joined.
async function findPeople(by: PersonKey, match: Match, limit: number, { tx }: UnaryCall, shown: ShownLists) {
  const rows = await tx.accessQuestions.findJoined(by, await shown.topsOf(bindingList), limit);
  return rows.map((row) => toPerson(row, match));
}

function toPerson({ uid, name, email }: Pick<IdentityRow, "uid" | "name" | "email">, match: Match): Found {
  return { kind: FoundKind.IDENTITY, uid, name, detail: email, match, within: [] };
}

async function readByPath(search: Search, after: After, limit: number) {
  const { path } = search.query;
  if (path === undefined) return takeRest([], after, limit);
  const found = await followPath(path, search, "anywhere");
  const shorter = found.length === 0 ? withoutHost(path) : undefined;
  // After the host of a registry comes an organisation.
  return takeRest(shorter ? await followPath(shorter, search, "organisation") : found, after, limit);
}

type Beginning = "anywhere" | "organisation";

async function followPath(path: NamePath, search: Search, beginning: Beginning): Promise<Found[]> {
  const { shown, call } = search;
  const { start, rest } = splitStart(path.names);
  const name = rest.at(-1);
  if (name === undefined) return [];
  let groups: readonly string[] | undefined = start === undefined ? undefined : [start];
  for (const one of rest.slice(0, -1)) {
    const children = await readNamed(groupList, one, groups ?? beginning, shown);
    groups = children.map(({ uid }) => uid);
    if (groups.length === 0) return [];
  }
  const { tag, digest } = path;
  const isImage = tag !== undefined || digest !== undefined;
  const found: Found[] = [];
  for (const list of isImage ? [repoList] : namedLists) {
    for (const row of await readNamed(list, name, groups ?? beginning, shown))
      found.push(toFound(list, row, Match.PATH));
  }
  for (const { uid } of isImage ? [...found] : []) {
    const named = tag === undefined ? undefined : await call.tx.table(tagKind).findByName(uid, tag);
    const uids =
      tag === undefined
        ? await call.tx.table(tagKind).findByDigest(digest ?? "", uid, "", MAX_PLACES)
        : named && (digest === undefined || named.digest === digest)
          ? [named.uid]
          : [];
    for (const row of (await shown.readByUids(tagList, uids)).values()) found.push(toFound(tagList, row, Match.PATH));
  }
  return found;
}

// Those with a name in some groups, in none, or anywhere: organisations come before all others.
async function readNamed(
  list: FoundList,
  name: string,
  groups: readonly string[] | Beginning,
  shown: ShownLists,
): Promise<readonly ListedRow[]> {
  const inRoot: ListFilter = { name, childrenOf: "/" };
  const filters =
    groups === "anywhere"
      ? [inRoot, { name }]
      : groups === "organisation"
        ? [inRoot]
        : groups.map((childrenOf) => ({ name, childrenOf }));
  const rows = new Map<string, ListedRow>();
  for (const filter of filters) {
    if (rows.size >= MAX_SAME_NAME) break;
    for (const row of (await shown.read(list, filter, MAX_SAME_NAME)).rows) rows.set(row.uid, row);
  }
  return [...rows.values()].slice(0, MAX_SAME_NAME);
}

async function readByDigest(search: Search, after: After, limit: number): Promise<PartFound> {
  const { query, call, shown } = search;
  const found: Found[] = [];
  const last = after?.uid ?? "";
  const tops = (await shown.topsOf(tagList)).filter((top) => `${top}0` > last);
  for (const [i, top] of tops.entries()) {
    // The uid of a group comes before all that is in it.
    if (i === MAX_PLACES) return { found, next: { key: "", uid: top } };
    const size = limit - found.length;
    const uids = await call.tx.table(tagKind).findByDigest(query.digest ?? "", top, last, size);
    const rows = await shown.readByUids(tagList, uids);
    for (const uid of uids) {
      const row = rows.get(uid);
      if (row) found.push(toFound(tagList, row, Match.DIGEST));
    }
    const end = uids.at(-1);
    if (end !== undefined && uids.length === size) return { found, next: { key: "", uid: end } };
  }
  return { found, next: undefined };
}

async function readByEmail({ query, call, shown }: Search, after: After, limit: number) {
  return takeRest(await findByEmail(query, call, shown), after, limit);
}

async function findByEmail({ text }: FindQuery, call: UnaryCall, shown: ShownLists): Promise<Found[]> {
  if (!text.includes("@")) return [];
  return findPeople({ email: text }, Match.EMAIL, MAX_SAME_EMAIL, call, shown);
}

async function readByName(list: FoundList, { query, shown }: Search, after: After, limit: number) {
  const { rows, next } = await shown.read(
    list,
    { name: query.text },
    limit,
    after && { key: after.uid, uid: after.uid },
  );
  const found = rows.map((row) => toFound(list, row, Match.NAME));
  return { found, next: next && { key: "", uid: next.uid } };
}

// Names have small letters of the Latin alphabet and digits.
function hasWordsOfNames({ isText, words }: FindQuery): boolean {
  return isText && words.length > 0 && words.every((word) => /^[a-z0-9]+$/.test(word));
}

function matchesWords(words: readonly string[], ofName: readonly string[]): boolean {
  return words.every((word) => ofName.some((one) => one.startsWith(word)));
}

// Organisations that the caller sees as a whole are searched by words. Of the others, what the caller sees is read: their
// words lead to what is hidden as well, and how far a page gets would show how much of that there is.
async function readByWords(list: FoundList, search: Search, after: After, limit: number): Promise<PartFound> {
  const tops = await search.shown.topsOf(list);
  const isWhole = (top: string) => rootOf(top) === top;
  const parts = tops.filter((top) => !isWhole(top));
  const found: Found[] = [];
  if (after?.key !== IN_PARTS) {
    const some = await readWords(list, search, tops.filter(isWhole), after, limit);
    if (some.next !== undefined || parts.length === 0) return some;
    found.push(...some.found);
  }
  const last = after?.key === IN_PARTS ? after.uid : undefined;
  const rest = await readRows(list, search, parts, last, limit - found.length);
  return { found: [...found, ...rest.found], next: rest.next };
}

async function readWords(
  list: FoundList,
  search: Search,
  roots: readonly string[],
  after: After,
  limit: number,
): Promise<PartFound> {
  const { query, call, shown } = search;
  const prefix = findPrefix(query);
  let [start = "", word = ""] = after?.key.split(" ") ?? [];
  let last: NameWord | undefined = after && word !== "" ? { word, uid: after.uid } : undefined;
  const found: Found[] = [];
  for (;;) {
    const chunk = roots.filter((root) => root >= start).slice(0, MAX_PLACES);
    const [first] = chunk;
    if (first === undefined) return { found, next: undefined };
    const goOn = () => ({ found, next: { key: `${first} ${last?.word ?? ""}`, uid: last?.uid ?? first } });
    const size = chunk.length > 4 ? CHUNK / 4 : CHUNK;
    for (let isEnd = false; !isEnd; ) {
      if (search.budget <= 0) return goOn();
      const some = await call.tx.nameWords.find({ roots: chunk, kind: list.stored, prefix, after: last, limit: size });
      search.budget -= some.length + 1;
      const rows = await shown.readByUids(list, [...new Set(some.map(({ uid }) => uid))]);
      for (const one of some) {
        if (found.length === limit) return goOn();
        last = one;
        const row = rows.get(one.uid);
        if (row && findWord(list.nameOf(row), prefix, query) === one.word) found.push(toFound(list, row, Match.WORDS));
      }
      isEnd = some.length < size;
    }
    start = `${chunk.at(-1)}0`;
    last = undefined;
    word = "";
  }
}

function findPrefix({ words }: FindQuery): string {
  return words.reduce((longest, word) => (word.length > longest.length ? word : longest), "");
}

/** The word by which a name is found; undefined where it does not match, or is the whole text, which was found before. */
function findWord(name: string, prefix: string, { text, words }: FindQuery): string | undefined {
  const ofName = splitName(name);
  if (name === text || !matchesWords(words, ofName)) return undefined;
  // Of several words that match, the first one counts.
  return ofName.filter((word) => word.startsWith(prefix)).sort()[0];
}

async function readRows(
  list: FoundList,
  search: Search,
  parts: readonly string[],
  after: string | undefined,
  limit: number,
): Promise<PartFound> {
  const { query, shown } = search;
  const prefix = findPrefix(query);
  const found: Found[] = [];
  let last = after;
  const goOn = () => ({ found, next: { key: IN_PARTS, uid: last ?? FIRST } });
  for (;;) {
    if (search.budget <= 0) return goOn();
    const position = last === undefined ? undefined : { key: last, uid: last };
    const { rows, next } = await shown.readBelow(list, parts, {}, CHUNK, position);
    search.budget -= rows.length + 1;
    for (const row of rows) {
      if (found.length === limit) return goOn();
      last = row.uid;
      if (findWord(list.nameOf(row), prefix, query) !== undefined) found.push(toFound(list, row, Match.WORDS));
    }
    if (next === undefined) return { found, next: undefined };
    last = next.uid;
  }
}

// They are few, and shown to everybody.
async function readBuiltinRoles(
  match: Match,
  { query, call }: Search,
  after: After,
  limit: number,
): Promise<PartFound> {
  const { text, words } = query;
  const roles = (await listBuiltinRoles(call)).filter(
    ({ name }) => matchesWords(words, splitName(name)) && (name === text) === (match === Match.NAME),
  );
  return takeRest(
    roles.map((row) => toFound(roleList, row, match)),
    after,
    limit,
  );
}

async function listBuiltinRoles({ tx }: UnaryCall): Promise<readonly RoleRow[]> {
  return (await tx.table(roleKind).listOutsideGroups()).filter(({ uid }) => !isOperatorRole(uid));
}

// People are in no group: those are found who have bindings that the caller sees.
async function readPeople(search: Search, after: After, limit: number): Promise<PartFound> {
  const { query, call, shown } = search;
  const found: Found[] = [];
  if ((await findByEmail(query, call, shown)).length > 0) return { found, next: undefined };
  const tops = await shown.topsOf(bindingList);
  const seen = new Set<string>();
  let last = after?.uid;
  for (;;) {
    if (search.budget <= 0) return { found, next: { key: "", uid: last ?? FIRST } };
    const { rows, next } = await shown.read(
      bindingList,
      {},
      CHUNK,
      last === undefined ? undefined : { key: last, uid: last },
    );
    search.budget -= CHUNK;
    for (const row of rows as HydratedBinding[]) {
      if (found.length === limit || search.budget <= 0) return { found, next: { key: "", uid: last ?? FIRST } };
      last = row.uid;
      if (seen.has(row.identityUid) || !isJoin(row) || !isPerson(row.identityUid)) continue;
      const match = matchPerson(row, query);
      if (match === undefined) continue;
      seen.add(row.identityUid);
      // A person with several bindings is found by the first one.
      search.budget -= tops.length / TOPS_PER_ROW;
      if (await call.tx.accessQuestions.hasJoinedBefore(row.identityUid, tops, row.uid)) continue;
      found.push(
        toPerson({ uid: row.identityUid, name: row.identityName ?? "", email: row.identityEmail ?? "" }, match),
      );
    }
    if (next === undefined) return { found, next: undefined };
    last = next.uid;
  }
}

function matchPerson({ identityName, identityEmail }: HydratedBinding, { text, words }: FindQuery): Match | undefined {
  const [name, email] = [foldText(identityName ?? ""), foldText(identityEmail ?? "")];
  if (email.startsWith(text)) return Match.EMAIL;
  if (name === text) return Match.NAME;
  return words.length > 0 && matchesWords(words, splitWords(name)) ? Match.WORDS : undefined;
}

// The ids of requests have no index (store/tables/audit.ts): the logs are read from their ends.
async function readByRequest(search: Search, after: After, limit: number): Promise<PartFound> {
  const { query, call, shown, eventIds, clock } = search;
  const tops = await shown.topsOf(bindingList);
  const topSet = new Set(tops);
  const [start = "", timeMs = ""] = after?.key.split(" ") ?? [];
  const roots = [...new Set(tops.map(rootOf))].filter((root) => root >= start);
  const found: Found[] = [];
  for (const [i, rootUid] of roots.entries()) {
    if (i === MAX_LOGS || found.length === limit) return { found, next: { key: rootUid, uid: FIRST } };
    const page = await call.tx.auditEvents.list({
      ...{ rootUid, by: undefined, startMs: 0, endMs: Number.MAX_SAFE_INTEGER, descending: true },
      after: rootUid === start && timeMs !== "" ? { timeMs: Number(timeMs), id: Number(after?.uid) } : undefined,
      limit: limit - found.length,
      matches: (row) => row.requestId.toLowerCase() === query.requestId && isIn(scopeOf(row) ?? "", topSet),
      assertInTime() {
        if (clock() >= call.deadlineMs) throw deadlineExceeded();
      },
    });
    for (const row of page.rows) found.push(describeEvent(row, Match.REQUEST_ID, eventIds));
    if (page.next) return { found, next: { key: `${rootUid} ${page.next.timeMs}`, uid: String(page.next.id) } };
  }
  return { found, next: undefined };
}

function describeEvent(row: AuditEventRow, match: Match, eventIds: EventIds): Found {
  const { id, method, rootUid, subjectUid, timeMs } = row;
  const within = lineageOf(scopeOf(row) ?? rootUid);
  return {
    kind: FoundKind.AUDIT_EVENT,
    uid: eventIds.format(id),
    name: method,
    detail: subjectUid,
    match,
    within,
    timeMs,
  };
}
