// Random organisations with rows of every kind that is listed: in a store, and as plain rows in memory.
import { isBelow, parentOf } from "../../src/kernel/uidp.js";
import { advisoryKind } from "../../src/store/advisories/advisories.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { kinds } from "../../src/store/kinds.js";
import { listPage } from "../../src/store/lists/page.js";
import type { ListQuery, Page } from "../../src/store/lists/query.js";
import type { ListedKind } from "../../src/store/lists/resource.js";
import { type TagFamily, tagFamilies } from "../../src/store/registry/tag-families.js";
import { tagKind } from "../../src/store/registry/tags.js";
import type { Executor } from "../../src/store/statement.js";
import type { Store } from "../../src/store/store.js";
import { schema as tables } from "../../src/store/tables/schema-sqlite.js";
import type { Tx } from "../../src/store/transaction.js";
import type { Random } from "../support/openapi/random.js";
import {
  bindingRow,
  groupRow,
  identityRow,
  overlayBindingRow,
  overlayRow,
  roleRow,
  scimGroupRow,
  scimUserRow,
} from "../support/rows.js";
import { repoRow, tagRow } from "./registry-suite.js";
import { tableOf } from "./table-of.js";

/** The kinds, by the names of their tables in the schema; each only names rows of those before it. */
export const kindNames = [
  "groups",
  "identities",
  "roles",
  "roleBindings",
  "identityProviders",
  "accountAssociations",
  "groupInvites",
  "groupMappings",
  "repos",
  "tags",
  "advisories",
  "subscriptions",
  "overlays",
  "overlayBindings",
  "scimUsers",
  "scimGroups",
] as const;
export type KindName = (typeof kindNames)[number];

/** A row in memory. */
export type Row = Readonly<Record<string, unknown>> & { readonly uid: string };

const names = ["a", "A", "a b", "a-b", "a.b", "a_b", "ab", "b", "B", "_", "z9", "Z"];
const parentKinds: Partial<Record<KindName, KindName>> = {
  tags: "repos",
  overlayBindings: "repos",
  groupMappings: "identityProviders",
  scimUsers: "identityProviders",
  scimGroups: "identityProviders",
};
const parentKind = (kind: KindName): KindName => parentKinds[kind] ?? "groups";
const usualSorts = ["uid", "name", "created_at", "updated_at"];
const sorts: Partial<Record<KindName, readonly string[]>> = {
  roleBindings: ["uid", "created_at"],
  groupInvites: ["uid", "created_at"],
  groupMappings: ["uid", "created_at"],
  subscriptions: ["uid", "created_at"],
  advisories: ["uid", "created_at", "updated_at"],
  tags: ["uid", "name", "updated_at"],
  overlayBindings: ["uid", "created_at", "updated_at"],
  scimUsers: ["uid"],
  scimGroups: ["uid"],
};
const withoutName: readonly KindName[] = [
  "roleBindings",
  "groupInvites",
  "groupMappings",
  "advisories",
  "subscriptions",
  "overlayBindings",
  "scimUsers",
  "scimGroups",
];
/** Columns with few values that lists are filtered by. Those of advisories and `updatedSince` have filters of their own. */
const filtered: Readonly<Partial<Record<KindName, readonly string[]>>> = {
  groups: ["kind"],
  identities: ["relation"],
  roles: ["description"],
  roleBindings: ["identityUid", "roleUid", "groupUid", "endsAfter"],
  identityProviders: ["defaultRole"],
  accountAssociations: ["description"],
  groupInvites: ["roleUid"],
  groupMappings: ["providerUid", "roleUid"],
  repos: ["description"],
  tags: ["digest", "updatedSince"],
  advisories: ["artifactNames", "componentNames", "aliases", "artifactTypes", "latestEventType", "query"],
  subscriptions: ["sink"],
  overlayBindings: ["overlayUid"],
  scimUsers: ["active", "linked", "displayName"],
  scimGroups: ["displayName"],
};
/** Bindings that end do so later than this test runs. */
const FAR_MS = 9_000_000_000_000;
/** With these bounds a few advisories are many. */
export const fewAdvisories = { examined: 2, compared: 4, texts: 20, candidates: 1 };

