// EventsService: who may call it, the state of a delivery, what is not delivered, and the stream of events.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { EventsService } from "#gen/arbor/events/v1/events_pb.js";
import { randomIds } from "../../src/kernel/ids.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import type { EventDeliveryRow } from "../../src/store/tables/events.js";
import { type RawClient, rawClients, requestOf } from "../contract/iam-clients.js";
import { type Rest, type RestResponse, restAs } from "../contract/rest.js";
import { type IamWorld, startIamWorld } from "../iam/iam-world.js";
import { waitUntil } from "../support/wait-until.js";

const LIST = "subscriptions.list";
const CREATE = "subscriptions.create";
const { getState, suspend, resume, listDeliveries, redeliver, test: testMethod } = EventsService.method;

let world: IamWorld;
let clients: readonly RawClient[];
let owner: Rest;
before(async () => {
  world = await startIamWorld();
  clients = rawClients(world.url);
  owner = events(world.owner.token);
});
after(async () => {
  for (const client of clients) client.close();
  await world.stop();
});

function events(token?: string): Rest {
  return restAs(world.url, token, "/events/v1");
}

async function subscribe(group = world.child): Promise<string> {
  const { status, json, text } = await owner("POST", `/subscriptions/${group}`, { sink: "https://sink.invalid/x" });
  assert.equal(status, 200, text);
  return String(json?.id);
}

function ok({ status, json, text }: RestResponse): Readonly<Record<string, unknown>> {
  assert.equal(status, 200, text);
  return json ?? {};
}

function refuses({ json, text }: RestResponse, code: number, message: RegExp): void {
  assert.equal(json?.code, code, text);
  assert.match(String(json?.message), message);
}

const newestType = async () => (await world.write((tx) => tx.audit.listNewest(1)))[0]?.type;

describe("the rights at EventsService", () => {
  it("are those of lists for reads and of creations for changes, at the group, over every protocol", async () => {
    const uid = await subscribe();
    const [reader, writer] = [await world.caller([LIST]), await world.caller([CREATE], world.child)];
    const denied = "PERMISSION_DENIED";
    const callers: readonly (readonly [token: string | undefined, reads: string, changes: string])[] = [
      [undefined, "UNAUTHENTICATED", "UNAUTHENTICATED"],
      [(await world.harness.identity()).token, denied, denied],
      [world.foreignOwner.token, denied, denied],
      [(await world.caller(["role_bindings.list", "groups.list"])).token, denied, denied],
      [(await world.caller([LIST, CREATE], world.grandchild)).token, denied, denied],
      [reader.token, "OK", denied],
      [writer.token, denied, "OK"],
      [world.owner.token, "OK", "OK"],
    ];
    for (const client of clients) {
      for (const [token, reads, changes] of callers) {
        const call = async (method: Parameters<typeof requestOf>[0], request: object) =>
          (await client.call(method, requestOf(method, request as never), token)).code;
        const where = `${client.name} ${reads} ${changes}`;
        assert.equal(await call(getState, { uid }), reads, where);
        assert.equal(await call(listDeliveries, { subscription: uid }), reads, where);
        for (const method of [suspend, resume]) assert.equal(await call(method, { uid }), changes, where);
        assert.equal(
          await call(redeliver, {
            subscription: uid,
            selection: { case: "since", value: { seconds: 4_102_444_800n } },
          }),
          changes,
          where,
        );
      }
    }
    for (const [token, , changes] of callers) {
      if (changes === "OK") continue;
      for (const client of clients)
        assert.equal((await client.call(testMethod, requestOf(testMethod, { uid }), token)).code, changes);
    }
  });

  it("say NOT_FOUND only to those who may read the group", async () => {
    const uid = `${world.child}/0123456789abcdef`;
    assert.equal((await owner("GET", `/subscriptions/${uid}/state`)).status, 404);
    assert.equal((await owner("POST", `/subscriptions/${uid}:test`, {})).status, 404);
    assert.equal((await owner("POST", `/subscriptions/${uid}:suspend`, {})).status, 404);
    assert.equal((await owner("GET", `/deliveries?subscription=${uid}`)).status, 404);
    assert.equal((await events(world.foreignOwner.token)("GET", `/subscriptions/${uid}/state`)).status, 403);
  });
});

