// The one path of a repo: what `/token` answers for it, and for the path that the repo does not have.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { seedAnonymous } from "../../src/iam/identities/identity.js";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { ANONYMOUS_UID, randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { repoKind } from "../../src/store/registry/repos.js";
import { claimsOf, type ExchangeWorld, startExchangeWorld } from "../issuer/sts/exchange-world.js";
import { groupRow } from "../support/rows.js";
import { askToken } from "./token-kit.js";

/** How the organisations of the rows got their names. */
const organisations = {
  unverified: "unverified.example",
  verified: "verified.example",
  /** As organisations are after the migration, until they are moved. */
  both: "both.example",
  moved: "moved.example",
  /** Has another name than it was verified under. */
  renamed: "renamed.example",
  deleted: "deleted.example",
} as const;

type Organisation = keyof typeof organisations;

let world: ExchangeWorld;
const uids = {} as Record<Organisation, string>;
const tokens = {} as Record<"pusher" | "puller" | "stranger" | "owner", string>;
before(async () => {
  world = await startExchangeWorld();
  const { harness } = world;
  const [pusher, puller, stranger] = [
    await harness.identity({}, world.root),
    await harness.identity({}, world.root),
    await harness.identity({}, world.root),
  ];
  Object.assign(tokens, { pusher: pusher.token, puller: puller.token, stranger: stranger.token });
  tokens.owner = world.owner.token;
  // Of the last organisation, which is deleted below.
  let bindings: readonly string[] = [];
  for (const [key, name] of Object.entries(organisations)) {
    const { group, roleBinding } = await harness.organisation(name);
    uids[key as Organisation] = group;
    bindings = [
      roleBinding,
      await harness.bind(pusher.uid, "registry.push", group),
      await harness.bind(puller.uid, "registry.pull", group),
    ];
    await world.write((tx) => tx.table(groupKind).insert(groupRow(subgroupOf(group), { name })));
  }
  await harness.bind(stranger.uid, "registry.push", world.foreign);
  await world.write(async (tx) => {
    const context = { ids: randomIds, nowMs: Date.now() };
    await seedAnonymous(tx, context.nowMs);
    for (const one of ["verified", "moved", "renamed", "deleted"] as const)
      await verifyGroup(tx, uids[one], undefined, context);
    await verifyGroup(tx, uids.both, undefined, context, { keepUidPulls: true });
    await tx.registry.putName({ name: organisations.moved, groupUid: uids.moved, uidPath: "moved" });
    await tx.table(groupKind).update(uids.renamed, { name: "changed.example" }, context.nowMs);
  });
  for (const one of ["both", "verified", "moved"] as const) {
    const repo = { uid: randomIds.newUid(uids[one]), groupUid: uids[one], name: "public", description: "", readme: "" };
    await world.write((tx) => tx.table(repoKind).insert({ ...repo, config: {}, createTimeMs: 1, updateTimeMs: 1 }));
    await harness.bind(ANONYMOUS_UID, "registry.pull", uids[one]);
  }
  await world.write(async (tx) => {
    for (const uid of bindings) await tx.table(roleBindingKind).delete(uid);
    for (const uid of [subgroupOf(uids.deleted), uids.deleted]) {
      const row = await tx.table(groupKind).find(uid);
      if (row) await tx.table(groupKind).delete(row.uid);
    }
  });
});
after(() => world.stop());

const subgroupOf = (group: string) => `${group}/${"c".repeat(16)}`;

interface Answer {
  readonly status: number;
  /** What the token grants, or the errors. */
  readonly content: unknown;
}

async function request(by: keyof typeof tokens | "anonymous", ...scopes: string[]): Promise<Answer> {
  const user = by === "anonymous" ? {} : { user: "_token", password: tokens[by] };
  const response = await askToken(world.url, { ...user, parameters: scopes.map((scope) => ["scope", scope]) });
  const { errors } = JSON.parse(response.text) as { errors?: unknown };
  assert.equal(response.headers.get("content-type"), "application/json");
  return { status: response.status, content: response.status === 200 ? claimsOf(response.token).access : errors };
}

const grants = (...entries: readonly (readonly [string, ...string[]])[]): Answer => ({
  status: 200,
  content: entries.map(([name, ...actions]) => ({ type: "repository", name, actions })),
});
const nothing = grants();
const answerDenied = (...paths: string[]): Answer => ({
  status: 403,
  content: paths.map((path) => ({
    code: "DENIED",
    message: `the path of this repository is ${path}`,
    detail: { repository: path },
  })),
});

type Case = readonly [
  name: string,
  by: keyof typeof tokens | "anonymous",
  scopes: () => string[],
  answer: () => Answer,
];

const PUSH = "pull,push";
/** The path of the repo `app` by the uid of an organisation, and by its name. */
const byUid = (one: Organisation, repo = "app") => `${uids[one]}/${repo}`;
const byName = (one: Organisation, repo = "app") => `${organisations[one]}/${repo}`;
const scope = (path: string, actions: string) => `repository:${path}:${actions}`;
const grantsAll = (path: string) => grants([path, "pull", "push"]);

