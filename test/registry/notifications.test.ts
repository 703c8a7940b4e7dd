// Events of a registry: who may send them, what they may hold, and that neither their order nor their repetition
// matters.
import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { randomIds } from "../../src/kernel/ids.js";
import type { WebRequest } from "../../src/kernel/web.js";
import { applyEvents } from "../../src/registry/oci/apply-event.js";
import { parseEvents } from "../../src/registry/oci/notification.js";
import { NOTIFICATIONS_PATH, notificationRoutes } from "../../src/registry/oci/notification-routes.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { repoKind } from "../../src/store/registry/repos.js";
import { tagKind } from "../../src/store/registry/tags.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { groupRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const SECRET = "s".repeat(40);
const ROOT = rootUid(1);
const digests = ["a", "b", "c"].map((digit) => `sha256:${digit.repeat(64)}`);
const [A = "", B = ""] = digests;
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";

const directory = tempDir();
const secretFile = fileOf("secret", SECRET);
const store = openSqlite({ directory, clock: () => NOW, exclusive: true });
await store.write(async (tx) => {
  await tx.table(groupKind).insert(groupRow(ROOT, { name: "acme", verified: true }));
  await tx.registry.putName({ name: "acme", groupUid: ROOT, uidPath: "pulls" });
  await tx.table(groupKind).insert(groupRow(rootUid(2), { name: "unverified" }));
});
after(() => store.close());

const received: object[] = [];
const routes = notificationRoutes({
  secretFile,
  store,
  clock: () => NOW,
  ids: randomIds,
  onEvents: (one) => received.push(one),
});
const route = routes[0] ?? assert.fail("there is no route");

interface Given {
  readonly id?: unknown;
  readonly action?: unknown;
  readonly atMs?: number;
  readonly timestamp?: unknown;
  readonly target?: unknown;
  readonly repo?: string;
  readonly tag?: unknown;
  readonly digest?: unknown;
  readonly mediaType?: string;
  readonly actor?: unknown;
}

let count = 0;
function event(given: Given): object {
  const { id = `event-${++count}`, action = "push", atMs = NOW - 60_000, repo = `${ROOT}/app` } = given;
  const { tag, digest, mediaType, timestamp = new Date(atMs).toISOString(), actor } = given;
  const target = given.target ?? { mediaType, repository: repo, tag, digest };
  return {
    id,
    timestamp,
    action,
    target,
    request: { useragent: "skopeo/1.9.3" },
    ...(actor !== undefined && { actor }),
  };
}

async function post(body: string | object, authorization: string | undefined = `Bearer ${SECRET}`) {
  const bytes = body instanceof Buffer ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const request = {
    remoteAddress: "192.0.2.1",
    header: (name: string) => (name === "authorization" ? authorization : undefined),
    bytes: async () => bytes,
  } as Partial<WebRequest> as WebRequest;
  assert.equal(route.maxBytes, 1024 * 1024);
  assert.ok(route.access !== "public");
  route.access(request);
  const response = await route.handle(request);
  return response.status;
}

const send = (...events: Given[]) => post({ events: events.map(event) });

async function tagsOf(repoName: string): Promise<Record<string, string> | undefined> {
  return store.read(async (tx) => {
    const repo = await tx.table(repoKind).findByName(ROOT, repoName);
    if (repo === undefined) return undefined;
    const query = { visible: [repo.uid], filter: {}, order: { field: "uid", descending: false }, skip: 0, limit: 200 };
    const { rows } = await tx.table(tagKind).listAll(query);
    return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]).sort());
  });
}

test("without a secret there is no such path", () => {
  assert.deepEqual(
    notificationRoutes({ secretFile: undefined, store, clock: Date.now, ids: randomIds, onEvents() {} }),
    [],
  );
});

const badFiles: readonly [what: string, file: () => string, rule: RegExp][] = [
  ["missing", () => join(directory, "missing"), /^--registry-secret-file: cannot read \S+missing: no such file$/],
  ["too short", () => fileOf("short", "s".repeat(31)), /at least 32/],
  ["of two words", () => fileOf("words", `${SECRET} ${SECRET}`), /one word/],
  ["of two lines", () => fileOf("lines", `${SECRET}\n${SECRET}\n`), /one word/],
  ["readable by others", () => fileOf("wide", SECRET, 0o644), /0600/],
];
for (const [what, file, rule] of badFiles) {
  test(`a secret that is ${what} is rejected at start`, () => {
    const secretFile = file();
    const start = () => notificationRoutes({ secretFile, store, clock: Date.now, ids: randomIds, onEvents() {} });
    assert.throws(start, (error: Error) => rule.test(error.message) && !error.message.includes(SECRET));
  });
}

test("a line break after the secret is ignored", () => {
  const file = fileOf("line", `${SECRET}\n`);
  const [route] = notificationRoutes({ secretFile: file, store, clock: Date.now, ids: randomIds, onEvents() {} });
  assert.equal(route?.path, NOTIFICATIONS_PATH);
});

