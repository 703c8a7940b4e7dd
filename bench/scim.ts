// The endpoint of directories with 100,000 people and 1,000 groups of 1,000 on SQLite: how long each request takes, and the longest turn of the event loop
// while it runs, which is what other callers wait.
//
//   npm run bench -- scim [--people N --groups N --members N]
import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { randomIds } from "../src/kernel/ids.js";
import { buildDisplayNameKey, type ScimGroupRow, scimGroupKind } from "../src/store/iam/scim-groups.js";
import { buildUserNameKey, type ScimUserRow, scimUserKind } from "../src/store/iam/scim-users.js";
import { createDirectory, patch } from "../test/scim/world.js";
import { startHarness } from "../test/support/harness.js";

const { values } = parseArgs({
  options: {
    people: { type: "string", default: "100000" },
    groups: { type: "string", default: "1000" },
    members: { type: "string", default: "1000" },
  },
});
const people = Number(values.people);
const groups = Number(values.groups);
const membersOfEach = Number(values.members);
const BATCH = 500;
const REPEATS = 20;

const userUids: string[] = [];

const harness = await startHarness();
const directory = await createDirectory(harness);
const { store } = harness.app.installation;
for (let from = 0; from < people; from += BATCH) {
  await store.write(async (tx) => {
    for (let i = from; i < Math.min(from + BATCH, people); i++) await tx.table(scimUserKind).insert(buildRow(i));
  });
}

function buildRow(i: number): ScimUserRow {
  const uid = randomIds.newUid(directory.provider);
  userUids.push(uid);
  const userName = `Person.${String(i).padStart(6, "0")}@acme.example`;
  const name = { givenName: `Given ${i}`, familyName: `Family ${i}` };
  return {
    uid,
    providerUid: directory.provider,
    userName,
    userNameKey: buildUserNameKey(userName),
    externalId: `external-${i}`,
    displayName: `Person ${i}`,
    active: true,
    attributes: {
      name,
      emails: [{ value: userName, type: "work", primary: true }],
      title: i % 100 === 0 ? "Lead" : "",
    },
    identityUid: null,
    revision: 1,
    rejectTimeMs: null,
    createTimeMs: Date.now(),
    updateTimeMs: Date.now() + i,
  };
}

// Groups that have each the next so many people as members.
const groupUids: string[] = [];
for (let g = 0; g < groups; g++) {
  const uid = randomIds.newUid(directory.provider);
  groupUids.push(uid);
  await store.write(async (tx) => {
    await tx.table(scimGroupKind).insert(buildGroup(uid, g));
    for (let m = 0; m < membersOfEach; m++) {
      const userUid = userUids[(g * 7 + m) % userUids.length] ?? "";
      await tx.scimMembers.add({ groupUid: uid, memberSet: 1, userUid });
    }
  });
}

function buildGroup(uid: string, g: number): ScimGroupRow {
  const displayName = `Group ${String(g).padStart(5, "0")}`;
  return {
    ...{ uid, providerUid: directory.provider, displayName, displayNameKey: buildDisplayNameKey(displayName) },
    ...{ externalId: `group-${g}`, mappedId: `group-${g}`, attributes: {}, memberSet: 1, revision: 1 },
    ...{ createTimeMs: Date.now(), updateTimeMs: Date.now() + g },
  };
}

const last = people - 99;
const filter = (text: string) => `/Users?filter=${encodeURIComponent(text)}`;
const { json } = await directory.send("GET", `${filter(`userName eq "person.000500@acme.example"`)}`);
const [{ id }] = json.Resources as [{ id: string }];
let count = 0;
const idOf = (uid = "") => uid.slice(uid.lastIndexOf("/") + 1);
const group = idOf(groupUids[5]);
const somebody = [{ value: idOf(userUids.at(-1)) }];
const many = userUids.slice(0, 10_000).map((uid) => ({ value: idOf(uid) }));
const requests: Readonly<Record<string, () => Promise<{ status: number }>>> = {
  "first page of 100": () => directory.send("GET", "/Users?count=100"),
  "last page of 100": () => directory.send("GET", `/Users?count=100&startIndex=${last}`),
  "last page by userName": () => directory.send("GET", `/Users?count=100&startIndex=${last}&sortBy=userName`),
  "last page by lastModified, descending": () =>
    directory.send("GET", `/Users?count=100&startIndex=${last}&sortBy=meta.lastModified&sortOrder=descending`),
  "filter by userName": () => directory.send("GET", filter(`userName eq "person.000777@acme.example"`)),
  "filter by externalId": () => directory.send("GET", filter(`externalId eq "external-777"`)),
  "filter without an index (400 tooMany)": () => directory.send("GET", filter(`title eq "Lead"`)),
  "PATCH of one person": () =>
    directory.send("PATCH", `/Users/${id}`, patch({ op: "replace", path: "displayName", value: `name ${count++}` })),
  "groups: first page without members": () => directory.send("GET", "/Groups?count=100&excludedAttributes=members"),
  "groups: last page without members": () =>
    directory.send("GET", `/Groups?count=100&startIndex=${groups - 99}&excludedAttributes=members`),
  "groups: page of 10 with members": () => directory.send("GET", "/Groups?count=10"),
  "group of 1,000": () => directory.send("GET", `/Groups/${group}`),
  "PATCH that adds one member": () =>
    directory.send("PATCH", `/Groups/${group}`, patch({ op: "add", path: "members", value: somebody })),
  "PATCH that removes one member": () =>
    directory.send("PATCH", `/Groups/${group}`, patch({ op: "remove", path: "members", value: somebody })),
  "PUT of 10,000 and of 3": async () => {
    const members = count++ % 2 === 0 ? many : many.slice(0, 3);
    return directory.send("PUT", `/Groups/${group}`, { displayName: "many", externalId: "group-5", members });
  },
};
const figures: Record<string, object> = {};
for (const [name, request] of Object.entries(requests)) {
  await request();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const startMs = performance.now();
  let status = 0;
  for (let i = 0; i < REPEATS; i++) status = (await request()).status;
  const meanMs = (performance.now() - startMs) / REPEATS;
  delay.disable();
  figures[name] = {
    status,
    "mean ms": Number(meanMs.toFixed(1)),
    "longest turn ms": Number((delay.max / 1e6).toFixed(1)),
  };
}
console.log(`${people} people`);
console.table(figures);
await harness.stop();
