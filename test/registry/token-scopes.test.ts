// What a registry token is good for.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { issueToken } from "../../src/issuer/tokens.js";
import { builtinIdentityUid, builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import type { TokenLimit } from "../../src/kernel/principal.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { repoKind } from "../../src/store/registry/repos.js";
import { claimsOf, type ExchangeWorld, startExchangeWorld } from "../issuer/sts/exchange-world.js";
import { bindingRow, groupRow } from "../support/rows.js";
import { askToken } from "./token-kit.js";

let world: ExchangeWorld;
let pusher: { readonly uid: string; readonly token: string };
let child: string;

before(async () => {
  world = await startExchangeWorld();
  pusher = await world.harness.identity({}, world.root);
  await world.harness.bind(pusher.uid, "registry.push", world.root);
  child = `${world.root}/${"c".repeat(16)}`;
  // A name that is none of a registry's: such groups are reached by uid alone.
  await world.write((tx) => tx.table(groupKind).insert(groupRow(child, { name: "-x ..a" })));
});
after(() => world.stop());

async function requestAccess(scopes: readonly string[], token: string | undefined): Promise<unknown[]> {
  const user = token === undefined ? {} : { user: "_token", password: token };
  const response = await askToken(world.url, { ...user, parameters: scopes.map((scope) => ["scope", scope]) });
  assert.equal(response.status, 200, response.text);
  return claimsOf(response.token).access as unknown[];
}

const entry = (name: string, ...actions: string[]) => ({ type: "repository", name, actions });

type Case = readonly [name: string, scopes: () => string[], access: () => unknown[]];
const ALL = ["pull", "push", "delete"];

const cases: readonly Case[] = [
  ["no scope", () => [], () => []],
  ["pull", () => [`repository:${world.root}/a:pull`], () => [entry(`${world.root}/a`, "pull")]],
  [
    "an order of its own",
    () => [`repository:${world.root}/a:push,pull`],
    () => [entry(`${world.root}/a`, "pull", "push")],
  ],
  ["a group below", () => [`repository:${child}/a:pull`], () => [entry(`${child}/a`, "pull")]],
  ["every action by its name", () => [`repository:${world.root}/a:*`], () => [entry(`${world.root}/a`, ...ALL)]],
  ["an unknown action", () => [`repository:${world.root}/a:pull,admin`], () => [entry(`${world.root}/a`, "pull")]],
  ["only unknown actions", () => [`repository:${world.root}/a:admin,`], () => []],
  [
    "several in one parameter, and one twice",
    () => [`repository:${world.root}/a:pull repository:${world.root}/b:pull`, `repository:${world.root}/a:push`],
    () => [entry(`${world.root}/a`, "pull", "push"), entry(`${world.root}/b`, "pull")],
  ],
  ["a foreign repo", () => [`repository:${world.foreign}/a:pull,push`], () => []],
  [
    "a foreign repo beside one of its own",
    () => [`repository:${world.foreign}/a:pull`, `repository:${world.root}/a:pull`],
    () => [entry(`${world.root}/a`, "pull")],
  ],
  ["a group that is not there", () => [`repository:${"0".repeat(40)}/a:pull`], () => []],
  ["a group as if it were a repo", () => [`repository:${world.root}:pull`], () => []],
  ["the name of a root that is not verified", () => ["repository:ours/a:pull"], () => []],
  ["the catalog", () => ["registry:catalog:*"], () => []],
  ["a plugin", () => [`repository(plugin):${world.root}/a:pull`], () => []],
  ["another type", () => [`artifact:${world.root}/a:pull`], () => []],
  ["no actions", () => [`repository:${world.root}/a`, `repository:${world.root}/a:`], () => []],
  ["upper case", () => [`repository:${world.root}/A:pull`, `REPOSITORY:${world.root}/a:pull`], () => []],
  ["dots that go up", () => [`repository:${world.root}/../a:pull`, `repository:${world.root}/..:pull`], () => []],
  ["an escape within", () => [`repository:${world.root}/%2f..%2fa:pull`], () => []],
  ["two slashes", () => [`repository:${world.root}//a:pull`, `repository:/${world.root}/a:pull`], () => []],
  [
    "names that are no component",
    () => [".a", "-x", "a..b", "a_", "é", "a\u0000"].map((one) => `repository:${world.root}/${one}:pull`),
    () => [],
  ],
  ["a name too long", () => [`repository:${world.root}/${"a".repeat(129)}:pull`], () => []],
  ["a port in the name", () => [`repository:host:5000/${world.root}/a:pull`], () => []],
  ["the illegal name of a group", () => [`repository:${world.root}/-x ..a/a:pull`], () => []],
  ["blanks alone", () => ["  ", ""], () => []],
  [
    "one repo, named two hundred times",
    () => Array.from({ length: 200 }, (_, i) => `repository:${world.root}/a:${i % 2 ? "pull" : "push"}`),
    () => [entry(`${world.root}/a`, "pull", "push")],
  ],
  [
    "a hundred repos",
    () => Array.from({ length: 100 }, (_, i) => `repository:${world.root}/a${i}:pull`),
    () => Array.from({ length: 100 }, (_, i) => entry(`${world.root}/a${i}`, "pull")),
  ],
];

for (const [name, scopes, access] of cases) {
  test(`grants what it may of ${name}`, async () =>
    assert.deepEqual(await requestAccess(scopes(), pusher.token), access()));
}

test("grants nothing to who has no role", async () => {
  const { token } = await world.harness.identity({}, world.root);
  assert.deepEqual(await requestAccess([`repository:${world.root}/a:pull,push,delete`], token), []);
});

test("roles give the actions that their capabilities stand for", async () => {
  const roles: readonly (readonly [string, readonly string[]])[] = [
    ["registry.pull", ["pull"]],
    ["registry.push", ALL],
    ["registry.editor", ["pull"]],
    ["owner", ALL],
    ["viewer", ["pull"]],
    ["console_viewer", []],
    ["apk.pull", []],
  ];
  for (const [role, actions] of roles) {
    const { uid, token } = await world.harness.identity({}, world.root);
    await world.harness.bind(uid, role, world.root);
    const access = actions.length === 0 ? [] : [entry(`${world.root}/a`, ...actions)];
    assert.deepEqual(await requestAccess([`repository:${world.root}/a:pull,push,delete`], token), access, role);
  }
});

test("the limits of an API token hold", async () => {
  const { keys } = world.harness.app.installation;
  const issueLimited = (limit: TokenLimit) =>
    issueToken(
      { issuer: world.url, audience: world.url, identity: pusher.uid, lifeS: 600, atMs: Date.now(), limit },
      keys,
      randomIds,
    );
  const scopes = [`repository:${world.root}/a:pull,push`, `repository:${child}/a:pull,push`];
  const pulls = buildCapabilitySet(["repo.blobs.get", "manifest.list", "tag.list"]);
  assert.deepEqual(await requestAccess(scopes, await issueLimited({ scope: [child] })), [
    entry(`${child}/a`, "pull", "push"),
  ]);
  assert.deepEqual(await requestAccess(scopes, await issueLimited({ cap: pulls })), [
    entry(`${world.root}/a`, "pull"),
    entry(`${child}/a`, "pull"),
  ]);
  assert.deepEqual(await requestAccess(scopes, await issueLimited({ cap: pulls, scope: [child] })), [
    entry(`${child}/a`, "pull"),
  ]);
});

test("a first push needs the right to create repos, a later one does not", async () => {
  const role = randomIds.newUid(world.root);
  const { uid, token } = await world.harness.identity({}, world.root);
  const times = { createTimeMs: 1, updateTimeMs: 1 };
  const capabilities = buildCapabilitySet(["manifest.create", "tag.create", "tag.update"]);
  const binding = {
    groupUid: world.root,
    identityUid: uid,
    roleUid: role,
    automatic: false,
    accepted: false,
    managedByUid: null,
    endTimeMs: null,
    pending: false,
  };
  await world.write(async (tx) => {
    await tx
      .table(roleKind)
      .insert({ uid: role, groupUid: world.root, name: "r", description: "", capabilities, ...times });
    await tx.table(roleBindingKind).insert({ uid: randomIds.newUid(world.root), ...binding, ...times });
  });
  const scopes = [`repository:${world.root}/later:push`];
  assert.deepEqual(await requestAccess(scopes, token), []);
  const repo = { uid: randomIds.newUid(world.root), groupUid: world.root, name: "later", description: "", readme: "" };
  await world.write((tx) => tx.table(repoKind).insert({ ...repo, config: {}, ...times }));
  assert.deepEqual(await requestAccess(scopes, token), [entry(`${world.root}/later`, "push")]);
});

test("anonymous callers have the bindings of anonymous, and no others", async () => {
  const scopes = [`repository:${world.root}/a:pull,push`];
  assert.deepEqual(await requestAccess(scopes, undefined), []);
  const binding = await world.harness.bind(builtinIdentityUid("anonymous"), "registry.pull", world.root);
  assert.deepEqual(await requestAccess(scopes, undefined), [entry(`${world.root}/a`, "pull")]);
  // It is not added to what others have.
  const { token } = await world.harness.identity({}, world.root);
  assert.deepEqual(await requestAccess(scopes, token), []);
  await world.write((tx) => tx.table(roleBindingKind).delete(binding));
  assert.deepEqual(await requestAccess(scopes, undefined), []);
});

const broken: readonly (readonly [string, [string, string][], string])[] = [
  ["another service", [["service", "other"]], "service"],
  ["an empty service", [["service", ""]], "service"],
  [
    "two services",
    [
      ["service", "arbor"],
      ["service", "arbor"],
    ],
    "service",
  ],
  ["a hundred and one repos", Array.from({ length: 101 }, (_, i) => ["scope", `repository:a/b${i}:pull`]), "scope"],
];

for (const [name, parameters, field] of broken) {
  test(`rejects ${name}`, async () => {
    const { status, text } = await askToken(world.url, { user: "_token", password: pusher.token, parameters });
    assert.equal(status, 400);
    const { code, message } = JSON.parse(text) as { code: number; message: string };
    assert.equal(code, 3);
    assert.match(message, new RegExp(`Invalid argument: ${field}: ${field} must`));
  });
}

test("rejects a request without a service, and a form without a grant type", async () => {
  assert.equal((await fetch(`${world.url}/token`)).status, 400);
  const response = await askToken(world.url, { form: { username: "_token", password: pusher.token } });
  assert.equal(response.status, 400);
  assert.match(response.text, /grant_type must be password or refresh_token/);
});

test("a token expires with the first of the rights that it needs", async () => {
  const repo = `${world.root}/a`;
  const nowMs = Date.now();
  const bind = (identityUid: string, role: string, endTimeMs: number | null) =>
    world.write((tx) =>
      tx
        .table(roleBindingKind)
        .insert(bindingRow(randomIds.newUid(world.root), identityUid, builtinRoleUid(role), { endTimeMs })),
    );
  const lifeOf = async (token: string, ...scopes: string[]) => {
    const response = await askToken(world.url, {
      ...{ user: "_token", password: token },
      parameters: scopes.map((scope) => ["scope", scope] as [string, string]),
    });
    assert.equal(response.status, 200, response.text);
    const { exp, iat } = claimsOf(response.token) as { exp: number; iat: number };
    assert.equal(JSON.parse(response.text).expires_in, exp - iat);
    return exp;
  };
  const puller = await world.harness.identity({}, world.root);
  await bind(puller.uid, "registry.pull", nowMs + 120_000);
  const soon = Math.floor((nowMs + 120_000) / 1000);
  const [pull, push] = [`repository:${repo}:pull`, `repository:${repo}:push`];
  assert.equal(await lifeOf(puller.token, pull), soon);
  // What is not granted, and what rests on a right that does not end, does not shorten it.
  assert.ok((await lifeOf(puller.token)) > soon + 60);
  assert.ok((await lifeOf(puller.token, `repository:${world.foreign}/a:pull`)) > soon + 60);
  await bind(puller.uid, "registry.push", nowMs + 200_000);
  const later = Math.floor((nowMs + 200_000) / 1000);
  assert.equal(await lifeOf(puller.token, pull, push), later, "the later of two bindings grants pulls as well");
  await bind(puller.uid, "owner", null);
  assert.ok((await lifeOf(puller.token, pull, push)) > later + 30);
});