for (const header of [
  undefined,
  "",
  SECRET,
  `Basic ${SECRET}`,
  `Bearer ${SECRET}x`,
  `Bearer ${SECRET.slice(1)}`,
  "Bearer ",
]) {
  test(`the secret is not ${header?.replaceAll("s", "").slice(0, 10) ?? "nothing"} (${header?.length ?? 0})`, async () => {
    const { access } = route;
    assert.ok(access !== "public");
    assert.throws(() => access({ header: () => header }), { reason: "UNAUTHENTICATED" });
  });
}

test("the scheme is read in any case", async () => {
  assert.equal(await post({ events: [] }, `bearer ${SECRET}`), 200);
  assert.equal(await post({ events: [] }, `Bearer   ${SECRET}`), 200);
});

const malformed: readonly [what: string, body: string | object, message: RegExp][] = [
  ["no JSON", "{", /the body must be JSON/],
  ["no UTF-8", Buffer.from('{"events":[],"\xff":0}', "latin1"), /the body must be JSON/],
  ["no object", "[]", /events: events must be a list/],
  ["no events", {}, /events: events must be a list/],
  ["an event that is none", { events: [7] }, /events\[0\]: events\[0\] must be an object/],
  ["no action", { events: [event({ action: 7 })] }, /events\[0\]\.action/],
  ["no target", { events: [event({ target: "x" })] }, /events\[0\]\.target/],
  ["no id", { events: [event({ tag: "x", digest: A, id: "" })] }, /events\[0\]\.id/],
  ["a long id", { events: [event({ tag: "x", digest: A, id: "i".repeat(201) })] }, /events\[0\]\.id/],
  ["an id that is no text", { events: [event({ tag: "x", digest: A, id: 7 })] }, /events\[0\]\.id/],
  ["no time", { events: [event({ tag: "x", digest: A, timestamp: "yesterday" })] }, /events\[0\]\.timestamp/],
  ["no repository", { events: [event({ target: { tag: "x", digest: A } })] }, /events\[0\]\.target\.repository/],
  ["no tag", { events: [event({ tag: "-x", digest: A })] }, /events\[0\]\.target\.tag/],
  ["no digest", { events: [event({ tag: "x" })] }, /events\[0\]\.target\.digest/],
  ["no such digest", { events: [event({ action: "delete", digest: "sha256:abc" })] }, /events\[0\]\.target\.digest/],
  ["a second event", { events: [event({ action: "pull" }), event({ tag: "x" })] }, /events\[1\]\.target\.digest/],
];
for (const [what, body, message] of malformed) {
  test(`an envelope with ${what} is rejected and changes nothing`, async () => {
    await assert.rejects(() => post(body), { reason: "INVALID_ARGUMENT", message });
    assert.equal(await tagsOf("app"), undefined);
  });
}

test("pulls, mounts and layers change nothing", async () => {
  const layer = { mediaType: "application/octet-stream", digest: A };
  await send({ action: "pull", tag: "x", digest: A }, { action: "mount", ...layer }, layer);
  assert.equal(await tagsOf("app"), undefined);
});

test("events of unknown groups are dropped and counted", async () => {
  const paths = ["nobody/app", "unverified/app", `${rootUid(9)}/app`, "app", "a/b/c", `${ROOT}/UPPER`];
  await send(...paths.map((repo) => ({ repo, tag: "x", digest: A })), { repo: "acme/known", tag: "x", digest: A });
  assert.deepEqual(received.at(-1), { events: 7, changed: 2, dropped: 6 });
  assert.deepEqual(await tagsOf("known"), { x: A });
});

test("every change leaves a row in the audit log, with whom the token was for", async () => {
  const actor = rootUid(77);
  await send({ repo: "acme/audited", tag: "x", digest: A, id: "audit-1", actor: { name: actor } });
  await send({ repo: "acme/audited", tag: "x", digest: A, id: "audit-1", actor: { name: actor } });
  await send({ repo: "acme/audited", action: "delete", tag: "x", id: "audit-2", atMs: NOW - 1, actor: { name: "?" } });
  const rows = await store.read((tx) => tx.audit.listNewest(4, ROOT));
  const seen = rows.map(({ type, actorUid, requestId }) => [type.split(".").slice(-3).join(" "), actorUid, requestId]);
  assert.deepEqual(seen, [
    ["tag deleted v1", "", "audit-2"],
    ["registry push v1", actor, "audit-1"],
    ["tag created v1", actor, "audit-1"],
    ["repo created v1", actor, "audit-1"],
  ]);
  const bodies = await store.read((tx) => tx.audit.readBodies(rows));
  const shown = rows.map(({ id }) => {
    const { type, before, after } = JSON.parse(bodies.get(id) ?? "{}");
    return [type, before?.digest, after?.digest, after?.name];
  });
  assert.deepEqual(shown, [
    ["chainguard.platform.registry.v2.Tag", A, undefined, undefined],
    ["dev.chainguard.registry.push.v1", undefined, A, undefined],
    ["chainguard.platform.registry.v2.Tag", undefined, A, "x"],
    ["chainguard.platform.registry.v2.Repo", undefined, undefined, "audited"],
  ]);
  assert.ok(rows.every(({ method, remoteAddress }) => method === NOTIFICATIONS_PATH && remoteAddress === "192.0.2.1"));
});