describe("the state of a delivery", () => {
  it("is live, is suspended and resumed, and leaves a row in the audit log for each change", async () => {
    const uid = await subscribe();
    const state = ok(await owner("GET", `/subscriptions/${uid}/state`));
    const { status, suspension, waiting, dead } = state;
    assert.deepEqual([state.uid, status, suspension, waiting, dead], [uid, ...LIVE, "0", "0"]);
    assert.equal(state.failingSince, undefined);

    const stopped = ok(await owner("POST", `/subscriptions/${uid}:suspend`, {}));
    assert.deepEqual([stopped.status, stopped.suspension], ["STATUS_SUSPENDED", "SUSPENSION_REQUESTED"]);
    assert.equal(await newestType(), "arbor.events.v1.EventsService.Suspend");
    const rows = async () => (await world.write((tx) => tx.audit.listNewest(1_000))).length;
    const before = await rows();
    ok(await owner("POST", `/subscriptions/${uid}:suspend`, {}));
    ok(await owner("GET", `/subscriptions/${uid}/state`));
    assert.equal(await rows(), before);

    const resumed = ok(await owner("POST", `/subscriptions/${uid}:resume`, {}));
    assert.deepEqual([resumed.status, resumed.suspension], LIVE);
    assert.equal(await newestType(), "arbor.events.v1.EventsService.Resume");
  });

  // Over REST a value that is not set is left out.
  const LIVE = ["STATUS_LIVE", undefined];
});

