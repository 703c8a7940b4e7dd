// Random calls and questions about rights in random worlds: the guard of every served method against Check, and what
// AccessService says against a naive evaluation, while the world changes under both.
import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { AccessService, Effect, type Grant, NamedKind, Origin, type Subject } from "#gen/arbor/access/v1/access_pb.js";
import { parseCapabilities } from "../../src/iam/roles/capability-names.js";
import { toCapabilitySet } from "../../src/kernel/capability-set.js";
import { ApiError } from "../../src/kernel/errors.js";
import type { Principal } from "../../src/kernel/principal.js";
import { authorize, bitOf } from "../../src/pipeline/auth/authorize.js";
import type { MethodEntry } from "../../src/pipeline/method-table.js";
import { createRandom } from "../support/openapi/random.js";
import { createModel, type Fault, type Model, type ModelGrant, type ModelSubject, type Token } from "./model.js";
import { type OpenedPlatform, openPlatform } from "./platform.js";
import { createWorld, drawToken, extend, type RandomWorld } from "./world.js";

/** What a run found. */
export interface AccessRun {
  readonly calls: number;
  readonly allowed: number;
  readonly differences: readonly string[];
  readonly worlds: number;
  readonly changes: number;
  /** How many methods were asked about. */
  readonly methods: number;
  /** How many questions of each kind were compared, by name. */
  readonly asked: Readonly<Record<string, number>>;
}

export interface AccessRunOptions {
  readonly calls: number;
  readonly seed: number;
  /** Makes the model wrong, or with `pages` the reader of pages, to show that differences are found. */
  readonly fault?: Fault | "pages" | undefined;
  /** Opens the database of a world; new SQLite databases unless given. */
  readonly newDatabase?: () => Promise<string>;
  readonly callsPerWorld?: number;
}

const MAX_DIFFERENCES = 20;
const CALLS_PER_CHANGE = 12;
const CALLS_PER_WORLD = 4_000;
/** More pages than any list of these worlds has. */
const MAX_PAGES = 400;

const pathOf = (method: string) => `/${AccessService.typeName}/${method}`;

/** Makes random calls, in several worlds one after the other. */
export async function runAccess(options: AccessRunOptions): Promise<AccessRun> {
  const { calls, seed, fault, newDatabase, callsPerWorld = CALLS_PER_WORLD } = options;
  const total = { calls: 0, allowed: 0, worlds: 0, changes: 0 };
  // One is enough to show that a fault is found.
  const most = fault === undefined ? MAX_DIFFERENCES : 1;
  const asked: Record<string, number> = {};
  const differences: string[] = [];
  const methods = new Set<string>();
  while (total.calls < calls && differences.length < most) {
    const platform = await openPlatform(await newDatabase?.());
    try {
      const random = createRandom(seed + total.worlds);
      const run = await startRun(platform, random, { fault, asked, differences, methods });
      const end = Math.min(calls, total.calls + callsPerWorld);
      for (; total.calls < end && differences.length < most; total.calls++) {
        if (total.calls % CALLS_PER_CHANGE === 0) {
          await run.change();
          total.changes++;
        }
        if (await run.call()) total.allowed++;
      }
      total.worlds++;
    } finally {
      await platform.close();
    }
  }
  return { ...total, differences, methods: methods.size, asked };
}

interface Findings {
  readonly fault: AccessRunOptions["fault"];
  readonly asked: Record<string, number>;
  readonly differences: string[];
  readonly methods: Set<string>;
}

