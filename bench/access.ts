// Questions about rights among 100,000 identities and 10,000 groups: time of a page, processor time per call, and the
// longest tick of the event loop, in process, without HTTP.
//
//   node --import tsx bench/access.ts [--identities 100000] [--calls 20] [--only TEXT]
//   node scripts/with-pg.mjs node --import tsx bench/access.ts
import { parseArgs } from "node:util";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { buildCapabilitySet } from "../src/iam/roles/capability-names.js";
import { builtinRoleUid, type Ids, personUid } from "../src/kernel/ids.js";
import { buildRepo } from "../src/registry/repos/repo.js";
import { groupMappingKind } from "../src/store/iam/group-mappings.js";
import { groupKind } from "../src/store/iam/groups.js";
import { identityKind } from "../src/store/iam/identities.js";
import { identityProviderKind } from "../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../src/store/iam/role-bindings.js";
import { roleKind } from "../src/store/iam/roles.js";
import { repoKind } from "../src/store/registry/repos.js";
import type { Store } from "../src/store/store.js";
import type { Tx } from "../src/store/transaction.js";
import { openPlatform } from "../test/access/platform.js";
import { newDatabase } from "../test/pg/databases.js";
import { principalOf } from "../test/support/in-process.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../test/support/rows.js";
import { takeShortest, watchTurns } from "../test/support/turns.js";
import { judge, median } from "./figures.js";

const { values } = parseArgs({
  options: {
    identities: { type: "string", default: "100000" },
    calls: { type: "string", default: "20" },
    only: { type: "string" },
  },
});

/** The longest that a call may keep others waiting, in milliseconds of processor time. */
const MAX_TICK_MS = 25;
const IDENTITIES = Number(values.identities);
const GROUPS = IDENTITIES / 10;
/** The bindings of each wide group, and of an identity with many. */
const WIDE = IDENTITIES / 10;
const MANY = IDENTITIES / 20;
const MAPPINGS = IDENTITIES / 100;
const BATCH = 500;

const [owner, viewer] = [builtinRoleUid("owner"), builtinRoleUid("viewer")];
/** The organisation with nearly everything, and one with a role that few of 100,000 bindings have. */
const [root, flat] = [rootUid(0xacce55), rootUid(0xf1a7)];
const [custom, rare] = [childUid(root, 0xc0), childUid(flat, 0xfa)];
const provider = childUid(root, 0xbb);
// Three levels: 21 groups, each with 21 groups, and those with the rest.
const fan = Math.round(GROUPS ** (1 / 3));
const groups: string[] = [root];
for (let a = 1; a <= fan; a++) groups.push(childUid(root, a * 0x1000));
for (const parent of groups.slice(1, 1 + fan)) for (let b = 1; b <= fan; b++) groups.push(childUid(parent, b));
for (let n = 0; groups.length < GROUPS; n++) groups.push(childUid(groups[1 + fan + (n % fan ** 2)] as string, 1 + n));
const deep = groups.at(-1) ?? root;
const wide = deep.slice(0, deep.lastIndexOf("/"));
const person = (n: number) => personUid("https://login.example", String(n));
const auditor = person(-1);
/** People with bindings in many groups, and one of the provider. */
const [many, other, member] = [person(-2), person(-3), person(-4)];
const workload = (n: number) => childUid(groups[n % groups.length] as string, 0x1_0000_0000 + n);
const binding = (group: string, n: number) => childUid(group, 0x2_0000_0000 + n);

const url = process.env.TEST_ARBOR_DATABASE_URL === undefined ? undefined : await newDatabase();
const platform = await openPlatform(url);
const turns = watchTurns();
const startMs = performance.now();
await fill(platform.store);
console.log(
  `${url === undefined ? "SQLite" : "PostgreSQL"}, node ${process.version}: ${IDENTITIES} identities, ${groups.length} groups, ` +
    `filled in ${((performance.now() - startMs) / 1000).toFixed(0)} s`,
);
try {
  await run();
} finally {
  turns.stop();
  await platform.close();
}