const cases: readonly Case[] = [
  [
    "an organisation that is not verified has the path of its uid",
    "pusher",
    () => [scope(byUid("unverified"), PUSH)],
    () => grantsAll(byUid("unverified")),
  ],
  ["a name that is not verified is unknown", "pusher", () => [scope(byName("unverified"), PUSH)], () => nothing],
  [
    "a verified organisation has the path of its name",
    "pusher",
    () => [scope(byName("verified"), PUSH)],
    () => grantsAll(byName("verified")),
  ],
  ["another one's name is that of an unknown repo", "stranger", () => [scope(byName("verified"), PUSH)], () => nothing],
  [
    "its uid is denied to who may push",
    "pusher",
    () => [scope(byUid("verified"), PUSH)],
    () => answerDenied(byName("verified")),
  ],
  [
    "its uid is denied to who may pull",
    "puller",
    () => [scope(byUid("verified"), "pull")],
    () => answerDenied(byName("verified")),
  ],
  [
    "its uid is denied to anonymous pulls",
    "anonymous",
    () => [scope(byUid("verified"), "pull")],
    () => answerDenied(byName("verified")),
  ],
  ["its uid is unknown to others", "stranger", () => [scope(byUid("verified"), PUSH)], () => nothing],
  [
    "its uid is unknown to who may pull and asks to push",
    "puller",
    () => [scope(byUid("verified"), "push")],
    () => nothing,
  ],
  ["its uid is unknown to anonymous pushes", "anonymous", () => [scope(byUid("verified"), "push")], () => nothing],
  [
    "its subgroup keeps its uid",
    "pusher",
    () => [scope(`${subgroupOf(uids.verified)}/app`, PUSH)],
    () => grantsAll(`${subgroupOf(uids.verified)}/app`),
  ],
  [
    "its subgroup is not found under its name",
    "pusher",
    () => [scope(`${organisations.verified}/${"c".repeat(16)}/app`, PUSH)],
    () => nothing,
  ],
  [
    "before it is moved, pushes go to its name",
    "pusher",
    () => [scope(byName("both"), PUSH)],
    () => grantsAll(byName("both")),
  ],
  [
    "before it is moved, its uid is pulled",
    "pusher",
    () => [scope(byUid("both"), "pull")],
    () => grants([byUid("both"), "pull"]),
  ],
  [
    "before it is moved, its name is pulled",
    "puller",
    () => [scope(byName("both"), "pull")],
    () => grants([byName("both"), "pull"]),
  ],
  [
    "before it is moved, its uid is not pushed to",
    "pusher",
    () => [scope(byUid("both"), PUSH)],
    () => answerDenied(byName("both")),
  ],
  ["nor deleted from", "pusher", () => [scope(byUid("both"), "delete")], () => answerDenied(byName("both"))],
  [
    "who may only pull gets that of what is requested for a push",
    "puller",
    () => [scope(byUid("both"), PUSH)],
    () => grants([byUid("both"), "pull"]),
  ],
  [
    "before it is moved, anonymous pulls by the uid",
    "anonymous",
    () => [scope(byUid("both", "public"), "pull")],
    () => grants([byUid("both", "public"), "pull"]),
  ],
  [
    "before it is moved, anonymous pulls by the name",
    "anonymous",
    () => [scope(byName("both", "public"), "pull")],
    () => grants([byName("both", "public"), "pull"]),
  ],
  [
    "after it is moved, its uid is denied",
    "puller",
    () => [scope(byUid("moved"), "pull")],
    () => answerDenied(byName("moved")),
  ],
  [
    "after it is moved, anonymous pulls by the name",
    "anonymous",
    () => [scope(byName("moved", "public"), "pull")],
    () => grants([byName("moved", "public"), "pull"]),
  ],
  [
    "a new name of the group changes no path",
    "pusher",
    () => [scope(byName("renamed"), PUSH)],
    () => grantsAll(byName("renamed")),
  ],
  ["and is not known", "pusher", () => [scope("changed.example/app", PUSH)], () => nothing],
  ["nor named for the uid", "pusher", () => [scope(byUid("renamed"), "pull")], () => answerDenied(byName("renamed"))],
  ["the name of a deleted organisation is unknown", "pusher", () => [scope(byName("deleted"), PUSH)], () => nothing],
  ["and so is its uid", "pusher", () => [scope(byUid("deleted"), PUSH)], () => nothing],
  [
    "a client that mounts from the uid pushes without the mount",
    "pusher",
    () => [scope(byUid("verified"), "pull"), scope(byName("verified"), PUSH)],
    () => grantsAll(byName("verified")),
  ],
  [
    "several paths that are denied are named",
    "pusher",
    () => [scope(byUid("verified", "a"), "pull"), scope(byUid("moved", "b"), "pull")],
    () => answerDenied(byName("verified", "a"), byName("moved", "b")),
  ],
];

describe("the one path of a repo", () => {
  for (const [name, by, scopes, response] of cases) {
    test(name, async () => assert.deepEqual(await request(by, ...scopes()), response()));
  }
});