describe("events that are not delivered", () => {
  let uid: string;
  let seqs: readonly number[];
  before(async () => {
    uid = await subscribe(world.grandchild);
    // Nothing is sent, so that what the test stores stays.
    ok(await owner("POST", `/subscriptions/${uid}:suspend`, {}));
    for (const name of ["a", "b", "c", "d"]) {
      const { status } = await world.owner.rest("PATCH", `/groups/${world.grandchild}`, { name });
      assert.equal(status, 200);
    }
    seqs = await untilSealed(4);
    await world.write(async (tx) => {
      for (const [i, seq] of seqs.entries()) await tx.eventDeliveries.put(deliveryRow(seq, i % 2 === 1));
    });
  });

  const deliveryRow = (seq: number, isDead: boolean): EventDeliveryRow => ({
    ...{ subscriptionUid: uid, seq, subjectUid: world.grandchild, sinceMs: 1_000, attempts: 3 },
    ...{ nextTimeMs: null, deadTimeMs: isDead ? Date.now() : null },
    ...{ lastTimeMs: 2_000, lastStatus: 503, lastError: "the sink answered 503" },
  });

  /** The numbers in the chain of the newest changes of the group. */
  async function untilSealed(count: number): Promise<number[]> {
    for (const deadline = Date.now() + 20_000; Date.now() < deadline; ) {
      const rows = await world.write((tx) =>
        tx.auditEvents.list({
          ...{ rootUid: world.root, by: { column: "subjectUid", value: world.grandchild }, startMs: 0 },
          ...{ endMs: 8e15, descending: true, after: undefined, limit: count, matches: undefined, assertInTime() {} },
        }),
      );
      const found = rows.rows.flatMap(({ seq }) => (seq === null ? [] : [seq]));
      if (found.length === count) return found.sort((a, b) => a - b);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return assert.fail("the rows were not sealed");
  }

  const list = async (query = "") =>
    ok(await owner("GET", `/deliveries?subscription=${uid}${query}`)) as {
      deliveries: readonly Record<string, unknown>[];
      nextPageToken?: string;
    };

  it("are listed in the order of the log, in pages, also by their status", async () => {
    const { deliveries } = await list();
    assert.deepEqual(
      deliveries.map(({ sequence, status }) => [Number(sequence), status]),
      seqs.map((seq, i) => [seq, i % 2 === 1 ? "STATUS_DEAD" : "STATUS_WAITING"]),
    );
    const [first = {}] = deliveries;
    assert.match(String(first.id), /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.deepEqual(
      [first.type, first.subject, first.attempts, first.lastHttpStatus, first.lastError, first.lastAttemptTime],
      [
        "dev.chainguard.api.iam.group.updated.v1",
        world.grandchild,
        3,
        503,
        "the sink answered 503",
        "1970-01-01T00:00:02.000Z",
      ],
    );
    const dead = await list("&status=STATUS_DEAD");
    assert.deepEqual(
      dead.deliveries.map(({ sequence }) => Number(sequence)),
      [seqs[1], seqs[3]],
    );
    const ids: unknown[] = [];
    for (let token = ""; ; ) {
      const page = await list(`&pageSize=3&pageToken=${encodeURIComponent(token)}`);
      ids.push(...page.deliveries.map(({ id }) => id));
      token = page.nextPageToken ?? "";
      if (token === "") break;
      refuses(await owner("GET", `/deliveries?subscription=${uid}&status=1&pageToken=${token}`), 3, /pageToken/);
    }
    assert.deepEqual(
      ids,
      deliveries.map(({ id }) => id),
    );
    refuses(await owner("GET", `/deliveries?subscription=${uid}&pageSize=-1`), 3, /pageSize/);
    const counted = ok(await owner("GET", `/subscriptions/${uid}/state`));
    assert.deepEqual([counted.waiting, counted.dead], ["2", "2"]);
  });

  it("are delivered again one by one, and none of another subscription", async () => {
    const send = (body: object) => owner("POST", "/deliveries:redeliver", body);
    refuses(await send({ subscription: uid }), 3, /selection must be/);
    refuses(await send({ subscription: uid, eventId: "x" }), 3, /id of an event/);
    refuses(await send({ subscription: uid, eventId: "0".repeat(32) }), 3, /id of an event/);
    const [, one] = (await list()).deliveries;
    const both = { subscription: uid, eventId: one?.id, since: "2026-01-01T00:00:00Z" };
    assert.equal((await send(both)).status, 400);
    const foreign = await subscribe(await world.group());
    refuses(await send({ subscription: foreign, eventId: one?.id }), 5, /Not found/);
  });

  it("go when the subscription goes", async () => {
    assert.equal((await owner("DELETE", `/subscriptions/${uid}`)).status, 200);
    assert.equal((await owner("GET", `/subscriptions/${uid}/state`)).status, 404);
    const stored = await world.write((tx) => tx.eventDeliveries.list(uid, { afterSeq: 0, limit: 10 }));
    assert.deepEqual(stored, []);
  });
});

describe("the stream of events", () => {
  interface Shown {
    readonly id: string;
    readonly type: string;
    readonly subject: string;
    readonly source: string;
    readonly extensions: Readonly<Record<string, string>>;
    readonly data: string;
  }

  /** Opens a stream that has begun. The function that it returns reads the next event. */
  async function tail(token: string, query = `scope=${world.root}`) {
    const stop = new AbortController();
    const response = await fetch(`${world.url}/events/v1/events:tail?${query}`, {
      headers: { authorization: `Bearer ${token}` },
      signal: stop.signal,
    });
    assert.equal(response.status, 200, response.ok ? "" : await response.text());
    const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
    body.on("error", () => {});
    const lines = createInterface({ input: body })[Symbol.asyncIterator]();
    assert.ok((await lines.next()).value);
    return {
      stop: () => stop.abort(),
      /** The events until the stream fails, and its error. */
      async readToEnd() {
        const events: Shown[] = [];
        for (;;) {
          const { value } = await lines.next();
          const { result, error } = JSON.parse(value) as { result?: { event?: Shown }; error?: { code?: number } };
          if (result?.event !== undefined) events.push(result.event);
          if (error !== undefined) return { events, code: error.code };
        }
      },
      async next(): Promise<Shown> {
        for (;;) {
          const { value } = await lines.next();
          const { result, error } = JSON.parse(value) as { result?: { event?: Shown }; error?: unknown };
          assert.equal(error, undefined);
          if (result?.event !== undefined) return result.event;
        }
      },
    };
  }

  const rename = async (uid: string, name: string) =>
    assert.equal((await world.owner.rest("PATCH", `/groups/${uid}`, { name })).status, 200);

  it("shows events as they are delivered, with the id of the audit log", async () => {
    const { next, stop } = await tail((await world.caller([LIST, "groups.list"])).token);
    await rename(world.child, "renamed");
    const event = await next();
    stop();
    assert.equal(event.type, "dev.chainguard.api.iam.group.updated.v1");
    assert.equal(event.subject, world.child);
    assert.match(event.source, /\/iam\/v1\/groups$/);
    const { group, actor, audience, bodytype } = event.extensions;
    assert.deepEqual(
      [group, actor, audience, bodytype],
      [world.child, world.owner.uid, "customer", "chainguard.platform.iam.v2beta1.Group"],
    );
    const { actor: who, body } = JSON.parse(event.data);
    assert.deepEqual([who.subject, body.uid, body.name], [world.owner.uid, world.child, "renamed"]);
    const audit = restAs(world.url, world.owner.token, "/audit/v1");
    const found = ok(await audit("GET", `/events/${event.id.replaceAll("-", "")}`));
    assert.equal(found.subjectUid, world.child);
  });

  it("shows each row to those alone who may list its kind at its subject", async () => {
    const { uid, token } = await world.caller([LIST, "roles.list"]);
    const role = await world.role(["groups.list"], world.grandchild);
    await world.write((tx) => tx.table(roleBindingKind).insert(binding(uid, role, world.grandchild)));
    const { next, stop } = await tail(token);
    await rename(world.child, "hidden");
    await rename(world.grandchild, "shown");
    assert.equal((await next()).subject, world.grandchild);
    const { status, json } = await world.owner.rest("POST", `/roles/${world.child}`, {
      name: "some",
      capabilities: ["CAP_IAM_GROUPS_LIST"],
    });
    assert.equal(status, 200);
    assert.equal((await next()).subject, json?.uid);
    stop();
  });

  const binding = (identityUid: string, roleUid: string, groupUid: string) => ({
    ...{ uid: `${groupUid}/00000000000000ff`, groupUid, identityUid, roleUid },
    ...{ automatic: false, accepted: false, pending: false, managedByUid: null, endTimeMs: null },
    ...{ createTimeMs: 1_000, updateTimeMs: 1_000 },
  });

  it("ends with the rights that it rests on, and shows nothing after that", async () => {
    const { uid, token } = await world.caller(["groups.list"], world.grandchild);
    const row = { ...binding(uid, await world.role([LIST]), world.root), uid: randomIds.newUid(world.root) };
    await world.write((tx) => tx.table(roleBindingKind).insert(row));
    const { readToEnd } = await tail(token);
    const endTimeMs = Date.now() + 1_000;
    await world.write((tx) => tx.table(roleBindingKind).setEnd(row.uid, endTimeMs, endTimeMs));
    await rename(world.grandchild, "before");
    const read = readToEnd();
    await waitUntil(() => Date.now() > endTimeMs + 50);
    await rename(world.grandchild, "after");
    const { events, code } = await read;
    assert.equal(code, 7);
    assert.ok(
      events.every(({ data }) => !JSON.stringify(data).includes('"after"')),
      JSON.stringify(events),
    );
  });

  it("shows what lies in its scope and matches its filters", async () => {
    const { token } = world.owner;
    const uid = await subscribe();
    const whole = await tail(token, `scope=${world.child}`);
    const below = await tail(token, `scope=${world.child}&subject=${world.grandchild}`);
    const created = await tail(token, `scope=${world.child}&type=dev.chainguard.api.iam.group.created.v1`);
    await rename(world.root, "outside");
    // In the audit log, but no event.
    ok(await owner("POST", `/subscriptions/${uid}:suspend`, {}));
    await rename(world.child, "other");
    await rename(world.grandchild, "match");
    const { json } = await world.owner.rest("POST", `/groups/${world.child}`, { name: "new" });
    const firsts = [await whole.next(), await below.next(), await created.next()];
    assert.deepEqual(
      firsts.map(({ subject, type }) => [subject, type.split(".").at(-2)]),
      [
        [world.child, "updated"],
        [world.grandchild, "updated"],
        [json?.uid, "created"],
      ],
    );
    whole.stop();
    below.stop();
    created.stop();
  });

  it("needs subscriptions.list at its scope, and a subject within it", async () => {
    const codeOf = async (token: string | undefined, query: string) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const response = await fetch(`${world.url}/events/v1/events:tail?${query}`, { headers });
      await response.body?.cancel();
      return response.status;
    };
    const scope = `scope=${world.root}`;
    assert.equal(await codeOf(undefined, scope), 401);
    assert.equal(await codeOf((await world.caller(["role_bindings.list", "groups.list"])).token, scope), 403);
    assert.equal(await codeOf((await world.caller([LIST], world.child)).token, scope), 403);
    assert.equal(await codeOf(world.foreignOwner.token, scope), 403);
    assert.equal(await codeOf(world.owner.token, `${scope}&subject=${world.foreign}`), 400);
  });
});