/** The columns of advisories that filters by a list of values compare. */
const advisoryColumns: Readonly<Record<string, string>> = {
  artifactNames: "artifactName",
  componentNames: "componentName",
  aliases: "aliases",
  artifactTypes: "artifactType",
  latestEventType: "latestEventType",
};

/** Some organisations, and what they have. */
export class OracleWorld {
  readonly builtInRoles: readonly string[];
  readonly #store: Store;
  readonly #random: Random;
  readonly #rows: ReadonlyMap<KindName, Map<string, Row>> = new Map(kindNames.map((kind) => [kind, new Map()]));
  /** Distinguishes what must be unique. */
  #count = 0;

  constructor(store: Store, random: Random) {
    this.#store = store;
    this.#random = random;
    this.builtInRoles = Array.from({ length: 3 }, () => this.#newUid(undefined));
  }

  rows(kind: KindName): Row[] {
    return [...this.#of(kind).values()];
  }

  sorts(kind: KindName): readonly string[] {
    return sorts[kind] ?? usualSorts;
  }

  hasName(kind: KindName): boolean {
    return !withoutName.includes(kind);
  }

  /** Creates rows of all kinds. */
  async fill(): Promise<void> {
    const random = this.#random;
    await this.#store.write(async (tx) => {
      const roots = 1 + random.int(4);
      for (let i = 0; i < roots; i++) await this.#insert(tx, "groups", this.#buildGroup(undefined));
      const groups = 3 + random.int(60);
      for (let i = 0; i < groups; i++) await this.#insertRandom(tx, "groups");
      for (const uid of this.builtInRoles) await this.#insert(tx, "roles", this.#buildRole(uid, null));
      // A role of the operator belongs to no group and is not built in; people belong to no group either.
      await this.#insert(tx, "roles", this.#buildRole(this.#newUid(undefined), null));
      for (let i = 0; i < 3; i++)
        await this.#insert(tx, "identities", this.#buildIdentity(this.#newUid(undefined), null));
      for (const kind of kindNames.slice(1)) {
        const count = random.int(kind === "tags" ? 60 : 30);
        for (let i = 0; i < count; i++) await this.#insertRandom(tx, kind);
      }
    });
  }