test("an image without a tag creates its repo", async () => {
  await send({ repo: "acme/untagged", digest: A, mediaType: MANIFEST });
  assert.deepEqual(await tagsOf("untagged"), {});
});

test("the future does not shut out the present", async () => {
  await send({ repo: "acme/clocks", tag: "x", digest: A, atMs: NOW + 10 * 365 * 86_400_000 });
  await send({ repo: "acme/clocks", tag: "x", digest: B, atMs: NOW });
  assert.deepEqual(await tagsOf("clocks"), { x: B });
});

test("any order and repetition of events gives the tags that the registry has", async () => {
  let run = 0;
  const step = fc.record({
    action: fc.constantFrom("push", "delete", "delete manifest"),
    tag: fc.constantFrom("one", "two", "2-r1"),
    digest: fc.constantFrom(...digests),
    afterMs: fc.integer({ min: 1, max: 3 }),
  });
  const history = fc.array(step, { minLength: 1, maxLength: 12 }).chain((steps) => {
    const order = fc.shuffledSubarray(
      steps.map((_, i) => i),
      { minLength: steps.length },
    );
    const again = fc.array(fc.nat({ max: steps.length - 1 }), { maxLength: 5 });
    return fc.tuple(fc.constant(steps), order, again, fc.boolean());
  });
  await fc.assert(
    fc.asyncProperty(history, async ([steps, order, again, together]) => {
      const repo = `r${++run}`;
      const actual = new Map<string, string>();
      let atMs = NOW - 60_000;
      const told = steps.map(({ action, tag, digest, afterMs }, i) => {
        atMs += afterMs;
        if (action === "push") actual.set(tag, digest);
        else if (action === "delete") actual.delete(tag);
        else for (const [name, to] of actual) if (to === digest) actual.delete(name);
        const what = action === "push" ? { tag, digest } : action === "delete" ? { tag } : { digest };
        const [verb = ""] = action.split(" ");
        return event({ id: `${repo} ${i}`, action: verb, repo: `acme/${repo}`, atMs, ...what });
      });
      const sent = [...order, ...again].map((i) => told[i] as object);
      for (const events of together ? [sent] : sent.map((one) => [one])) await post({ events });
      assert.deepEqual(await tagsOf(repo), Object.fromEntries([...actual].sort()));
    }),
    { numRuns: 150 },
  );
});

test("the deletion of a manifest does not block an earlier push that arrives later", async () => {
  const at = (seconds: number) => NOW - 60_000 + seconds * 1_000;
  const moved = { repo: "acme/moved", tag: "x" };
  await send({ ...moved, digest: A, atMs: at(1) });
  await send({ repo: "acme/moved", action: "delete", digest: A, atMs: at(3) });
  assert.deepEqual(await tagsOf("moved"), {});
  await send({ ...moved, digest: B, atMs: at(2) });
  assert.deepEqual(await tagsOf("moved"), { x: B });
});

test("of two pushes in one millisecond the same one counts whichever comes first", async () => {
  const first = { repo: "acme/tie", tag: "x", digest: A, atMs: NOW - 5 };
  for (const [repo, order] of [
    ["acme/tie1", [A, B]],
    ["acme/tie2", [B, A]],
  ] as const)
    await send(...order.map((digest) => ({ ...first, repo, digest })));
  assert.deepEqual([await tagsOf("tie1"), await tagsOf("tie2")], [{ x: B }, { x: B }]);
});

test("a transaction that fails leaves the event unknown, so that its repetition counts", async () => {
  const [known] = parseEvents(
    Buffer.from(JSON.stringify({ events: [event({ repo: "acme/undone", tag: "x", digest: A, id: "undone" })] })),
  );
  assert.ok(known);
  const source = { method: "test", remoteAddress: "" };
  const failing = store.write(async (tx) => {
    await applyEvents(tx, [known], { ids: randomIds, nowMs: NOW, source });
    throw new Error("the disk is full");
  });
  await assert.rejects(failing, /the disk is full/);
  assert.equal(await tagsOf("undone"), undefined);
  await send({ repo: "acme/undone", tag: "x", digest: A, id: "undone" });
  assert.deepEqual(await tagsOf("undone"), { x: A });
});

function fileOf(name: string, content: string, mode = 0o600): string {
  const file = join(directory, name);
  writeFileSync(file, content);
  chmodSync(file, mode);
  return file;
}