async function fill(store: Store): Promise<void> {
  let nextBinding = 0;
  const bind = (tx: Tx, group: string, identity: string, role: string, accepted = false) =>
    tx.table(roleBindingKind).insert(bindingRow(binding(group, nextBinding++), identity, role, { accepted }));
  const inBatches = async (count: number, insert: (tx: Tx, n: number) => Promise<unknown>) => {
    for (let from = 0; from < count; from += BATCH) {
      await store.write(async (tx) => {
        for (let n = from; n < Math.min(count, from + BATCH); n++) await insert(tx, n);
      });
    }
  };
  await store.write(async (tx) => {
    await tx.table(groupKind).insert(groupRow(root, { name: "organisation" }));
    await tx.table(groupKind).insert(groupRow(flat, { name: "flat" }));
    const capabilities = buildCapabilitySet(["groups.list", "repo.list"]);
    await tx.table(roleKind).insert(roleRow(custom, { groupUid: root, name: "custom", capabilities }));
    const few = buildCapabilitySet(["manifest.delete"]);
    await tx.table(roleKind).insert(roleRow(rare, { groupUid: flat, name: "rare", capabilities: few }));
    await tx.table(identityProviderKind).insert({
      ...{ uid: provider, groupUid: root, name: "provider", description: "", defaultRole: viewer },
      oidc: { issuer: "https://login.example", clientId: "id" },
      lacksDefaultRole: false,
      sealedSecret: "",
      scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" },
      ...{ createTimeMs: 1_000, updateTimeMs: 1_000 },
    });
    for (const uid of [auditor, many, other]) await tx.table(identityKind).insert(identityRow(uid));
    await tx.table(identityKind).insert(identityRow(member, { providerUid: provider }));
    await bind(tx, root, auditor, owner, true);
    await bind(tx, flat, auditor, owner, true);
    await bind(tx, root, member, viewer, true);
  });
  await inBatches(groups.length - 1, async (tx, n) => {
    const uid = groups[n + 1] as string;
    await tx.table(groupKind).insert(groupRow(uid, { name: `team-${n}` }));
    if (n % 5 === 0) await tx.table(repoKind).insert(buildRepo(uid, `image-${n}`, { ids: repoIds(n), nowMs: 1_000 }));
  });
  // Nine of ten are workloads, each with a role in its group, and the others people.
  const claimMatch = { issuer: "https://issuer.example", subject: "subject", audience: "audience" };
  await inBatches(IDENTITIES, async (tx, n) => {
    const uid = n % 10 === 0 ? person(n) : workload(n);
    const values = uid.includes("/")
      ? { name: `deployer-${n}`, relation: 1, relationship: { claimMatch } }
      : { email: `${n}@example.com` };
    await tx.table(identityKind).insert(identityRow(uid, values));
    await bind(
      tx,
      uid.includes("/") ? (groups[n % groups.length] as string) : root,
      uid,
      n % 3 === 0 ? custom : viewer,
    );
    await bind(tx, flat, uid, n % (IDENTITIES / 5) === IDENTITIES / 10 ? rare : viewer);
  });
  await inBatches(WIDE, async (tx, n) => {
    await bind(tx, deep, person(n * 10), custom, true);
    await bind(tx, wide, workload(n), builtinRoleUid("editor"));
  });
  await inBatches(MANY, async (tx, n) => {
    const group = groups.at(-1 - n) as string;
    await bind(tx, group, many, viewer, true);
    await bind(tx, group, other, custom, true);
  });
  await inBatches(MAPPINGS, (tx, n) =>
    tx.table(groupMappingKind).insert({
      ...{ uid: childUid(provider, n + 1), providerUid: provider, externalGroupId: `group-${n}` },
      ...{ roleUid: n % 10 === 0 ? owner : viewer, scope: root, createdBy: null, createTimeMs: 1_000 },
    }),
  );
}

function repoIds(n: number): Ids {
  return { newUid: (parent = "") => childUid(parent, 0x3_0000_0000 + n), newId: () => "" };
}

interface Case {
  readonly name: string;
  /** A method of AccessService, or a list to compare it with. */
  readonly method: keyof typeof AccessService.method | typeof GroupsService.method.listGroups;
  readonly caller: string;
  readonly request: object;
  /** Whether all pages are read once, to find the longest tick of them all. */
  readonly isPaged?: boolean;
}

