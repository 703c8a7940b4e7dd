// What the audit log says of every change: which body, what is left out, and who reads it. On either store.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { decodeJwt } from "jose";
import { type EventAttributes, EventAttributes_Audience, events } from "#gen/chainguard/annotations/annotations_pb.js";
import { readOption } from "../../src/codec/fields.js";
import { bindIdentity, verifyGroup } from "../../src/iam/operator/operate.js";
import { createOperatorRole } from "../../src/iam/operator/roles.js";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { canonicalize, hashBody, type JsonFields, MAX_PART_BYTES } from "../../src/kernel/audit-body.js";
import { randomIds } from "../../src/kernel/ids.js";
import { rootOf } from "../../src/kernel/uidp.js";
import { createMethodTable, findBodyReaders, type UnaryEntry } from "../../src/pipeline/method-table.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import type { StoredAuditRow } from "../../src/store/tables/audit.js";
import { isUnavailable, services } from "../contract/iam-methods.js";
import { type IamWorld, type Somebody, startIamWorld } from "../iam/iam-world.js";
import { newDatabase, withClient } from "../pg/databases.js";
import { newDataDir } from "../support/data-dir.js";
import { insertScimToken } from "../support/scim.js";
import { tempDir } from "../support/temp-dir.js";
import { listStepsV2, type Made, PLANTED, type Step, stepsV1 } from "./body-steps.js";

const PREFIX = "chainguard.platform.";
const table = createMethodTable(services);
const readers = findBodyReaders(services);

interface StoredBody {
  readonly type: string;
  readonly salt: string;
  readonly before?: JsonFields;
  readonly after?: JsonFields;
  readonly beforeDigest?: { readonly sha256: string; readonly fields: readonly string[] };
  readonly afterDigest?: { readonly sha256: string; readonly fields: readonly string[] };
}

type Row = StoredAuditRow & { readonly body: StoredBody | undefined };

/** Leaves out what is empty: answers over REST have it, and bodies do not. */
function compact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(compact);
  // Connect leaves out the fractions of whole seconds.
  if (typeof value === "string") return value.replace(/(:\d\d)\.000Z$/, "$1Z");
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value)
    .map(([name, member]) => [name, compact(member)] as const)
    .filter(([, member]) => !isEmpty(member));
  return Object.fromEntries(members);
}

/** What methods of Connect answer although it is only input. */
const INPUT_ONLY = ["identityUid", "roleUid"];

function withoutInput(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutInput);
  if (typeof value !== "object" || value === null) return value;
  const isBinding = "role" in value && "group" in value;
  const kept = Object.entries(value).filter(([name]) => !isBinding || !INPUT_ONLY.includes(name));
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutInput(member)]));
}

function isEmpty(value: unknown): boolean {
  if (value === "" || value === 0 || value === "0" || value === false || value === null) return true;
  return typeof value === "object" && Object.keys(value as object).length === 0;
}

function eventOf(entry: UnaryEntry): EventAttributes | undefined {
  return readOption(entry.desc, events);
}

/** The methods of a version that change something and can be called. */
function listChanging(isOfVersion: (packageName: string) => boolean): string[] {
  const found: string[] = [];
  for (const entry of table.values()) {
    if (entry.kind !== "unary" || entry.access !== "write") continue;
    if (isUnavailable(entry.desc as DescMethodUnary) || !isOfVersion(entry.desc.parent.file.proto.package)) continue;
    found.push(entry.path.slice(1 + PREFIX.length));
  }
  return found.filter((path) => !path.startsWith("bor.")).sort();
}

const versions: readonly { readonly name: string; readonly steps: readonly Step[]; readonly methods: string[] }[] = [
  { name: "v2beta1", steps: listStepsV2("v2beta1"), methods: listChanging((name) => name.endsWith(".v2beta1")) },
  { name: "v2", steps: listStepsV2("v2"), methods: listChanging((name) => name.endsWith(".v2")) },
  {
    name: "v1",
    steps: stepsV1,
    methods: listChanging((name) => name.startsWith(PREFIX) && !/\.v2(beta1)?$/.test(name)),
  },
];

/** Registers the tests. */
export function bodiesSuite(name: string): void {
  for (const version of versions)
    describe(`bodies of audit rows on ${name}, ${version.name}`, () => testVersion(version));
}