async function startRun(platform: OpenedPlatform, random: ReturnType<typeof createRandom>, findings: Findings) {
  const { chance, int, pick } = random;
  const { fault, asked, differences } = findings;
  const entries = [...platform.methods.values()].filter(({ mounted }) => mounted === undefined);
  const needed = [
    ...new Set(
      entries.flatMap(({ auth }) => (auth.mode === "guarded" ? auth.capabilities.map(({ name }) => name) : [])),
    ),
  ];
  const world = await createWorld(platform.store, random, needed);
  const model = createModel(world, fault === "pages" ? undefined : fault);

  function compare(kind: string, what: string, found: unknown, expected: unknown): void {
    asked[kind] = (asked[kind] ?? 0) + 1;
    const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
    if (a !== b) differences.push(`${kind}: ${what}:\n    found    ${a}\n    expected ${b}`);
  }

  // Near a grant of the identity in most cases: elsewhere nearly everything is denied.
  function drawGroup(identity: string): string {
    const groups = [...world.groups.keys()];
    const own = [...world.bindings.values()].filter((one) => one.identity === identity).map(({ group }) => group);
    return own.length > 0 && chance(0.7) ? extend(pick(own), groups, random) : pick(groups);
  }

  function drawResource(identity: string): string {
    const group = drawGroup(identity);
    const madeUp = () => random.text("0123456789abcdef", 16, 16);
    const dice = int(20);
    if (dice < 9) return group;
    if (dice < 12) return `${group}/${madeUp()}`;
    if (dice === 12) return `${group}/${madeUp()}/${madeUp()}`;
    if (dice === 13) return chance(0.5) ? identity : random.text("0123456789abcdef", 40, 40);
    const things = [world.bindings, world.roles, world.invites, world.repos, world.mappings, world.providers];
    const inGroup = [...pick(things).keys()].filter((uid) => uid.startsWith(`${group}/`));
    return inGroup.length === 0 ? group : pick(inGroup);
  }

  const auditor = world.auditor;
  const drawIdentity = () => pick(world.everybody());
  // Somebody of everybody, the auditor, or one whose bindings are pending: those count in some lists and not in others.
  function drawCaller(): Token {
    if (chance(0.25)) return { ...auditor, issuedAt: 1_000 };
    const pending = [...world.bindings.values()].filter((one) => one.pending && world.identities.has(one.identity));
    const identities = pending.length > 0 && chance(0.3) ? pending.map((one) => one.identity) : world.identities.keys();
    return drawToken(world, random, pick([...identities]), needed);
  }

  /** Calls a method of AccessService; the name of the code where it fails. */
  async function ask<T>(method: string, token: Token, request: object): Promise<T | string> {
    try {
      return (await platform.call(pathOf(method), toPrincipal(token), request)) as T;
    } catch (error) {
      return codeOf(error);
    }
  }

  async function decide(entry: MethodEntry, token: Token, uid: string): Promise<string> {
    const { auth } = entry;
    if (auth.mode !== "guarded") return "ok";
    const access = entry.kind === "unary" ? entry.access : "read";
    try {
      await platform.store.read((tx) => authorize(auth, toPrincipal(token), requestAt(entry, uid), tx, access));
      return "ok";
    } catch (error) {
      if (error instanceof ApiError) return Code[error.code] ?? "";
      throw error;
    }
  }

  // What Check should say of a method. With a method that is called without a resource, the resource of the question
  // says where it would show something.
  function expectCheck(entry: MethodEntry, caller: Token, identity: string, uid: string): object | string {
    const { auth } = entry;
    if (!model.isValid(caller)) return "Unauthenticated";
    const capabilities = auth.mode === "guarded" ? auth.capabilities.map(({ name }) => name) : [];
    const nothing = { allowed: true, missing: [], partial: false, unconfirmed: false };
    const isForAll = capabilities.length === 0 && !(auth.mode === "guarded" && auth.scope !== undefined);
    if (uid === "" || isForAll) return nothing;
    const answer = model.answerAt(caller, identity, uid);
    if (answer === undefined) return "PermissionDenied";
    const { grants, partial, unconfirmed } = answer;
    const isOwn = isOfOwn(nameOf(entry)) && isAboutOneself(caller, identity, uid);
    const missing = isOwn ? [] : model.missingOf(grants, capabilities, uid);
    return { allowed: missing.length === 0, missing: missing.sort(), partial, unconfirmed };
  }

  async function check(entry: MethodEntry, caller: Token, identity: string, uid: string): Promise<object | string> {
    const isSelf = identity === caller.identity && chance(0.5);
    const request = { identity: isSelf ? "" : identity, actions: [nameOf(entry)], resource: uid };
    const found = await ask<Message & CheckFields>("Check", caller, request);
    if (typeof found === "string") return found;
    const { allowed, missingCapabilities, partial, unconfirmed } = found;
    return { allowed, missing: [...missingCapabilities].sort(), partial, unconfirmed };
  }

  async function checkCall(): Promise<boolean> {
    const entry = pick(entries);
    findings.methods.add(entry.path);
    const token = drawToken(world, random, chance(0.03) ? world.nobody : pick([...world.identities.keys()]), needed);
    const isScoped = entry.auth.mode === "guarded" && entry.auth.scope !== undefined;
    const drawn = isScoped || chance(0.5) ? drawResource(token.identity) : "";
    const uid = isOfOwn(nameOf(entry)) && chance(0.5) ? token.identity : drawn;
    const what = `${nameOf(entry)} at ${uid || "-"} by ${describe(token)}`;
    const guarded = await decide(entry, token, uid);
    const own = await check(entry, token, token.identity, uid);
    compare("check", what, own, expectCheck(entry, token, token.identity, uid));
    // The other direction is the point: a guard that denies, and only such a one, is told.
    if (entry.auth.mode === "guarded" && (isScoped || uid === "")) {
      const told = typeof own === "string" ? own : (own as { allowed: boolean }).allowed ? "ok" : "PermissionDenied";
      compare("guard", what, told, guarded);
      if (chance(0.1)) await callReally(entry, token, uid, guarded, what);
    }
    await checkOther(entry, uid);
    return guarded === "ok";
  }

  // The guard's denial has one text; a handler that denies has another, unless it hides that something is not there.
  async function callReally(entry: MethodEntry, token: Token, uid: string, guarded: string, what: string) {
    const { auth } = entry;
    if (entry.kind !== "unary" || auth.mode !== "guarded" || auth.scope === undefined) return;
    if (guarded === "ok" && (entry.access === "write" || !mayKnow(token, uid))) return;
    const names = auth.capabilities.map(({ name }) => name).join(" and ");
    const denied = `Permission denied: ${names} at ${uid} (or it might not exist)`;
    const message = await platform.call(entry.path, toPrincipal(token), requestAt(entry, uid)).then(
      () => "",
      (error) => (error instanceof ConnectError ? error.rawMessage : Promise.reject(error)),
    );
    compare("real call", `${what}: ${message}`, message === denied, guarded === "PermissionDenied");
  }

  const mayKnow = (token: Token, uid: string) =>
    uid.includes("/") && model.may(token, ["groups.list"], uid.slice(0, uid.lastIndexOf("/")));

  // The auditor sees all bindings, so what it is told of an identity is what the guard says of a new token.
  async function checkOther(entry: MethodEntry, near: string): Promise<void> {
    const identity = drawIdentity();
    const uid = near !== "" && chance(0.5) ? near : drawResource(identity);
    const caller = chance(0.6) ? { ...auditor, issuedAt: 1_000 } : drawCaller();
    if (identity === caller.identity) return;
    const what = `${nameOf(entry)} at ${uid} for ${identity} by ${describe(caller)}`;
    const found = await check(entry, caller, identity, uid);
    compare("check of another", what, found, expectCheck(entry, caller, identity, uid));
    if (typeof found === "string" || caller.identity !== auditor.identity) return;
    const { allowed, unconfirmed, partial } = found as { allowed: boolean; unconfirmed: boolean; partial: boolean };
    const isScoped = entry.auth.mode === "guarded" && entry.auth.scope !== undefined;
    if (unconfirmed || partial || !isScoped) return;
    const guarded = await decide(entry, { identity, issuedAt: Number.MAX_SAFE_INTEGER }, uid);
    compare("guard of another", what, allowed, guarded === "ok");
  }

  function drawQuestion(): {
    readonly request: object;
    readonly capabilities: readonly string[];
    readonly text: string;
  } {
    if (chance(0.4)) {
      const capabilities = [...new Set(Array.from({ length: 1 + int(3) }, () => pick(needed)))];
      return { request: { actions: capabilities }, capabilities, text: capabilities.join() };
    }
    const guarded = entries.filter(({ auth }) => auth.mode === "guarded" && auth.capabilities.length > 0);
    const entry = pick(guarded);
    const capabilities = entry.auth.mode === "guarded" ? entry.auth.capabilities.map(({ name }) => name) : [];
    return { request: { actions: [nameOf(entry)] }, capabilities, text: nameOf(entry) };
  }

  async function explain(): Promise<void> {
    const caller = drawCaller();
    const identity = chance(0.5) ? caller.identity : drawIdentity();
    const { request, capabilities, text } = drawQuestion();
    const uid = isOfOwn(text) && chance(0.5) ? identity : drawResource(identity);
    const what = `${text} at ${uid} for ${identity} by ${describe(caller)}`;
    const found = await ask<ExplainFields>("Explain", caller, { ...request, identity, resource: uid });
    const expected = expectAnswer(caller, identity, uid);
    if (typeof found === "string" || typeof expected === "string") return compare("explain", what, found, expected);
    const { grants, rules, unconfirmed } = expected;
    // An explanation also looks at mappings.
    const partial = expected.partial || expected.hidesRule;
    const isOwn = isOfOwn(text) && isAboutOneself(caller, identity, uid);
    const missing = isOwn ? [] : model.missingOf(grants, capabilities, uid).sort();
    const isLimited = identity === caller.identity && caller.limit !== undefined;
    const useful = model
      .usefulOf([...grants, ...rules], capabilities)
      .filter(({ effect }) => !isLimited || effect === "counts")
      .map((grant) => (isLimited ? model.asLimited(grant, model.may(caller, ["groups.list"], grant.group)) : grant));
    compare(
      "explain",
      what,
      {
        ...{ allowed: found.allowed, missing: [...found.missingCapabilities].sort() },
        ...{ needed: [...found.neededCapabilities].sort(), partial: found.partial, unconfirmed: found.unconfirmed },
        grants: found.grants.map(formatGrant).sort(),
      },
      {
        ...{ allowed: missing.length === 0, missing, needed: [...capabilities].sort(), partial, unconfirmed },
        grants: useful.map((grant) => formatModelGrant(grant, capabilities)).sort(),
      },
    );
    // Higher groups come first, and what counts grants exactly what is not missing.
    const depths = found.grants.map(({ group }) => (group?.uid ?? "").length);
    compare(
      "order of explain",
      what,
      depths,
      [...depths].sort((a, b) => a - b),
    );
    const counting = found.grants.filter(({ effect }) => effect === Effect.COUNTS).flatMap((one) => one.capabilities);
    const lacking = isOwn ? [] : capabilities.filter((one) => !counting.includes(one)).sort();
    compare("grants of explain", what, [...found.missingCapabilities].sort(), lacking);
  }

  // Of methods that people may call about themselves without capabilities.
  const ownNames = new Set(
    entries.filter(({ auth }) => auth.mode === "guarded" && auth.ownIdentity === true).map(nameOf),
  );
  const isOfOwn = (name: string) => ownNames.has(name);
  const isAboutOneself = (caller: Token, identity: string, uid: string) =>
    identity === caller.identity && identity === uid && !uid.includes("/") && caller.limit === undefined;

  function expectAnswer(caller: Token, identity: string, uid: string) {
    if (!model.isValid(caller)) return "Unauthenticated";
    return model.answerAt(caller, identity, uid) ?? "PermissionDenied";
  }

  /** Reads all pages; each of another size, none of which may be exceeded. */
  async function readAll<T, R extends { nextPageToken: string }>(
    method: string,
    token: Token,
    request: object,
    itemsOf: (response: R) => readonly T[],
  ): Promise<{ readonly items: T[]; readonly pages: readonly R[] } | string> {
    const items: T[] = [];
    const pages: R[] = [];
    const sizes = pick([[0], [1], [2, 3], [1, 7, 50], [200]]);
    for (let page = 0, pageToken = ""; page < MAX_PAGES; page++) {
      const pageSize = sizes[page % sizes.length] ?? 0;
      const response = await ask<R>(method, token, { ...request, pageSize, pageToken });
      if (typeof response === "string") return response;
      pages.push(response);
      const some = itemsOf(response);
      if (some.length > (pageSize || 50)) return `a page of ${some.length} where ${pageSize} were asked for`;
      // The control loses the last entry of a page that has several.
      items.push(...(fault === "pages" && some.length > 1 ? some.slice(0, -1) : some));
      pageToken = response.nextPageToken;
      if (pageToken === "") return { items, pages };
    }
    return "the pages do not end";
  }

  async function listSubjects(): Promise<void> {
    const caller = drawCaller();
    const uid = chance(0.5) ? drawResource(caller.identity) : drawResource(pick([...world.identities.keys()]));
    const { request, capabilities, text } = drawQuestion();
    const what = `${text} at ${uid} by ${describe(caller)}`;
    const whole = { ...request, resource: uid };
    const found = await readAll<Subject, SubjectsFields>("ListSubjects", caller, whole, ({ subjects }) => subjects);
    const expected = expectSubjects(caller, capabilities, uid);
    if (typeof found === "string" || typeof expected === "string")
      return compare(
        "subjects",
        what,
        typeof found === "string" ? found : "ok",
        typeof expected === "string" ? expected : "ok",
      );
    const { subjects, partial } = expected;
    const formatted = found.items.map(formatSubject);
    const expectedSubjects = subjects.map(formatModelSubject);
    compare(
      "subjects",
      what,
      { partial: found.pages.some((page) => page.partial), subjects: sortRules(formatted) },
      { partial, subjects: sortRules(expectedSubjects) },
    );
    for (const [i, { grants }] of found.items.entries()) {
      const expectedGrants = subjects[expectedSubjects.indexOf(formatted[i] ?? "")]?.grants ?? [];
      const all = expectedGrants.map((grant) => formatModelGrant(grant, capabilities));
      const given = grants.map(formatGrant);
      const strange = given.filter((one) => !all.includes(one));
      const count = new Set(given).size;
      const most = Math.min(10, all.length);
      compare("grants of subjects", `${what}, subject ${i}`, { strange, count }, { strange: [], count: most });
    }
  }

  function expectSubjects(caller: Token, capabilities: readonly string[], uid: string) {
    if (!model.isValid(caller)) return "Unauthenticated";
    return model.subjectsAt(caller, capabilities, uid) ?? "PermissionDenied";
  }

  async function listAccess(): Promise<void> {
    const caller = drawCaller();
    const identity = chance(0.4) ? caller.identity : drawIdentity();
    const group = chance(0.5) ? "" : drawGroup(identity);
    const what = `of ${identity} in ${group || "all groups"} by ${describe(caller)}`;
    const request = { identity: identity === caller.identity && chance(0.5) ? "" : identity, group };
    const found = await readAll<Grant, AccessFields>("ListAccess", caller, request, ({ grants }) => grants);
    const expected = model.isValid(caller) ? model.accessOf(caller, identity, group) : "Unauthenticated";
    if (typeof found === "string" || typeof expected === "string")
      return compare(
        "access",
        what,
        typeof found === "string" ? found : "ok",
        typeof expected === "string" ? expected : "ok",
      );
    const inOrder = found.items.map((one) => (one.mapping === "" ? one.group?.uid : one.mapping));
    compare(
      "access",
      what,
      { unconfirmed: found.pages[0]?.unconfirmed, grants: found.items.map(formatGrant).sort() },
      { unconfirmed: expected.unconfirmed, grants: expected.grants.map((one) => formatModelGrant(one)).sort() },
    );
    const order = expected.grants.map((one) => (one.mapping === "" ? one.group : one.mapping));
    compare("order of access", what, inOrder, order);
  }

  async function searchNames(): Promise<void> {
    const caller = drawCaller();
    const prefix = pick(["a", "ab", "A", "a_", "a%", "b", "b_", "b-", "z", "zz"]);
    const [kind, name] = pick([
      [NamedKind.UNSPECIFIED, ""],
      [NamedKind.GROUP, "group"],
      [NamedKind.IDENTITY, "identity"],
      [NamedKind.REPO, "repo"],
    ] as const);
    const group = chance(0.5) ? "" : drawGroup(caller.identity);
    const what = `${prefix} ${name} below ${group || "nothing"} by ${describe(caller)}`;
    const request = { prefix, kind, group };
    const found = await readAll<NamedFields, NamesFields>("SearchNames", caller, request, ({ resources }) => resources);
    const expected = model.namesFrom(caller, prefix, group).filter((one) => name === "" || one.kind === name);
    const kinds = ["", "group", "identity", "repo"];
    const items =
      typeof found === "string" ? found : found.items.map((one) => [kinds[one.kind], one.uid, one.name, one.group]);
    const valid = model.isValid(caller);
    compare(
      "names",
      what,
      items,
      valid ? expected.map((one) => [one.kind, one.uid, one.name, one.group]) : "Unauthenticated",
    );
  }

  // Somebody who was bound by others, and never did anything here, must not look otherwise when they register.
  async function register(): Promise<void> {
    const caller = drawCaller();
    const people = world.everybody().filter((one) => !one.includes("/") && one !== caller.identity && isOnlyBound(one));
    const others = [auditor.identity, world.nobody, world.anonymous];
    const plain = people.filter((one) => !others.includes(one));
    if (plain.length === 0) return;
    const person = pick(plain);
    const uid = drawResource(person);
    const { request, text } = drawQuestion();
    const answers = async () =>
      JSON.stringify(
        [
          await ask("Check", caller, { ...request, identity: person, resource: uid }),
          await ask("Explain", caller, { ...request, identity: person, resource: uid }),
          await ask("ListSubjects", caller, { ...request, resource: uid, pageSize: 200 }),
          await ask("ListAccess", caller, { identity: person, pageSize: 200 }),
          await ask("ListAccess", caller, { identity: person, group: drawnGroup, pageSize: 200 }),
        ],
        (key, value) => (key === "nextPageToken" ? value !== "" : typeof value === "bigint" ? String(value) : value),
      );
    const drawnGroup = drawGroup(person);
    const before = await answers();
    await world.toggleRegistration(person);
    const after = await answers();
    compare("registration", `${text} at ${uid} of ${person} by ${describe(caller)}`, after, before);
  }

  const isOnlyBound = (person: string) =>
    world.identities.get(person)?.isDeleting !== true &&
    [...world.bindings.values()].every((one) => one.identity !== person || one.origin === "bound");

  const groupName = (uid: string) => world.groups.get(uid) ?? "";
  const roleName = (uid: string) => world.roles.get(uid)?.name ?? "";

  function formatModelGrant(grant: ModelGrant, among?: readonly string[]): string {
    const { binding, mapping, group, role, pending } = grant;
    const capabilities = [...grant.capabilities].filter((one) => among?.includes(one) ?? true).sort();
    const external = world.mappings.get(mapping)?.externalGroup ?? "";
    const named = [group, grant.isNamed === false ? "" : groupName(group), role, roleName(role)];
    return [binding, mapping, external, ...named, capabilities, grant.origin, pending, grant.effect].join("|");
  }

  const questions = [explain, listSubjects, listAccess, searchNames];
  let turn = 0;
  return {
    change: () => world.change(),
    async call(): Promise<boolean> {
      const allowed = await checkCall();
      await questions[turn++ % questions.length]?.();
      if (turn % 20 === 0) await register();
      return allowed;
    },
  };
}