function listCases(): readonly Case[] {
  const updateGroup = "chainguard.platform.iam.v2beta1.GroupsService.UpdateGroup";
  const at = { resource: deep };
  const asAuditor = (name: string, method: Case["method"], request: object, isPaged = false): Case => ({
    name,
    method,
    caller: auditor,
    request,
    isPaged,
  });
  const asMany = (name: string, method: Case["method"], request: object, isPaged = false): Case => ({
    ...asAuditor(name, method, request, isPaged),
    caller: many,
  });
  const claims = { iss: "https://issuer.example", sub: "subject", aud: "audience" };
  return [
    asAuditor("Check, of oneself", "check", { actions: [updateGroup], ...at }),
    asMany("Check, of oneself with 5,000 bindings", "check", { actions: [updateGroup], ...at }),
    asAuditor("Check, of one with 5,000 bindings", "check", { identity: many, actions: [updateGroup], ...at }),
    asAuditor("Explain, of oneself", "explain", { actions: ["groups.list"], ...at }),
    asAuditor("Explain, of one with 5,000 bindings", "explain", {
      identity: many,
      actions: ["groups.list"],
      ...at,
    }),
    asAuditor("Explain, of one with 1,000 mappings", "explain", {
      identity: member,
      actions: ["groups.delete"],
      ...at,
    }),
    asAuditor("ListSubjects, 30,000 bindings, most may", "listSubjects", { actions: ["groups.list"], ...at }, true),
    asAuditor("ListSubjects, pages of 200", "listSubjects", { actions: ["groups.list"], ...at, pageSize: 200 }, true),
    asAuditor("ListSubjects, few may", "listSubjects", { actions: ["groups.delete"], ...at }, true),
    asAuditor(
      "ListSubjects, 5 of 100,000 may",
      "listSubjects",
      { actions: ["manifest.delete"], resource: flat, pageSize: 200 },
      true,
    ),
    asAuditor("ListAccess, of one with 5,000 bindings", "listAccess", { identity: many, pageSize: 200 }, true),
    asMany("ListAccess, of oneself with 5,000 bindings", "listAccess", { pageSize: 200 }, true),
    asMany("ListAccess, by and of those with 5,000 bindings", "listAccess", { identity: other, pageSize: 200 }, true),
    asMany(
      "ListAccess, by one with 5,000 bindings, nothing",
      "listAccess",
      { identity: person(0), pageSize: 200 },
      true,
    ),
    asAuditor("ListAccess, of one with 1,000 mappings", "listAccess", { identity: member, pageSize: 200 }, true),
    asAuditor("SearchNames, many", "searchNames", { prefix: "deployer-", pageSize: 200 }),
    asAuditor("SearchNames, few", "searchNames", { prefix: "deployer-9999" }),
    asAuditor("SearchNames, few in a group", "searchNames", { prefix: "team-1", group: groups[1] }),
    asAuditor("SearchNames, none in a group", "searchNames", { prefix: "x", group: wide }),
    asMany("SearchNames, by one with 5,000 bindings", "searchNames", { prefix: "team-", pageSize: 200 }),
    asMany("SearchNames, few, by one with 5,000 bindings", "searchNames", { prefix: "deployer-9999" }),
    asMany("ListGroups by name, by one with 5,000 bindings", GroupsService.method.listGroups, {
      ...{ orderBy: "name", pageSize: 200 },
    }),
    asAuditor("TestClaims", "testClaims", {
      identity: workload(1),
      subject: { case: "claims", value: claims },
    }),
  ];
}

async function run(): Promise<void> {
  console.log(
    `\nmedians of ${values.calls} calls; the longest tick in its best of four tries, over all pages where there are several`,
  );
  console.log("| | page, ms | processor, ms | longest tick, ms | pages | entries |");
  console.log("|---|---|---|---|---|---|");
  const ticks: [string, number][] = [];
  for (const one of listCases().filter(({ name }) => name.includes(values.only ?? ""))) {
    const times: number[] = [];
    const used: number[] = [];
    for (let n = -3; n < Number(values.calls); n++) {
      const [before, usedBefore] = [performance.now(), usedMs()];
      await call(one);
      if (n >= 0) {
        times.push(performance.now() - before);
        used.push(usedMs() - usedBefore);
      }
    }
    // The longest tick of each page in its best try, and of these the longest.
    let [longest, pages, entries] = [0, 0, 0];
    for (let pageToken = ""; ; ) {
      let response: Page = {};
      const tick = await takeShortest(
        turns,
        0,
        async () => {
          response = await call(one, pageToken);
        },
        4,
      );
      longest = Math.max(longest, tick);
      pages++;
      entries += (response.subjects ?? response.grants ?? response.resources ?? response.groups ?? []).length;
      pageToken = response.nextPageToken ?? "";
      if (pageToken === "" || one.isPaged !== true || pages >= 300) break;
    }
    const cells = [median(times).toFixed(2), median(used).toFixed(2), longest.toFixed(1), pages, entries];
    console.log(`| ${one.name} | ${cells.join(" | ")} |`);
    ticks.push([one.name, longest]);
  }
  for (const [name, tick] of ticks)
    if (tick > MAX_TICK_MS) judge(`longest tick in ms, ${name}`, tick, { atMost: MAX_TICK_MS });
}

interface Page {
  readonly nextPageToken?: string;
  readonly subjects?: readonly unknown[];
  readonly grants?: readonly unknown[];
  readonly resources?: readonly unknown[];
  readonly groups?: readonly unknown[];
}

async function call({ method, caller, request }: Case, pageToken = ""): Promise<Page> {
  const { parent, name } = typeof method === "string" ? AccessService.method[method] : method;
  const whole = pageToken === "" ? request : { ...request, pageToken };
  return (await platform.call(`/${parent.typeName}/${name}`, principalOf(caller), whole)) as Page;
}

/** The processor time of this process, in milliseconds. */
function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