function testVersion({ name: versionName, steps, methods }: (typeof versions)[number]): void {
  let world: IamWorld;
  let database: Awaited<ReturnType<typeof newStorage>>;
  let member: { uid: string; token: string };
  const made: Made = {};
  /** What the last body says of a resource, by its uid and the type of the body. */
  const known = new Map<string, JsonFields | undefined>();
  const secrets: string[] = [PLANTED];

  before(async () => {
    database = await newStorage();
    world = await startIamWorld({ rootCreation: "users", ...database.settings });
    made.org = world.root;
    member = await world.harness.identity({ name: "Ann", email: "ann@acme.example" });
    await world.harness.bind((await world.harness.identity()).uid, "owner", world.root);
    await world.write(async (tx) => {
      await tx.table(groupKind).update(world.root, { name: "acme.example" }, Date.now());
      const context = { ids: randomIds, nowMs: Date.now() };
      await verifyGroup(tx, world.root, undefined, context);
      // Some methods need what no role of an organisation has.
      const capabilities = [...table.values()].flatMap(({ auth }) =>
        auth.mode === "guarded" ? auth.capabilities : [],
      );
      const operator = {
        name: "operator",
        description: "",
        capabilities: [...new Set(capabilities.map(({ name }) => name))],
      };
      const { uid: role } = await createOperatorRole(tx, operator, context);
      await bindIdentity(tx, { identity: world.owner.uid, role, group: world.root, internal: true }, context);
    });
  });
  after(() => world.stop());

  const readRows = async (): Promise<Row[]> =>
    world.write(async (tx) => {
      const rows = await tx.audit.listNewest(1_000);
      const bodies = await tx.audit.readBodies(rows);
      return rows.map((row) => {
        const body = bodies.get(row.id);
        assert.equal(row.bodyHash, hashBody(body ?? ""));
        assert.equal(row.bodyBytes, Buffer.byteLength(body ?? ""));
        if (body !== undefined) assert.equal(body, canonicalize(JSON.parse(body)), "canonical");
        return { ...row, body: body === undefined ? undefined : (JSON.parse(body) as StoredBody) };
      });
    });

  const call = async (method: string, request: object, token: string, requestId = "other") => {
    const response = await fetch(`${world.url}/${PREFIX}${method}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "x-request-id": requestId },
      body: JSON.stringify(request),
    });
    const text = await response.text();
    return { status: response.status, text, json: text === "" ? {} : (JSON.parse(text) as JsonFields) };
  };

  test("every method that changes something is called here", () => {
    assert.deepEqual([...new Set(steps.map(({ method }) => method))].sort(), methods);
  });

  for (const [i, { method, request, shape, type, only, keep, as }] of steps.entries()) {
    test(`${i + 1}. ${method}: ${shape}`, async () => {
      const entry = table.get(`/${PREFIX}${method}`) as UnaryEntry;
      if (/\/(SetScimEnabled|RegenerateScimToken)$/.test(method))
        await world.write((tx) => insertScimToken(tx, made.provider ?? assert.fail()));
      const count = (await readRows()).length;
      const caller = as === "member" ? member : world.owner;
      const sent = JSON.stringify(request(made));
      const requestId = `req-${i}`;
      const { status, text, json } = await call(method, request(made), caller.token, requestId);
      assert.equal(status, 200, text);
      const [first] = (json.roleBindings ?? []) as readonly JsonFields[];
      const uid = String(json.uid ?? json.id ?? first?.uid ?? first?.id ?? "");
      if (keep !== undefined) made[keep] = uid;
      if (typeof json.code === "string" && json.code !== "") {
        secrets.push(json.code, JSON.parse(Buffer.from(json.code, "base64url").toString()).sec);
      }
      if (json.token !== undefined) secrets.push(String(json.token));
      const [row, ...others] = await readRows();
      assert.ok(row);
      assert.equal(others.length, count, "exactly one row");
      const { body, subjectUid, timeMs, id: _, bodyHash: __, bodyBytes: ___, actorName: ____, ...facts } = row;
      assert.deepEqual(facts, {
        ...{ rootUid: rootOf(subjectUid), type: entry.auditType, method: entry.path, version: 3, traceId: "" },
        ...{ actorUid: caller.uid, tokenId: decodeJwt(caller.token).jti, requestId, remoteAddress: "127.0.0.1" },
      });
      assert.ok(Math.abs(Date.now() - timeMs) < 60_000);
      // What was made or is named by the request; a batch is of the group that it names.
      if (keep !== undefined && !/Batch/.test(method)) assert.equal(subjectUid, made[keep]);
      else assert.ok(sent.includes(`"${subjectUid}"`) || [uid, caller.uid].includes(subjectUid), subjectUid);
      const event = eventOf(entry);
      if (shape === "none") return assert.equal(body, undefined);
      assert.ok(body, "a body");
      assert.equal(body.type, PREFIX + (type ?? assert.fail()));
      assert.match(body.salt, /^[\w-]{16}$/);
      assert.ok(readers.has(body.type));
      const hasBefore = shape !== "created";
      const hasAfter = shape !== "deleted";
      assert.deepEqual([body.before !== undefined, body.after !== undefined], [hasBefore, hasAfter]);
      // Those of the published API are delivered.
      const isOwn = method.endsWith("/UpdateGroupInvite");
      const { CUSTOMER, INTERNAL } = EventAttributes_Audience;
      if (event !== undefined) assert.equal(event.audience, isOwn ? INTERNAL : CUSTOMER);
      const key = `${body.type} ${row.subjectUid}`;
      if (hasAfter) {
        const { code: _, token: __, ...shown } = json;
        const expected = only ? Object.fromEntries(only.map((field) => [field, json[field]])) : shown;
        assert.deepEqual(compact(body.after), compact(withoutInput(expected)), "what the response says");
      }
      for (const part of [body.before, body.after]) {
        if (only && part) assert.deepEqual(Object.keys(part).sort(), [...only].sort());
      }
      if (hasBefore && known.has(key)) {
        const withoutSeen = ({ lastSeenTime, lastSeen, ...rest }: JsonFields) => rest;
        assert.deepEqual(withoutSeen(body.before ?? {}), withoutSeen(known.get(key) ?? {}), "as it was");
      }
      if (shape === "updated") assert.notDeepEqual(body.before, body.after);
      known.set(key, body.after);
      // They change a resource of which they say little.
      if (/Scim|Readme|AdvisoryEvent/.test(method)) known.clear();
    });
  }

  test("secrets of requests and codes of responses are nowhere: not in events, not in the database", async () => {
    assert.ok(secrets.length >= 5);
    assert.ok(secrets.some((secret) => secret.startsWith("cgscim_")));
    const shown = JSON.stringify(await listEvents(world.url, world.owner.token, world.root));
    const stored = await database.read();
    for (const text of [shown, stored]) {
      assert.ok(text.includes("login.example"), "control: what stands beside the secret is there");
      for (const secret of secrets) assert.ok(!text.includes(secret), "a secret");
    }
  });

  test("a body is shown to those who may list the kind at the subject, and to nobody else", async () => {
    const list = "role_bindings.list";
    const capabilities = [...new Set([...readers.values()].flat().map(({ name }) => name))].sort();
    const rows = (await readRows()).filter(({ rootUid, body }) => rootUid === world.root && body !== undefined);
    let [seen, unseen] = [0, 0];
    const check = async (caller: Somebody, scope: string, holds: readonly string[], at: string) => {
      const events = await listEvents(world.url, caller.token, scope);
      assert.ok(events.length > 0);
      for (const { subjectUid, type, body } of events) {
        const stored = rows.find((row) => row.subjectUid === subjectUid && row.type === type);
        const needed = stored?.body && readers.get(stored.body.type)?.map(({ name }) => name);
        const isBelow = subjectUid === at || subjectUid.startsWith(`${at}/`);
        const mayRead = needed !== undefined && isBelow && needed.every((one) => holds.includes(one));
        assert.equal(body !== undefined, mayRead, `${type} with ${holds.join()}`);
        if (body) seen++;
        else unseen++;
      }
    };
    for (const capability of capabilities) {
      const holds = [list, capability];
      await check(await world.caller(holds), world.root, holds, world.root);
    }
    await check(await world.caller(capabilities), world.root, capabilities, world.root);
    assert.ok(seen > 50 && unseen > 50, `${seen} ${unseen}`);
    // The right to list the kind at another group is not enough.
    const update = { group: { uid: world.child, description: "seen" } };
    assert.equal((await call("iam.v2.GroupsService/UpdateGroup", update, world.owner.token)).status, 200);
    const elsewhere = await world.caller([list]);
    const roleUid = await world.role(capabilities);
    for (const [groupUid, count] of [
      [await world.group(), 0],
      [world.child, 1],
    ] as const) {
      await world.write((tx) =>
        tx.table(roleBindingKind).insert({
          ...{ uid: randomIds.newUid(groupUid), groupUid, identityUid: elsewhere.uid, roleUid },
          ...{
            automatic: false,
            accepted: true,
            managedByUid: null,
            endTimeMs: null,
            pending: false,
            createTimeMs: 1,
            updateTimeMs: 1,
          },
        }),
      );
      const bodies = (await listEvents(world.url, elsewhere.token, world.root)).filter(({ body }) => {
        return body && readers.get(body.type)?.some((one) => one.name !== list);
      });
      assert.deepEqual(
        bodies.map(({ subjectUid }) => subjectUid),
        Array.from({ length: count }, () => groupUid),
      );
    }
    const foreign = await fetch(`${world.url}/audit/v1/events?scope=${world.root}`, {
      headers: { authorization: `Bearer ${world.foreignOwner.token}` },
    });
    assert.equal(foreign.status, 403);
  });

  test("one event by its id, and the stream, show bodies by the same rule", async () => {
    const reader = await world.caller(["role_bindings.list"]);
    const audit = async (path: string, { token }: { token: string }) =>
      (
        await fetch(`${world.url}/audit/v1${path}`, { headers: { authorization: `Bearer ${token}` } })
      ).json() as Promise<JsonFields>;
    const [event] = (await listEvents(world.url, world.owner.token, world.root)).filter(({ body }) =>
      body?.type.endsWith("Group"),
    );
    assert.ok(event);
    const full = await audit(`/events/${event.id}`, world.owner);
    assert.deepEqual(full.body, event.body);
    const { body: _, ...rest } = full;
    const lesser = await audit(`/events/${event.id}`, reader);
    const { remoteAddress, tokenId, sealed, sequence } = rest;
    // The row may have been sealed meanwhile.
    assert.deepEqual({ ...lesser, remoteAddress, tokenId, sealed, sequence }, rest);
    for (const [caller, isShown] of [
      [world.owner, true],
      [reader, false],
    ] as const) {
      const next = await tail(world.url, caller.token, world.root);
      const update = { group: { uid: world.child, description: `streamed to ${caller.uid}` } };
      assert.equal((await call("iam.v2.GroupsService/UpdateGroup", update, world.owner.token)).status, 200);
      const streamed = await next();
      assert.equal(streamed.subjectUid, world.child);
      assert.equal(streamed.body?.after?.description, isShown ? update.group.description : undefined);
    }
    // Any program computes the hash of the chain from what is shown.
    const rows = await readRows();
    const hashes = rows.map(({ bodyHash }) => bodyHash);
    const shown = createHash("sha256").update(canonicalize(dropEmpty(full.body as unknown as JsonFields)));
    assert.ok(hashes.includes(shown.digest("base64url")));
  });

  if (versionName === "v2beta1") testBounds(() => ({ world, readRows, call }));
}

interface Context {
  readonly world: IamWorld;
  readonly readRows: () => Promise<Row[]>;
  readonly call: (
    method: string,
    request: object,
    token: string,
  ) => Promise<{ status: number; text: string; json: JsonFields }>;
}

function testBounds(context: () => Context): void {
  test("a resource after the change is whole, and one before it up to 16 KiB", async () => {
    const { world, readRows, call } = context();
    const repo = "registry.v2beta1.ReposService";
    const created = await call(
      `${repo}/CreateRepo`,
      { parent: world.child, repo: { name: "large" } },
      world.owner.token,
    );
    assert.equal(created.status, 200, created.text);
    const uid = created.json.uid;
    const write = async (content: string) => {
      const { status, text } = await call(
        `${repo}/UpdateRepoReadme`,
        { repoReadme: { uid, content }, updateMask: "content" },
        world.owner.token,
      );
      assert.equal(status, 200, text);
      return (await readRows())[0]?.body ?? assert.fail();
    };
    const fitting = "x".repeat(MAX_PART_BYTES - canonicalize({ content: "", uid }).length);
    const large = `${fitting}y`;
    assert.equal((await write(fitting)).after?.content, fitting);
    const second = await write(large);
    assert.equal(second.before?.content, fitting, "16 KiB exactly");
    assert.equal(second.after?.content, large, "whole: the event is for customers");
    const third = await write("small");
    assert.equal(third.before, undefined);
    const sha256 = createHash("sha256")
      .update(canonicalize({ content: large, uid }))
      .digest("base64url");
    assert.deepEqual(third.beforeDigest, { fields: ["content", "uid"], sha256 });
    const [event] = await listEvents(world.url, world.owner.token, String(uid));
    assert.deepEqual(event?.body?.beforeDigest, third.beforeDigest);
  });

  test("a resource of no event is stored up to 16 KiB", async () => {
    const { world, readRows, call } = context();
    const charts = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ repo: `https://charts.example/${"p".repeat(300)}/${i}` }));
    const { json } = await call(
      "registry.Registry/CreateRepo",
      { parentId: world.child, repo: { name: "charts" } },
      world.owner.token,
    );
    const made = await call(
      "registry.Registry/CreateDeployment",
      { parentId: json.id, charts: charts(100) },
      world.owner.token,
    );
    assert.equal(made.status, 200, made.text);
    const body = (await readRows())[0]?.body;
    assert.equal(body?.after, undefined);
    assert.deepEqual(body?.afterDigest?.fields, ["charts", "createdAt", "id", "updatedAt"]);
    assert.match(body?.afterDigest?.sha256 ?? "", /^[\w-]{43}$/);
    const small = await call(
      "registry.Registry/UpdateDeployment",
      { repoId: json.id, charts: charts(1) },
      world.owner.token,
    );
    assert.equal(small.status, 200, small.text);
    const changed = (await readRows())[0]?.body;
    assert.ok(changed?.after && changed.beforeDigest);
  });

  test("a page of events ends before its bodies are too large", async () => {
    const { world } = context();
    const group = await world.group();
    const body = canonicalize({ after: { name: "x".repeat(300_000) }, salt: "s", type: `${PREFIX}iam.v2.Group` });
    await world.write(async (tx) => {
      for (let i = 0; i < 12; i++) {
        await tx.audit.append({
          ...{ rootUid: world.root, timeMs: 1_700_000_000_000 + i, type: "large", method: "m", subjectUid: group },
          ...{ actorUid: "", tokenId: "", requestId: String(i), remoteAddress: "", body },
        });
      }
    });
    const pages: number[] = [];
    for (let pageToken = "", i = 0; i < 20; i++) {
      const query = new URLSearchParams({ scope: group, subject: group, pageSize: "200", pageToken });
      const response = await fetch(`${world.url}/audit/v1/events?${query}`, {
        headers: { authorization: `Bearer ${world.owner.token}` },
      });
      const text = await response.text();
      assert.equal(response.status, 200, text);
      assert.ok(text.length < 2_000_000);
      const json = JSON.parse(text) as { events: { body?: object }[]; nextPageToken?: string };
      assert.ok(json.events.every((event) => event.body));
      pages.push(json.events.length);
      pageToken = json.nextPageToken ?? "";
      if (pageToken === "") break;
    }
    assert.deepEqual(pages, [4, 4, 4]);
  });
}