  /** Creates, changes and deletes some rows of a kind. */
  async change(kind: KindName): Promise<void> {
    const random = this.#random;
    await this.#store.write(async (tx) => {
      for (let i = 1 + random.int(4); i > 0; i--) {
        const uid = this.chooseRowUid(kind);
        if (random.chance(0.4)) await this.#insertRandom(tx, kind);
        else if (random.chance(0.6)) await this.#update(tx, kind, uid);
        else await this.#delete(tx, kind, uid);
      }
    });
  }

  /** Lists rows as the service does, or with bounds that make a few rows a long list. */
  list(kind: KindName, query: ListQuery, families: readonly TagFamily[] = [0]): Promise<Page<object>> {
    const limits = this.#random.pick([undefined, { step: 2 + this.#random.int(6), slice: 2 + this.#random.int(6) }]);
    const read = (tx: Tx): Promise<Page<object>> => {
      if (limits && kind === "advisories")
        return tx.table(advisoryKind).list(query, { lists: limits, search: fewAdvisories });
      if (limits) {
        const listed = kinds.find((one) => one.table(tables) === tables[kind]) as ListedKind;
        // A transaction also runs statements.
        const options = { limits, ...(kind === "tags" && { families }) };
        return listPage(tx as unknown as Executor, listed, query, options);
      }
      if (kind !== "tags" || families.length === 1) return tableOf(tx, kind).list(query);
      return tx.table(tagKind).listAll(query, families.length === tagFamilies.length ? undefined : families);
    };
    return Promise.resolve(this.#store.read(read));
  }

  /** The groups that a caller sees, none within another: mostly some of this world, sometimes one that does not exist. */
  chooseVisible(): string[] {
    const random = this.#random;
    const groups = this.rows("groups").map(({ uid }) => uid);
    const roots = groups.filter((uid) => parentOf(uid) === undefined);
    if (random.chance(0.3)) return [random.pick(roots)];
    if (random.chance(0.2)) return roots;
    const chosen = Array.from({ length: random.int(9) }, () => random.pick(groups));
    if (random.chance(0.1)) chosen.push(this.#newUid(random.pick(groups)));
    // In no order.
    return [...new Set(chosen)].filter((uid) => !chosen.some((other) => isBelow(uid, other)));
  }

  chooseUid(): string {
    const random = this.#random;
    if (random.chance(0.1)) return this.#newUid(random.chance(0.5) ? undefined : this.#pick("groups").uid);
    return random.chance(0.1) && this.#of("repos").size > 0 ? this.#pick("repos").uid : this.#pick("groups").uid;
  }

  chooseParent(kind: KindName): string {
    const kinds = parentKind(kind);
    return this.#of(kinds).size === 0 || this.#random.chance(0.1) ? this.chooseUid() : this.#pick(kinds).uid;
  }

  chooseRowUid(kind: KindName): string {
    return this.#of(kind).size === 0 || this.#random.chance(0.1) ? this.#newUid(undefined) : this.#pick(kind).uid;
  }

  chooseName(kind: KindName): string {
    return this.#of(kind).size === 0 || this.#random.chance(0.1) ? "unused" : String(this.#pick(kind).name);
  }

  chooseEquals(kind: KindName): Readonly<Record<string, string | number>> | undefined {
    const random = this.#random;
    const columns = filtered[kind];
    if (columns === undefined || this.#of(kind).size === 0) return undefined;
    const name = random.pick(columns);
    const row = this.#pick(kind);
    if (name === "updatedSince") return { updatedSince: row.updateTimeMs as number };
    if (name === "endsAfter") return { endsAfter: FAR_MS + 1 };
    if (name === "active" || name === "linked") return { [name]: random.int(2) };
    if (name === "query") return { query: random.pick(["%art%", "%alias-1%", "%t-0%", "%nowhere%"]) };
    if (kind !== "advisories") return { [name]: row[name] as string | number };
    const value = row[advisoryColumns[name] ?? ""];
    const values = Array.isArray(value) ? value : [value];
    return { [name]: JSON.stringify([...values, "another"].map(String)) };
  }

  /** Whether a row passes a filter that {@link chooseEquals} chose. */
  passes(kind: KindName, row: Row, name: string, value: string | number): boolean {
    if (name === "updatedSince") return (row.updateTimeMs as number) >= (value as number);
    if (name === "endsAfter") return row.endTimeMs !== null && (row.endTimeMs as number) > (value as number);
    if (name === "active") return row.active === (value === 1);
    if (name === "linked") return (row.identityUid !== null) === (value === 1);
    if (name === "query") return String(row.searched).includes(String(value).slice(1, -1));
    if (kind !== "advisories") return row[name] === value;
    const found = row[advisoryColumns[name] ?? ""];
    const wanted = JSON.parse(String(value)) as string[];
    return (Array.isArray(found) ? found : [found]).some((one) => wanted.includes(String(one)));
  }

  #of(kind: KindName): Map<string, Row> {
    return this.#rows.get(kind) as Map<string, Row>;
  }

  #pick(kind: KindName): Row {
    return this.#random.pick(this.rows(kind));
  }

  #newUid(parent: string | undefined): string {
    const segment = this.#random.text("0123456789abcdef", 16, 16);
    return parent === undefined ? `${segment}${this.#random.text("0123456789abcdef", 24, 24)}` : `${parent}/${segment}`;
  }

  #usual() {
    const random = this.#random;
    const times = { createTimeMs: 1_000 + random.int(20), updateTimeMs: 1_000 + random.int(40) };
    return { name: random.pick(names), description: random.pick(["", "d"]), ...times };
  }

  #buildGroup(parent: string | undefined): Row {
    return groupRow(this.#newUid(parent), { ...this.#usual(), kind: this.#random.int(3) });
  }

  #buildIdentity(uid: string, groupUid: string | null): Row {
    return identityRow(uid, { ...this.#usual(), groupUid, relation: this.#random.int(4) });
  }

  #buildRole(uid: string, groupUid: string | null): Row {
    return roleRow(uid, { ...this.#usual(), groupUid });
  }

  // Undefined where a row with the same unique values exists, or where there is no row to belong to.
  #build(kind: KindName): Row | undefined {
    const random = this.#random;
    if (this.#of(parentKind(kind)).size === 0) return undefined;
    const parent = this.#pick(parentKind(kind)).uid;
    if (kind === "groups") return parent.split("/").length > 5 ? undefined : this.#buildGroup(parent);
    const uid = this.#newUid(parent);
    const usual = this.#usual();
    const { name, description, createTimeMs, updateTimeMs } = usual;
    const role = this.#pick("roles").uid;
    const unique = `u${this.#count++}`;
    switch (kind) {
      case "identities":
        return this.#buildIdentity(uid, parent);
      case "roles":
        return this.#buildRole(uid, parent);
      case "roleBindings":
        return bindingRow(uid, random.chance(0.5) ? unique : this.#pick("identities").uid, role, {
          createTimeMs,
          updateTimeMs,
          endTimeMs: this.#count % 3 === 0 ? FAR_MS + (this.#count % 4) : null,
        });
      case "identityProviders":
        return {
          uid,
          groupUid: parent,
          ...usual,
          defaultRole: role,
          oidc: {},
          lacksDefaultRole: false,
          sealedSecret: "",
          scim: {},
        };
      case "accountAssociations":
        return { uid: parent, parentUid: parentOf(parent) ?? null, ...usual, accounts: { a: 1 } };
      case "groupInvites": {
        const invite = { email: "", singleUse: false, keyId: unique + uid, codeHash: "", createdBy: "" };
        return { uid, groupUid: parent, roleUid: role, ...invite, expireTimeMs: 5_000, createTimeMs, updateTimeMs };
      }
      case "groupMappings":
        return {
          uid,
          providerUid: parent,
          externalGroupId: unique,
          roleUid: role,
          scope: "",
          createdBy: null,
          createTimeMs,
        };
      case "repos":
        return repoRow(uid, { ...usual, description, name: `${name}${random.chance(0.5) ? unique : ""}` }) as Row;
      case "tags":
        return {
          ...tagRow(random.int(16), { repoUid: parent, ...{ createTimeMs, updateTimeMs } }),
          uid,
          family: random.pick(tagFamilies),
          name: `${name}${random.chance(0.7) ? unique : ""}`,
        };
      case "advisories":
        return this.#buildAdvisory(uid, parent, unique, { createTimeMs, updateTimeMs });
      case "subscriptions":
        return {
          uid,
          groupUid: parent,
          sink: `https://${name.replaceAll(" ", "")}.example`,
          createTimeMs,
          updateTimeMs,
        };
      case "overlays":
        return overlayRow(uid, {
          name: `${name}${random.chance(0.5) ? unique : ""}`,
          createTimeMs,
          updateTimeMs,
        }) as Row;
      case "overlayBindings": {
        if (this.#of("overlays").size === 0) return undefined;
        const times = { createTimeMs, updateTimeMs };
        return overlayBindingRow(uid, this.#pick("overlays").uid, { tags: [unique], ...times }) as Row;
      }
      case "scimUsers":
        return scimUserRow(uid, {
          ...{ userName: unique, userNameKey: unique, displayName: name, active: random.chance(0.5) },
          ...{ identityUid: random.chance(0.5) ? unique + uid : null, createTimeMs, updateTimeMs },
        }) as Row;
      case "scimGroups":
        return scimGroupRow(uid, { displayName: name, externalId: unique, createTimeMs, updateTimeMs }) as Row;
    }
  }

  #buildAdvisory(uid: string, groupUid: string, unique: string, times: object): Row {
    const random = this.#random;
    const artifactName = `art-${random.int(4)}`;
    const aliases = [...new Set(Array.from({ length: random.int(3) }, () => `alias-${random.int(5)}`))];
    return {
      uid,
      groupUid,
      advisoryId: `id-${unique}`,
      legacyAdvisoryId: "",
      author: "",
      artifactName,
      artifactType: `type-${random.int(2)}`,
      artifactArchitecture: "",
      componentName: `component-${random.int(4)}`,
      componentLocation: "",
      componentType: "",
      aliases,
      severities: {},
      searched: [artifactName, ...aliases].join("\n"),
      latestEventType: random.int(3),
      sourceKey: "",
      sourceHash: "",
      deleteTimeMs: null,
      ...times,
    };
  }

  async #insertRandom(tx: Tx, kind: KindName): Promise<void> {
    const row = this.#build(kind);
    if (row && !this.#isTaken(kind, row)) await this.#insert(tx, kind, row);
  }

  #isTaken(kind: KindName, row: Row): boolean {
    const rows = this.rows(kind);
    if (kind === "accountAssociations") return this.#of(kind).has(row.uid);
    if (kind === "repos" || kind === "overlays")
      return rows.some((one) => one.groupUid === row.groupUid && one.name === row.name);
    if (kind === "tags") return rows.some((one) => one.repoUid === row.repoUid && one.name === row.name);
    const same = (name: string) => (one: Row) => one[name] === row[name];
    if (kind !== "roleBindings") return false;
    return rows.filter(same("groupUid")).filter(same("identityUid")).some(same("roleUid"));
  }

  async #insert(tx: Tx, kind: KindName, row: Row): Promise<void> {
    await tableOf(tx, kind).insert(row);
    this.#of(kind).set(row.uid, row);
  }

  async #update(tx: Tx, kind: KindName, uid: string): Promise<void> {
    const before = this.#of(kind).get(uid);
    if (before === undefined) return;
    const { name, updateTimeMs } = this.#usual();
    const isUnique = kind === "repos" || kind === "tags" || kind === "overlays";
    const named = this.hasName(kind) && !isUnique ? { name } : {};
    const patch = { ...named, ...("updateTimeMs" in before && { updateTimeMs }) };
    const after = { ...before, ...patch };
    if (kind === "groups") await tx.table(groupKind).update(uid, named, updateTimeMs);
    else if (kind === "roleBindings") {
      const { identityUid, roleUid, accepted, pending } = before as never;
      await tx.table(roleBindingKind).update(uid, { identityUid, roleUid, accepted, pending }, updateTimeMs);
    } else if (kind === "identities" || kind === "roles") await tableOf(tx, kind).update(uid, named, updateTimeMs);
    else await tableOf(tx, kind).replace(after);
    this.#of(kind).set(uid, after);
  }

  async #delete(tx: Tx, kind: KindName, uid: string): Promise<void> {
    const row = this.#of(kind).get(uid);
    if (row === undefined || this.#isNeeded(kind, uid)) return;
    await tableOf(tx, kind).delete(uid);
    this.#of(kind).delete(uid);
  }

  // What has rows below it, or is named by others, stays.
  #isNeeded(kind: KindName, uid: string): boolean {
    return kindNames.some((other) =>
      this.rows(other).some(
        (row) =>
          isBelow(row.uid, uid) ||
          (kind === "groups" && other === "accountAssociations" && row.uid === uid) ||
          (kind === "roles" && (row.roleUid === uid || row.defaultRole === uid)) ||
          (kind === "overlays" && row.overlayUid === uid),
      ),
    );
  }
}
