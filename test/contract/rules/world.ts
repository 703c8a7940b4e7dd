// The organisation that the table speaks of. Placeholders such as `<shelf>` stand for uids of what is there from the
// beginning; those that begin with `fresh` are made anew for each row and protocol that speaks of them.
import { createHash } from "node:crypto";
import { verifyGroup } from "../../../src/iam/operator/operate.js";
import { builtinRoleUid, personUid, providerPersonUid, randomIds } from "../../../src/kernel/ids.js";
import { groupInviteKind } from "../../../src/store/iam/group-invites.js";
import { groupMappingKind } from "../../../src/store/iam/group-mappings.js";
import { type GroupRow, groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { roleKind } from "../../../src/store/iam/roles.js";
import { subscriptionKind } from "../../../src/store/iam/subscriptions.js";
import { overlayBindingKind } from "../../../src/store/registry/overlay-bindings.js";
import { overlayKind } from "../../../src/store/registry/overlays.js";
import type { AuditRow } from "../../../src/store/tables/audit.js";
import type { Tx } from "../../../src/store/transaction.js";
import { type Placed, populate } from "../../iam/populate.js";
import { type ExchangeWorld, startExchangeWorld } from "../../issuer/sts/exchange-world.js";
import {
  bindingRow,
  childUid,
  groupRow,
  identityRow,
  overlayBindingRow,
  overlayRow,
  roleRow,
} from "../../support/rows.js";
import { insertScimGroup, insertScimUser } from "../../support/scim-people.js";
import {
  createAdvisory,
  createBareRepo,
  createRepo,
  createTag,
  imageDigest,
  letDoEverything,
} from "../registry-things.js";

/** Who calls: with an API token, with a token of another issuer, or with none. A placeholder is a token kept before. */
export type CallerName =
  | "owner"
  | "editor"
  | "viewer"
  | "admin"
  | "nobody"
  | "ciIdentity"
  | "person"
  | "foreignOwner"
  | "freshOwner"
  | "freshOwnerWorkload"
  | "freshViewer"
  | "freshPerson"
  | "anonymous"
  | "garbled"
  | "expired"
  | "deleted"
  | "ciToken"
  | "otherToken"
  | "tokenAfterExpiry"
  | "foreignAudienceToken"
  | `<${string}>`;

/** What one row sees over one protocol. */
export interface RowWorld {
  /** The bearer token of a caller; undefined for none. */
  tokenOf(caller: CallerName): Promise<string | undefined>;
  /** Makes what a text speaks of and is not there yet. */
  prepare(text: string): Promise<void>;
  /** A text with values for placeholders. */
  fill(text: string): string;
  keep(name: string, value: string): void;
}

/** The service with all that the table needs in it. */
export interface RulesWorld {
  readonly url: string;
  /** A world of its own for one row over one protocol. */
  newRow(): RowWorld;
  /** Moves the clock of the service. */
  setSkew(ms: number): void;
  newestAuditRow(): Promise<AuditRow | undefined>;
  stop(): Promise<void>;
}

// Some things are made together: those come with their names.
type Get = (name: string) => Promise<string>;
type Make = (get: Get) => Promise<string | Readonly<Record<string, string>>>;

const HOUR_MS = 3_600_000;
const MANY = 205;
const viewer = builtinRoleUid("viewer");

/** Starts the service and fills it. */
export async function startRulesWorld(): Promise<RulesWorld> {
  const world = await startExchangeWorld();
  const { harness, root: org } = world;
  const fixed = new Map<string, string>([
    ["org", org],
    ["foreign", world.foreign],
    ["ghost", randomIds.newUid(org)],
    ["random", randomIds.newUid()],
    ["unknownPerson", personUid(world.people.issuer, "who never signs in")],
    ["viewerRole", viewer],
    ["ownerRole", builtinRoleUid("owner")],
    ["editorRole", builtinRoleUid("editor")],
    ["url", world.url],
    ["host", new URL(world.url).host],
    ["workloads", world.workloads.issuer],
    ["digest", imageDigest],
  ]);
  for (const [name, uid] of Object.entries(await fillTree(world))) fixed.set(name, uid);
  fixed.set("encodedTwig", encodeURIComponent(fixed.get("twig") ?? ""));
  const people = await addPeople(world, fixed);
  fixed.set("self", people.owner);
  const foreignTokens: Partial<Record<CallerName, () => string>> = {
    ciToken: () => world.token({ sub: "ci" }),
    otherToken: () => world.token({ sub: "other" }),
    tokenAfterExpiry: () => world.token({ sub: "ci", exp: Math.floor(Date.now() / 1000) - 600 }),
    foreignAudienceToken: () => world.token({ sub: "ci", aud: "https://elsewhere.example" }),
  };
  harness.skewMs = -3 * HOUR_MS;
  const expired = await harness.token(people.owner);
  harness.skewMs = 0;
  const tokens = new Map<string, string>();

  return {
    url: world.url,
    setSkew: (ms) => {
      harness.skewMs = ms;
    },
    newestAuditRow: async () => harness.app.installation.store.read(async (tx) => (await tx.audit.listNewest(1))[0]),
    newRow() {
      const own = new Map<string, string>();
      const get = async (name: string): Promise<string> => {
        const known = own.get(name) ?? fixed.get(name);
        if (known !== undefined) return known;
        const make = makers(world)[name];
        if (make === undefined) throw new TypeError(`nothing is called <${name}>`);
        const made = await make(get);
        for (const [key, uid] of Object.entries(typeof made === "string" ? { [name]: made } : made)) own.set(key, uid);
        return own.get(name) ?? "";
      };
      return {
        async tokenOf(caller) {
          if (caller === "anonymous") return undefined;
          if (caller === "garbled") return "no.such.token";
          if (caller === "expired") return expired;
          if (caller.startsWith("<")) return get(caller.slice(1, -1));
          const foreign = foreignTokens[caller];
          if (foreign) return foreign();
          const identity = people[caller as keyof typeof people] ?? (await get(caller));
          // Signed once, unless the clock has moved.
          if (harness.skewMs !== 0) return harness.token(identity);
          const token = tokens.get(identity) ?? (await harness.token(identity));
          tokens.set(identity, token);
          return token;
        },
        async prepare(text) {
          for (const [, name = ""] of text.matchAll(/<(fresh\w*)>/g)) await get(name);
        },
        fill: (text) => text.replace(/<(\w+)>/g, (whole, name) => own.get(name) ?? fixed.get(name) ?? whole),
        keep: (name, value) => own.set(name, value),
      };
    },
    stop: () => world.stop(),
  };
}

// A small tree with known names and times, a wide group, and a group with one of every kind.
async function fillTree(world: ExchangeWorld): Promise<Record<string, string>> {
  const { root: org, write } = world;
  const uids: Record<string, string> = {};
  const rows: GroupRow[] = [];
  const add = (name: string, parent: string, timeMs: number, values: Partial<GroupRow> = {}): string => {
    const uid = childUid(parent, rows.length);
    const times = { createTimeMs: timeMs, updateTimeMs: values.updateTimeMs ?? timeMs };
    rows.push(groupRow(uid, { name, ...values, ...times }));
    uids[name] = uid;
    return uid;
  };
  const shelf = add("shelf", org, 500);
  add("atlas", shelf, 1_000, { description: "first of all", updateTimeMs: 9_000 });
  const birch = add("birch", shelf, 3_000);
  add("cedar", shelf, 2_000);
  uids.twig = add("twig", birch, 4_000, { name: "atlas" });
  uids.atlas = rows[1]?.uid ?? "";
  const hall = add("hall", org, 500);
  const wing = add("wing", org, 500);
  for (let n = 0; n < MANY; n++) rows.push(groupRow(childUid(hall, n), { name: `row ${String(n).padStart(3, "0")}` }));
  for (let n = 0; n < 7; n++) rows.push(groupRow(childUid(wing, n), { name: `w${n}`, createTimeMs: (n * 3) % 7 }));
  const full = add("full", org, 700);
  let deep = org;
  for (let depth = 1; depth < 60; depth++) {
    deep = childUid(deep, 9_999);
    rows.push(groupRow(deep));
  }
  const placed = await write(async (tx): Promise<Placed> => {
    for (const row of rows) await tx.table(groupKind).insert(row);
    await tx.table(groupKind).insert(groupRow(childUid(world.foreign, 1), { name: "secret" }));
    return populate(tx, full, { name: "one", text: "one", timeMs: 8_000 });
  });
  const { group: _, ...kinds } = placed;
  return { ...uids, ...kinds, full, deep, secret: childUid(world.foreign, 1) };
}

async function addPeople(world: ExchangeWorld, uids: Map<string, string>) {
  const { harness, root: org, write } = world;
  const at = async (role: string, group = org) => {
    const { uid } = await harness.identity();
    await harness.bind(uid, role, group);
    return uid;
  };
  const admin = (await harness.identity()).uid;
  const deleted = (await harness.identity()).uid;
  await write((tx) => letDoEverything(tx, admin, org));
  await write((tx) => tx.table(identityKind).delete(deleted));
  const ciIdentity = await world.workload("ci", { role: "viewer" });
  uids.set("ci", ciIdentity);
  return {
    owner: world.owner.uid,
    foreignOwner: world.foreignOwner.uid,
    editor: await at("editor"),
    viewer: await at("viewer", uids.get("shelf")),
    admin,
    nobody: (await harness.identity()).uid,
    person: (await world.person("ann", { email: "ann@acme.example" })).uid,
    deleted,
    ciIdentity,
  };
}

function makers(world: ExchangeWorld): Readonly<Record<string, Make>> {
  const { root: org, harness, write } = world;
  const insert = async (parent: string, add: (tx: Tx, uid: string) => unknown): Promise<string> => {
    const uid = randomIds.newUid(parent);
    await write(async (tx) => {
      await add(tx, uid);
    });
    return uid;
  };
  const group: Make = () =>
    insert(org, (tx, uid) => tx.table(groupKind).insert(groupRow(uid, { name: "before", description: "as it was" })));
  const claimMatch = { issuer: world.workloads.issuer, subject: "fresh" };
  return {
    fresh: group,
    freshOther: group,
    freshChild: async (get) => insert(await get("fresh"), (tx, uid) => tx.table(groupKind).insert(groupRow(uid))),
    freshIdentity: async (get) =>
      insert(await get("fresh"), (tx, uid) =>
        tx.table(identityKind).insert(identityRow(uid, { relation: 1, relationship: { claimMatch } })),
      ),
    freshRole: async (get) => {
      const groupUid = await get("fresh");
      return insert(groupUid, (tx, uid) => tx.table(roleKind).insert(roleRow(uid, { groupUid })));
    },
    freshBinding: async (get) => harness.bind(await get("freshIdentity"), "viewer", await get("fresh")),
    freshRepo: async (get) => {
      const groupUid = await get("fresh");
      return write((tx) => createRepo(tx, groupUid, "repo"));
    },
    freshTag: async (get) => {
      const repo = await get("freshRepo");
      return write((tx) => createTag(tx, repo, "latest"));
    },
    freshAdvisory: async (get) => {
      const groupUid = await get("fresh");
      return write((tx) => createAdvisory(tx, groupUid, "text"));
    },
    freshForeignBinding: async (get) => {
      const { uid } = await harness.identity();
      return harness.bind(uid, "viewer", await get("fresh"));
    },
    freshPerson: async () => (await harness.identity({ name: "ann", email: "ann@acme.example" })).uid,
    freshInvite: async (get) => invite(await get("fresh"), Date.now() + HOUR_MS),
    freshExpiredInvite: async (get) => invite(await get("fresh"), Date.now() - HOUR_MS),
    freshSubscription: async (get) => {
      const groupUid = await get("fresh");
      const row = { groupUid, sink: "https://sink.example", createTimeMs: 1_000, updateTimeMs: 1_000 };
      return insert(groupUid, (tx, uid) => tx.table(subscriptionKind).insert({ uid, ...row }));
    },
    freshPlainRepo: async (get) => {
      const groupUid = await get("fresh");
      return write((tx) => createBareRepo(tx, groupUid, "plain"));
    },
    freshOverlay: async (get) => {
      const groupUid = await get("fresh");
      return insert(groupUid, (tx, uid) => tx.table(overlayKind).insert(overlayRow(uid, { name: "tools" })));
    },
    freshOverlayBinding: async (get) => {
      const [repo, overlay] = [await get("freshPlainRepo"), await get("freshOverlay")];
      return insert(repo, (tx, uid) => tx.table(overlayBindingKind).insert(overlayBindingRow(uid, overlay)));
    },
    freshDirectory: directory,
    freshManagedBinding: directory,
    freshViewer,
    freshViewerBinding: freshViewer,
    freshRoot: organisation,
    freshVerified: async (get) => {
      const root = await get("freshRoot");
      await write((tx) => verifyGroup(tx, root, "ORG_KIND_CUSTOMER", { ids: randomIds, nowMs: Date.now() }));
      return root;
    },
    // A workload that owns its organisation alone.
    freshOwnerWorkload: async (get) => {
      const root = await get("freshRoot");
      const uid = await insert(root, (tx, made) => tx.table(identityKind).insert(identityRow(made)));
      await harness.bind(uid, "owner", root);
      const founder = await get("freshOwnerBinding");
      await write((tx) => tx.table(roleBindingKind).delete(founder));
      return uid;
    },
    freshOwner: organisation,
    freshOwnerBinding: organisation,
  };

  async function freshViewer(get: Get) {
    const { uid } = await harness.identity();
    return { freshViewer: uid, freshViewerBinding: await harness.bind(uid, "viewer", await get("fresh")) };
  }

  // An identity provider whose SCIM is on, and which has no default role, with a binding that its directory grants.
  async function directory(get: Get) {
    const groupUid = await get("freshRoot");
    const [freshDirectory, freshManagedBinding] = [randomIds.newUid(groupUid), randomIds.newUid(groupUid)];
    const person = providerPersonUid(freshDirectory, world.people.issuer, "ann");
    const scim = { enabled: true, tokenHash: "", previousHash: "", revoked: false, etag: "e" };
    await write(async (tx) => {
      await tx.table(identityProviderKind).insert({
        ...{ uid: freshDirectory, groupUid, name: "directory", description: "", scim, sealedSecret: "" },
        ...{ defaultRole: viewer, lacksDefaultRole: true },
        oidc: { issuer: world.people.issuer, clientId: "id", pkceEnabled: true },
        ...{ createTimeMs: 1_000, updateTimeMs: 1_000 },
      });
      const user = await insertScimUser(tx, freshDirectory, { externalId: "ann", identityUid: person });
      await insertScimGroup(tx, freshDirectory, { displayName: "team", externalId: "team" }, [user.uid]);
      await tx.table(groupMappingKind).insert({
        ...{ uid: randomIds.newUid(freshDirectory), providerUid: freshDirectory, externalGroupId: "team" },
        ...{ roleUid: viewer, scope: groupUid, createdBy: null, createTimeMs: 1_000 },
      });
      const origin = { accepted: true, managedByUid: freshDirectory };
      await tx.table(roleBindingKind).insert(bindingRow(freshManagedBinding, person, viewer, origin));
    });
    return { freshDirectory, freshManagedBinding };
  }

  async function organisation() {
    const name = `fresh-${randomIds.newId()}.example`;
    const { group: freshRoot, identity: freshOwner, roleBinding } = await harness.organisation(name);
    return { freshRoot, freshOwner, freshOwnerBinding: roleBinding };
  }

  async function invite(groupUid: string, expireTimeMs: number): Promise<string> {
    return insert(groupUid, (tx, uid) => {
      const keyId = createHash("sha256").update(uid).digest("hex").slice(0, 16);
      const times = { expireTimeMs, createTimeMs: 1_000, updateTimeMs: 1_000 };
      const terms = { roleUid: viewer, email: "", singleUse: false, createdBy: "", keyId, codeHash: "" };
      return tx.table(groupInviteKind).insert({ uid, groupUid, ...terms, ...times });
    });
  }
}