/** A database that tests read beside the store. */
async function newStorage() {
  if (process.env.TEST_ARBOR_DATABASE_URL === undefined) {
    const data = newDataDir();
    const files = ["arbor.db", "arbor.db-wal"];
    const read = async () => files.map((name) => readFileSync(join(data, name), "latin1")).join();
    return { settings: { data }, read };
  }
  const databaseUrl = await newDatabase();
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const read = () =>
    withClient(databaseUrl, async (client) => {
      const tables = await client.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'");
      let text = "";
      for (const { name } of tables.rows) {
        const { rows } = await client.query(`SELECT t::text AS row FROM "${name}" t`);
        text += rows.map(({ row }) => row).join("\n");
      }
      return text;
    });
  return { settings: { databaseUrl, masterKeyFile }, read };
}

/** Opens a stream that has begun; the function that it returns reads the next event, and ends the stream. */
async function tail(url: string, token: string, scope: string): Promise<() => Promise<ShownEvent>> {
  const controller = new AbortController();
  const response = await fetch(`${url}/audit/v1/events:tail?scope=${scope}`, {
    headers: { authorization: `Bearer ${token}` },
    signal: controller.signal,
  });
  assert.equal(response.status, 200);
  const reader = (response.body ?? assert.fail()).pipeThrough(new TextDecoderStream()).getReader();
  await reader.read();
  return async () => {
    for (let text = ""; ; ) {
      const { value = "", done } = await reader.read();
      text += value;
      const found = text.split("\n").find((line) => line.includes('"subjectUid"') && line.endsWith("}"));
      if (found !== undefined) {
        controller.abort();
        return JSON.parse(found).result.event as ShownEvent;
      }
      assert.ok(!done, "the stream ended");
    }
  };
}

interface ShownEvent {
  readonly id: string;
  readonly type: string;
  readonly subjectUid: string;
  readonly body?: StoredBody;
}

async function listEvents(url: string, token: string, scope: string): Promise<ShownEvent[]> {
  const found: ShownEvent[] = [];
  for (let pageToken = "", pages = 0; pages < 100; pages++) {
    const query = new URLSearchParams({ scope, startTime: "2020-01-01T00:00:00Z", pageSize: "200", pageToken });
    const response = await fetch(`${url}/audit/v1/events?${query}`, { headers: { authorization: `Bearer ${token}` } });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    const json = JSON.parse(text) as { events: ShownEvent[]; nextPageToken?: string };
    found.push(...json.events);
    pageToken = json.nextPageToken ?? "";
    if (pageToken === "") return found;
  }
  assert.fail("the list does not end");
}

function dropEmpty(body: JsonFields): JsonFields {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null && value !== undefined));
}
