// What AccessService should say, in the plainest terms: sets of identities, bindings and roles, and loops over all of
// them. Nothing here is used by the service, and nothing of the service is used here.

/** Names of capabilities, such as `groups.list`. */
export type Capabilities = ReadonlySet<string>;

export interface ModelIdentity {
  readonly name: string;
  readonly email: string;
  /** The organisation's own provider that a person came through. */
  readonly provider: string | undefined;
  readonly isDeleting: boolean;
  /** Tokens issued before this epoch second are void. */
  readonly notBefore: number;
}

export interface ModelRole {
  readonly name: string;
  readonly capabilities: Capabilities;
  readonly isBuiltIn?: boolean;
}

export interface ModelBinding {
  readonly identity: string;
  readonly role: string;
  readonly group: string;
  readonly origin: "bound" | "created" | "joined" | "directory";
  readonly pending: boolean;
}

export interface ModelMapping {
  readonly provider: string;
  readonly externalGroup: string;
  readonly role: string;
  readonly scope: string;
}

/** Everything there is, by uid. The test changes it along with the store. */
export interface World {
  /** The names of groups. */
  readonly groups: Map<string, string>;
  readonly roles: Map<string, ModelRole>;
  /** Those who are registered, and workloads. */
  readonly identities: Map<string, ModelIdentity>;
  readonly bindings: Map<string, ModelBinding>;
  readonly providers: Map<string, { readonly name: string; readonly role: string }>;
  readonly mappings: Map<string, ModelMapping>;
  readonly invites: Map<string, { readonly role: string; readonly email: string; readonly isLive: boolean }>;
  /** The names of repos. */
  readonly repos: Map<string, string>;
  /** The built-in identity that stands for everybody, of which everybody knows. */
  readonly anonymous: string;
}

/** Who asks, with which token. */
export interface Token {
  readonly identity: string;
  readonly issuedAt: number;
  readonly limit?: { readonly capabilities?: Capabilities; readonly groups?: readonly string[] };
  readonly mappings?: readonly string[];
}

/** What makes the model wrong on purpose, to show that a difference is found. */
export const faults = ["inherits", "token", "pending", "provider", "visibility", "joined", "names"] as const;
export type Fault = (typeof faults)[number];

/** A grant, and whether it counts. */
export interface ModelGrant {
  readonly binding: string;
  readonly mapping: string;
  readonly group: string;
  /** The group of the binding or the mapping, where a limit of the token lets it count at another one. */
  readonly boundAt: string;
  readonly role: string;
  readonly capabilities: Capabilities;
  readonly origin: "none" | ModelBinding["origin"];
  readonly pending: boolean;
  /** `unknown` where the caller does not see what the role grants. */
  readonly effect: "counts" | "directory" | "other provider" | "unknown";
  /** Whether the name of the group is shown; it is unless false. */
  readonly isNamed?: boolean;
}

/** A subject of ListSubjects. */
export interface ModelSubject {
  readonly kind: "identity" | "mapping" | "provider" | "invite";
  readonly uid: string;
  readonly name: string;
  readonly email: string;
  readonly unconfirmed: boolean;
  readonly grants: readonly ModelGrant[];
}

const ANY: Capabilities = new Set();

/** The segments of `uid` and of all that it is in. */
export function pathTo(uid: string): string[] {
  const parts = uid.split("/");
  return parts.map((_, i) => parts.slice(0, i + 1).join("/"));
}

const rootOf = (uid: string) => uid.split("/")[0] ?? "";
const groupOf = (uid: string) => uid.split("/").slice(0, -1).join("/");
const byUid = (a: readonly [string, unknown], b: readonly [string, unknown]) => (a[0] < b[0] ? -1 : 1);
const sortedEntries = <T>(map: ReadonlyMap<string, T>) => [...map].sort(byUid);