interface CheckFields {
  readonly allowed: boolean;
  readonly missingCapabilities: readonly string[];
  readonly partial: boolean;
  readonly unconfirmed: boolean;
}
interface ExplainFields extends CheckFields {
  readonly neededCapabilities: readonly string[];
  readonly grants: readonly Grant[];
}
interface SubjectsFields {
  readonly subjects: readonly Subject[];
  readonly nextPageToken: string;
  readonly partial: boolean;
}
interface AccessFields {
  readonly grants: readonly Grant[];
  readonly nextPageToken: string;
  readonly unconfirmed: boolean;
}
interface NamedFields {
  readonly kind: NamedKind;
  readonly uid: string;
  readonly name: string;
  readonly group: string;
}
interface NamesFields {
  readonly resources: readonly NamedFields[];
  readonly nextPageToken: string;
}

const origins: Readonly<Record<Origin, ModelGrant["origin"]>> = {
  [Origin.UNSPECIFIED]: "none",
  [Origin.BOUND]: "bound",
  [Origin.CREATED_GROUP]: "created",
  [Origin.JOINED]: "joined",
  [Origin.DIRECTORY]: "directory",
};
const effects: Readonly<Record<Effect, string>> = {
  [Effect.UNSPECIFIED]: "unknown",
  [Effect.COUNTS]: "counts",
  [Effect.WITH_DIRECTORY_GROUP]: "directory",
  [Effect.OTHER_PROVIDER]: "other provider",
};