/** Creates the naive evaluation of a world. */
export function createModel(world: World, fault?: Fault) {
  const isIn = (uid: string, group: string) =>
    fault === "inherits" ? uid === group || groupOf(uid) === group : pathTo(uid).includes(group);

  const isPerson = (identity: string) => !identity.includes("/") && identity !== world.anonymous;

  /** Whether the identity exists and its token is not void. */
  function isValid({ identity, issuedAt }: Token): boolean {
    const found = world.identities.get(identity);
    return found !== undefined && !found.isDeleting && issuedAt >= found.notBefore;
  }

  const effectAt = (provider: string | undefined, group: string) =>
    provider === undefined || fault === "provider" || rootOf(provider) === rootOf(group) ? "counts" : "other provider";

  /** All grants of a token, with those that do not count; by whose bindings, as far as the provider is known. */
  function grantsOf(token: Token): ModelGrant[] {
    const found = world.identities.get(token.identity);
    const whole: ModelGrant[] = [];
    for (const [uid, { identity, role, group, origin, pending }] of world.bindings) {
      if (identity !== token.identity) continue;
      const capabilities = world.roles.get(role)?.capabilities ?? ANY;
      const effect = effectAt(found?.provider, group);
      const at = { group, boundAt: group };
      whole.push({ binding: uid, mapping: "", ...at, role, capabilities, origin, pending, effect });
    }
    for (const [uid, { provider, role, scope }] of world.mappings) {
      if (!token.mappings?.includes(uid) || found?.provider === undefined || found.provider !== provider) continue;
      const capabilities = world.roles.get(role)?.capabilities ?? ANY;
      const effect = effectAt(provider, scope);
      const what = { binding: "", mapping: uid, group: scope, boundAt: scope, role };
      whole.push({ ...what, capabilities, origin: "none", pending: false, effect });
    }
    return limit(whole, fault === "token" ? undefined : token.limit);
  }

  // A grant at or above a group of the limit counts at that group, and no other one does.
  function limit(whole: readonly ModelGrant[], limited: Token["limit"]): ModelGrant[] {
    if (limited === undefined) return [...whole];
    const placed = whole.flatMap((grant) => {
      const groups = limited.groups;
      if (groups === undefined) return [grant];
      const below = groups.filter((group) => isIn(group, grant.group));
      const highest = below.filter((group) => !below.some((other) => other !== group && isIn(group, other)));
      return [...new Set(highest)].map((group) => ({ ...grant, group }));
    });
    const { capabilities } = limited;
    return placed.map((grant) => ({
      ...grant,
      capabilities:
        capabilities === undefined
          ? grant.capabilities
          : new Set([...grant.capabilities].filter((one) => capabilities.has(one))),
    }));
  }

  /** The capabilities of `needed` that no counting grant of these has at `uid`. */
  function missingOf(grants: readonly ModelGrant[], needed: Iterable<string>, uid: string): string[] {
    const counting = grants.filter(({ effect, group }) => effect === "counts" && isIn(uid, group));
    return [...needed].filter((one) => !counting.some(({ capabilities }) => capabilities.has(one)));
  }

  /** Whether a token may do what needs these capabilities at `uid`, when a call names it. */
  function may(token: Token, needed: Iterable<string>, uid: string): boolean {
    return isValid(token) && missingOf(grantsOf(token), needed, uid).length === 0;
  }

  /**
   * Whether a list over all groups shows to the token what is at `uid`. Pending bindings count where the request names
   * a group that they are at or above.
   */
  function shows(token: Token, capability: string, uid: string, named = ""): boolean {
    const grants = grantsOf(token).filter(({ pending, boundAt }) => !pending || (named !== "" && isIn(named, boundAt)));
    return isValid(token) && missingOf(fault === "pending" ? grantsOf(token) : grants, [capability], uid).length === 0;
  }

  /** Of the groups that `uid` is in those whose bindings the caller sees. */
  function visiblePath(caller: Token, uid: string): string[] {
    return pathTo(uid).filter((group) => fault === "visibility" || may(caller, ["role_bindings.list"], group));
  }

  /** Whether lists of roles show a role: those that are built in, and those of groups where the caller may list. */
  const seesRole = (role: string, lists: (group: string) => boolean) =>
    fault === "visibility" || (role.includes("/") ? lists(groupOf(role)) : world.roles.get(role)?.isBuiltIn === true);

  /** What a caller sees of the grants of another identity: bindings in some groups, and the roles of others. */
  function grantsSeen(
    identity: string,
    seesGroup: (group: string) => boolean,
    listsRoles: (group: string) => boolean,
    knowsAt: (group: string) => boolean = seesGroup,
  ) {
    const known = world.identities.get(identity);
    // Lists show no bindings of an identity that is being deleted, and workloads that are gone have no rights.
    const isGone = known?.isDeleting === true || (known === undefined && !isPerson(identity));
    const all = isGone ? [] : grantsOf({ identity, issuedAt: Number.POSITIVE_INFINITY });
    const visible = all.filter(({ group }) => seesGroup(group));
    const unconfirmed =
      isPerson(identity) &&
      (fault === "joined"
        ? known === undefined
        : !all.some(({ origin, group }) => origin !== "bound" && knowsAt(group)));
    const grants = visible.map((grant): ModelGrant => {
      // Others do not see whether a binding is pending, and of a stranger not by which provider they sign in.
      const shown = { ...grant, pending: false, effect: unconfirmed ? ("counts" as const) : grant.effect };
      return seesRole(grant.role, listsRoles) ? shown : { ...shown, capabilities: ANY, effect: "unknown" };
    });
    return { unconfirmed, grants };
  }

  const isHidden = ({ effect }: ModelGrant) => effect === "unknown";

  /** What the caller may ask about an identity at a resource; undefined where it may not ask. */
  function answerAt(caller: Token, identity: string, uid: string) {
    if (identity === caller.identity) {
      const grants = grantsOf(caller).filter(({ group }) => isIn(uid, group));
      return { grants, rules: [], partial: false, unconfirmed: false, hidesRule: false };
    }
    const visible = visiblePath(caller, uid);
    if (!visible.includes(uid)) return undefined;
    const { grants, unconfirmed } = grantsSeen(
      identity,
      (group) => visible.includes(group),
      rolesListedBy(caller),
      belowFirst(visible),
    );
    const partial = visible.length < pathTo(uid).length || grants.some(isHidden);
    const sees = (scope: string) => visible.includes(scope);
    const rules = mappingsOf(caller, identity, unconfirmed, sees);
    const hidesRule = mappingsOf(caller, identity, unconfirmed, sees, true).length > rules.length;
    return { grants, rules, partial, unconfirmed, hidesRule };
  }

  /** The caller sees the bindings of all groups below the highest one. */
  const belowFirst =
    ([top = ""]: readonly string[]) =>
    (group: string) =>
      isIn(group, top);

  const rolesListedBy = (caller: Token) => (group: string) => may(caller, ["roles.list"], group);

  /** The mappings of the provider of a person whom the caller knows, where its lists show them. */
  function mappingsOf(
    caller: Token,
    identity: string,
    unconfirmed: boolean,
    sees: (scope: string) => boolean,
    withHidden = false,
  ) {
    const { provider } = world.identities.get(identity) ?? {};
    if (unconfirmed || provider === undefined || !shows(caller, "identity_providers.list", provider)) return [];
    return sortedEntries(world.mappings).flatMap(([uid, mapping]): ModelGrant[] => {
      if (mapping.provider !== provider || !sees(mapping.scope)) return [];
      const isHiddenRole = !seesRole(mapping.role, (group) => shows(caller, "roles.list", group));
      if (isHiddenRole && !withHidden) return [];
      const capabilities = world.roles.get(mapping.role)?.capabilities ?? ANY;
      const at = { group: mapping.scope, boundAt: mapping.scope };
      const what = { binding: "", mapping: uid, ...at, role: mapping.role, capabilities };
      return [{ ...what, origin: "none", pending: false, effect: "directory" }];
    });
  }

  /** The identities that have bindings, registered or not. */
  const bound = () => [...new Set([...world.bindings.values()].map(({ identity }) => identity))].sort();

  /** What ListSubjects lists at `uid`; undefined where the caller may not list it. */
  function subjectsAt(caller: Token, needed: readonly string[], uid: string) {
    const visible = visiblePath(caller, uid);
    if (!visible.includes(uid)) return undefined;
    const listsRoles = rolesListedBy(caller);
    const subjects: ModelSubject[] = [];
    let partial = visible.length < pathTo(uid).length;
    for (const { role, group } of world.bindings.values()) {
      if (visible.includes(group) && !seesRole(role, listsRoles)) partial = true;
    }
    for (const identity of bound()) {
      const seesGroup = (group: string) => visible.includes(group);
      const { grants, unconfirmed } = grantsSeen(identity, seesGroup, listsRoles, belowFirst(visible));
      if (missingOf(grants, needed, uid).length > 0) continue;
      const { name = "", email = "" } = unconfirmed ? {} : (world.identities.get(identity) ?? {});
      subjects.push({ kind: "identity", uid: identity, name, email, unconfirmed, grants: usefulOf(grants, needed) });
    }
    const rules = rulesAt(caller, visible).filter(({ role }) => {
      if (!seesRole(role, listsRoles)) partial = true;
      return seesRole(role, listsRoles) && needed.every((one) => world.roles.get(role)?.capabilities.has(one));
    });
    return { subjects: [...subjects, ...rules.map(({ subject }) => subject)], partial };
  }

  /** The grants of an explanation: those of some of the needed capabilities, and those of which that is not known. */
  function usefulOf(grants: readonly ModelGrant[], needed: readonly string[]): ModelGrant[] {
    return grants.filter((grant) => isHidden(grant) || needed.some((one) => grant.capabilities.has(one)));
  }

  /** The rules at these groups that let further people, with their roles. */
  function rulesAt(caller: Token, visible: readonly string[]) {
    const ruleOf = (kind: ModelSubject["kind"], uid: string, role: string, group: string, values: object) => {
      const capabilities = world.roles.get(role)?.capabilities ?? ANY;
      const mapping = kind === "mapping" ? uid : "";
      const at = { group, boundAt: group };
      const given = { binding: "", mapping, ...at, role, capabilities, origin: "none", pending: false } as const;
      const grants: ModelGrant[] = [{ ...given, effect: kind === "mapping" ? "directory" : "counts" }];
      const subject: ModelSubject = { kind, uid, name: "", email: "", unconfirmed: false, grants, ...values };
      return { role, subject };
    };
    const sees = (capability: string, group: string, at: string) =>
      visible.includes(group) && (fault === "visibility" || may(caller, [capability], at));
    return [
      ...sortedEntries(world.mappings)
        .filter(([uid, { scope }]) => sees("identity_providers.list", scope, uid))
        .map(([uid, { role, scope }]) => ruleOf("mapping", uid, role, scope, {})),
      ...sortedEntries(world.providers)
        .filter(([uid]) => sees("identity_providers.list", groupOf(uid), uid))
        .map(([uid, { name, role }]) => ruleOf("provider", uid, role, groupOf(uid), { name })),
      ...sortedEntries(world.invites)
        .filter(([uid, { isLive }]) => isLive && sees("group_invites.list", groupOf(uid), uid))
        .map(([uid, { role, email }]) => ruleOf("invite", uid, role, groupOf(uid), { email })),
    ];
  }

  /** What ListAccess lists of an identity, at a group and below it, or everywhere. */
  function accessOf(caller: Token, identity: string, group: string): { grants: ModelGrant[]; unconfirmed: boolean } {
    const isBelow = (one: string) => group === "" || pathTo(one).includes(group);
    const order = (grants: readonly ModelGrant[]) => {
      const key = ({ mapping, group: at, role }: ModelGrant) => (mapping === "" ? `0 ${at} ${role}` : `1 ${mapping}`);
      return [...grants].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
    };
    if (identity === caller.identity) {
      const own = grantsOf(caller).filter((one) => isBelow(one.group));
      return { grants: order(caller.limit === undefined ? own : mergeLimited(caller, own)), unconfirmed: false };
    }
    const sees = (at: string) =>
      isBelow(at) && (fault === "visibility" || shows(caller, "role_bindings.list", at, group));
    const { grants, unconfirmed } = grantsSeen(
      identity,
      sees,
      (at) => shows(caller, "roles.list", at),
      (at) => fault === "visibility" || shows(caller, "role_bindings.list", at, group),
    );
    return { grants: order([...grants, ...mappingsOf(caller, identity, unconfirmed, sees)]), unconfirmed };
  }

  // What a limit leaves, once for each role at a group, without what is pending.
  function mergeLimited(caller: Token, grants: readonly ModelGrant[]): ModelGrant[] {
    const counting = grants.filter(({ pending, effect, capabilities }) => {
      return !pending && effect === "counts" && capabilities.size > 0;
    });
    return [
      ...new Map(
        counting.map((one) => [`${one.group} ${one.role}`, asLimited(one, shows(caller, "groups.list", one.group))]),
      ).values(),
    ];
  }

  /** How a grant of a limited token is shown: without what is behind it, and with the name of a group that it may list. */
  function asLimited(grant: ModelGrant, isNamed: boolean): ModelGrant {
    return { ...grant, binding: "", mapping: "", origin: "none", pending: false, isNamed };
  }

  /** What SearchNames finds: first groups, then identities, then repos, each in the order of names, then of uids. */
  function namesFrom(caller: Token, prefix: string, group: string) {
    const workloads = [...world.identities].filter(([uid, { isDeleting }]) => uid.includes("/") && !isDeleting);
    const kinds = [
      { kind: "group", capability: "groups.list", all: [...world.groups] },
      {
        kind: "identity",
        capability: "identity.list",
        all: workloads.map(([uid, { name }]): [string, string] => [uid, name]),
      },
      { kind: "repo", capability: "repo.list", all: [...world.repos] },
    ];
    const isFound =
      fault === "names" ? (name: string) => name.includes(prefix) : (name: string) => name.startsWith(prefix);
    return kinds.flatMap(({ kind, capability, all }) =>
      all
        .filter(([uid, name]) => isFound(name) && (group === "" || uid.startsWith(`${group}/`)))
        .filter(([uid]) => fault === "visibility" || shows(caller, capability, uid, group))
        .sort(([a, nameOfA], [b, nameOfB]) =>
          nameOfA === nameOfB ? (a < b ? -1 : 1) : Buffer.compare(Buffer.from(nameOfA), Buffer.from(nameOfB)),
        )
        .map(([uid, name]) => ({ kind, uid, name, group: groupOf(uid) })),
    );
  }

  return { isValid, missingOf, may, answerAt, usefulOf, asLimited, subjectsAt, accessOf, namesFrom };
}

export type Model = ReturnType<typeof createModel>;