function formatGrant(grant: Grant): string {
  const { roleBinding, mapping, externalGroupId, group, role, pending, origin, effect } = grant;
  const named = [group?.uid ?? "", group?.name ?? "", role?.uid ?? "", role?.name ?? ""];
  const capabilities = [...grant.capabilities].sort();
  return [
    ...[roleBinding, mapping, externalGroupId, ...named, capabilities],
    ...[origins[origin ?? 0], pending, effects[effect ?? 0]],
  ].join("|");
}

function formatSubject({ subject }: Subject): string {
  const value = (subject.value ?? {}) as { uid?: string; name?: string; email?: string; unconfirmed?: boolean };
  return [subject.case, value.uid, value.name ?? "", value.email ?? "", value.unconfirmed ?? false].join("|");
}

// Identities are in the order of their uids, and rules of one kind in any order.
function sortRules(subjects: readonly string[]): string[] {
  const kinds = ["identity", "mapping", "provider", "invite"];
  const kindOf = (text: string) => text.slice(0, text.indexOf("|"));
  return kinds.flatMap((kind) => {
    const some = subjects.filter((text) => kindOf(text) === kind);
    const isTogether = subjects.slice(subjects.indexOf(some[0] ?? ""), subjects.lastIndexOf(some.at(-1) ?? "") + 1);
    if (isTogether.length !== some.length) return [`${kind} is not in one place`];
    return kind === "identity" ? some : some.sort();
  });
}

function formatModelSubject({ kind, uid, name, email, unconfirmed }: ModelSubject): string {
  return [kind, uid, name, email, unconfirmed].join("|");
}

function codeOf(error: unknown): string {
  if (error instanceof ConnectError) return Code[error.code] ?? "";
  throw error;
}

/** The full name of a method, as requests name it. */
export function nameOf({ path }: MethodEntry): string {
  return path.slice(1).replace("/", ".");
}

/** A request of a method about `uid`, with nothing else in it. */
export function requestAt({ auth, desc }: MethodEntry, uid: string): Message {
  if (auth.mode !== "guarded" || auth.scope === undefined) return create(desc.input as DescMessage);
  const [outer = "", inner] = auth.scope.field.split(".");
  return create(desc.input as DescMessage, { [outer]: inner === undefined ? uid : { [inner]: uid } } as never);
}

/** The claims of a token. */
export function toPrincipal({ identity, issuedAt, limit, mappings }: Token): Principal {
  const { capabilities, groups } = limit ?? {};
  return {
    ...{ identityUid: identity, tokenId: "token", issuedAt, expiresAt: Number.MAX_SAFE_INTEGER },
    ...(limit && {
      limit: {
        ...(capabilities && { cap: toCapabilitySet(parseCapabilities([...capabilities]).map(bitOf)) }),
        ...(groups && { scope: groups }),
      },
    }),
    ...(mappings && { mappings }),
  };
}

function describe({ identity, issuedAt, limit, mappings }: Token): string {
  const { capabilities, groups } = limit ?? {};
  const parts = [
    identity,
    issuedAt < 1_000 ? "old" : "",
    capabilities ? `only ${[...capabilities].length} capabilities` : "",
    groups ? `only in ${groups.join()}` : "",
    mappings?.length ? `with ${mappings.join()}` : "",
  ];
  return parts.filter((one) => one !== "").join(", ");
}

export type { Model, RandomWorld };
