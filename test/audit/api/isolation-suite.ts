// A reader of one organisation, or of one group, gets not one byte of the rows outside of it. All of those carry markers,
// and everything that the service sends is searched for them.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AuditService,
  type Event,
  ListEventsRequestSchema,
  type ListEventsResponse,
} from "#gen/arbor/audit/v1/audit_pb.js";
import { auditV1, createEventIds } from "../../../src/audit/audit-v1.js";
import { createEventFeed, createEventStreams } from "../../../src/audit/event-feed.js";
import { connectTo, staticToken } from "../../../src/client/index.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { createPageTokens } from "../../../src/kernel/page-token.js";
import { UnaryCall } from "../../../src/pipeline/call.js";
import { createInvoke } from "../../../src/pipeline/invoke.js";
import { createMethodTable, type UnaryEntry } from "../../../src/pipeline/method-table.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { type RawClient, rawClients, requestOf } from "../../contract/iam-clients.js";
import { createRandom } from "../../support/openapi/random.js";
import { identityRow } from "../../support/rows.js";
import { chooseScale } from "../../support/scale.js";
import { type EventWorld, listAll, startEventWorld, timeAt } from "./event-world.js";

const FILTERS = chooseScale(200, 80);
/** Seconds of the rows, and some after them. */
const SECONDS = Array.from({ length: 100 }, (_, second) => second);
const { listEvents, getEvent } = AuditService.method;

/** The markers of one place: texts that the rows of no other place have. */
interface Marked {
  readonly texts: readonly string[];
  readonly subjects: readonly string[];
  readonly actor: string;
  readonly type: string;
  readonly requestId: string;
}

/** Registers the tests. */
export function isolationSuite(): void {
  describe("the audit log of others", () => {
    let world: EventWorld;
    let clients: readonly RawClient[];
    /** Rows of the readers' own place, of the rest of their organisation, and of another organisation. */
    let own: Marked;
    let above: Marked;
    let foreign: Marked;
    let ofRoot: string;
    let ofChild: string;
    /** Page tokens and ids of the other organisation. */
    let foreignTokens: string[];
    let foreignIds: string[];

    before(async () => {
      world = await startEventWorld();
      clients = rawClients(world.url);
      own = await mark("own", world.root, [world.child, world.grandchild]);
      above = await mark("above", world.root, [world.root, await world.group(), ""]);
      foreign = await mark("foreign", world.foreign, [world.foreign, await world.group(world.foreign), ""]);
      ofRoot = (await world.createBound("viewer")).token;
      ofChild = (await world.createBound("viewer", world.child)).token;
      const rest = world.audit(world.foreignOwner.token);
      foreignIds = (await listAll(rest, { scope: world.foreign })).map(({ id }) => id);
      foreignTokens = [];
      for (const query of [`scope=${world.foreign}`, `scope=${world.foreign}&type=${foreign.type}`]) {
        const { json } = await rest("GET", `/events?pageSize=1&${query}`);
        foreignTokens.push(String(json?.nextPageToken));
      }
    });
    after(async () => {
      for (const client of clients) client.close();
      await world.stop();
    });

    // Writes 30 rows of which every text is a marker but for the uids of what is the reader's own.
    async function mark(name: string, rootUid: string, subjects: readonly string[]): Promise<Marked> {
      const actor = randomIds.newUid();
      const [actorName, type, method] = [`${name}-actor`, `${name}.type.v1`, `/${name}.Service/Method`];
      const [requestId, tokenId] = [`${name}-request`, `${name}-token`];
      const remoteAddress = `${name}-address`;
      await world.write((tx) => tx.table(identityKind).insert(identityRow(actor, { name: actorName })));
      const made = Array.from({ length: 30 }, (_, i) => i % subjects.length);
      const under = subjects.map((subject) => (subject === "" ? "" : randomIds.newUid(subject)));
      for (const i of made) {
        const subjectUid = under[i] ?? "";
        await world.add({ rootUid, subjectUid, actorUid: actor, type, method, requestId, tokenId, remoteAddress });
      }
      const uids = under.filter((uid) => uid !== "").map((uid) => uid.slice(uid.lastIndexOf("/") + 1));
      const texts = [...uids, actor, actorName, type, method, requestId, tokenId, remoteAddress];
      return { texts, subjects: under, actor, type, requestId };
    }

    // What the request itself says comes back in errors, and tells its sender nothing.
    function leaksIn(bytes: string, request: object, ...hidden: readonly Marked[]): string[] {
      let rest = bytes;
      for (const sent of Object.values(request)) if (typeof sent === "string" && sent) rest = rest.replaceAll(sent, "");
      return hidden.flatMap(({ texts }) => texts).filter((text) => rest.includes(text));
    }

    function randomRequest(seed: number, tokens: readonly string[]): MessageInitShape<typeof ListEventsRequestSchema> {
      const random = createRandom(seed);
      const marked = [own, above, foreign];
      const scopes = [world.root, world.root, world.child, world.child, world.grandchild, world.foreign];
      const maybe = <T>(values: readonly T[], share = 0.3) => (random.chance(share) ? random.pick(values) : undefined);
      const seconds = [random.pick(SECONDS), random.pick(SECONDS)].sort((a, b) => a - b);
      const timestamp = (second: number) => ({ seconds: BigInt(Date.parse(timeAt(second)) / 1_000), nanos: 0 });
      const given = {
        scope: random.pick(scopes),
        subject: maybe(marked.flatMap(({ subjects }) => subjects)),
        actor: maybe(marked.map(({ actor }) => actor)),
        type: maybe(marked.map(({ type }) => type)),
        requestId: maybe(marked.map(({ requestId }) => requestId)),
        startTime: maybe([timestamp(seconds[0] ?? 0), timestamp(0)], 0.8),
        endTime: maybe([timestamp(seconds[1] ?? 0), timestamp(200)]),
        pageSize: maybe([1, 10, 200]),
        pageToken: maybe(tokens, 0.2),
        orderBy: maybe(["time asc", "time desc"]),
      };
      return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    }

    it(`is in no answer to ${FILTERS} random filters, by any protocol`, async () => {
      let shown = 0;
      const tokens = [...foreignTokens];
      for (let seed = 1; seed <= FILTERS; seed++) {
        const request = randomRequest(seed, tokens);
        for (const [i, token] of [ofRoot, ofChild].entries()) {
          const client = clients[(seed + i) % clients.length] as RawClient;
          const response = await client.call(listEvents, requestOf(listEvents, request), token);
          const hidden = token === ofRoot ? [foreign] : [foreign, above];
          const what = `${client.name} ${JSON.stringify(request, bigints)} ${response.code}`;
          assert.deepEqual(leaksIn(response.bytes, request, ...hidden), [], what);
          assert.match(response.code, /^(OK|INVALID_ARGUMENT|PERMISSION_DENIED)$/, what);
          if (leaksIn(response.bytes, request, own).length > 0) shown++;
        }
      }
      // The filters do find rows: an empty response hides everything.
      assert.ok(shown > FILTERS / 8, `${shown} answers with rows`);
    });

    it("would be found by the same search, if calls were not authorized at their scope", async () => {
      const { store } = world.harness.app.installation;
      const identityUid = (await world.createBound("viewer", world.child)).uid;
      const principal = { identityUid, tokenId: "t", issuedAt: 1e10, expiresAt: 2e10 };
      const service = auditV1({
        bodyReaders: new Map(),
        keys: { at: async () => ({ listAuditJwks: () => [] }) },
        ...{ store, clock: Date.now, stopping: new AbortController().signal, streams: createEventStreams() },
        tokens: createPageTokens(() => [{ id: "00".repeat(8), secret: Buffer.alloc(32) }]),
        eventIds: createEventIds(Buffer.alloc(16)),
        eventFeed: createEventFeed({ store, onProblem: () => {} }),
      });
      const entry = createMethodTable([service]).get("/arbor.audit.v1.AuditService/ListEvents") as UnaryEntry;
      const pipeline = { store, clock: Date.now, errorDomain: "test", onInternalError: () => {} };
      const invoke = createInvoke(pipeline);
      const unchecked: UnaryEntry = { ...entry, auth: { mode: "guarded", capabilities: [] } };
      const list = async (method: UnaryEntry, scope: string) => {
        const call = new UnaryCall(inbound, method.desc, Date.now());
        const request = create(ListEventsRequestSchema, { scope });
        const { events } = (await invoke(method, call, principal, request)) as ListEventsResponse;
        return JSON.stringify(events, bigints);
      };
      for (const [scope, marked] of [[world.foreign, foreign] as const, [world.root, above] as const]) {
        await assert.rejects(list(entry, scope), /permission_denied/);
        assert.ok(leaksIn(await list(unchecked, scope), {}, marked).length >= 4);
      }
    });

    it("is there for its own readers", async () => {
      const bytes = JSON.stringify(await listAll(world.audit(world.foreignOwner.token), { scope: world.foreign }));
      assert.deepEqual(leaksIn(bytes, {}, foreign), foreign.texts);
    });

    it("has no ids that differ from those of missing events", async () => {
      assert.ok(foreignIds.length >= 30);
      const missing = createEventIds(Buffer.alloc(16)).format(1);
      for (const token of [ofRoot, ofChild]) {
        for (const client of clients) {
          const get = async (id: string) => {
            const { code, bytes } = await client.call(getEvent, requestOf(getEvent, { id }), token);
            // Connect encodes details, of which `bytes` has the decoded form as well.
            return { code, bytes: bytes.replaceAll(id, "ID").replaceAll(/"value":"[^"]*"/g, "") };
          };
          const absent = await get(missing);
          assert.equal(absent.code, "NOT_FOUND");
          for (const id of foreignIds.slice(0, 5)) assert.deepEqual(await get(id), absent);
        }
      }
      // Those of the rest of the organisation, for the reader of a group.
      const [event] = await listAll(world.audit(ofRoot), { scope: world.root, type: above.type });
      const path = `/events/${event?.id}`;
      assert.equal((await world.audit(ofRoot)("GET", path)).status, 200);
      assert.equal((await world.audit(ofChild)("GET", path)).status, 404);
    });

    it("is not reached with page tokens of others", async () => {
      for (const [i, pageToken] of foreignTokens.entries()) {
        const filters = i === 0 ? {} : { type: foreign.type };
        const query = (scope: string) =>
          `/events?${new URLSearchParams({ scope, pageToken, pageSize: "1", ...filters })}`;
        assert.equal((await world.audit(ofRoot)("GET", query(world.root))).status, 400);
        assert.equal((await world.audit(ofRoot)("GET", query(world.foreign))).status, 403);
        assert.equal((await world.audit(world.foreignOwner.token)("GET", query(world.foreign))).status, 200);
      }
    });

    it("is in no stream", async () => {
      const ending = new AbortController();
      const tail = async (token: string, scope: string, lastRequest: string) => {
        const connection = connectTo({ baseUrl: world.url, token: staticToken(token) });
        const events: Event[] = [];
        try {
          for await (const { event } of connection
            .client(AuditService)
            .tailEvents({ scope }, { signal: ending.signal })) {
            if (event === undefined) continue;
            events.push(event);
            if (event.requestId === lastRequest && events.length > 6) return JSON.stringify(events, bigints);
          }
        } finally {
          connection.close();
        }
        throw new Error("the stream ended");
      };
      const collect = async (token: string, filter: object, signal: AbortSignal) => {
        const connection = connectTo({ baseUrl: world.url, token: staticToken(token) });
        const events: Event[] = [];
        try {
          for await (const { event } of connection.client(AuditService).tailEvents(filter, { signal })) {
            if (event !== undefined) events.push(event);
          }
        } catch (error) {
          if (!signal.aborted) throw error;
        } finally {
          connection.close();
        }
        return events;
      };
      await assert.rejects(tail(ofRoot, world.foreign, ""), /permission_denied/);
      await assert.rejects(tail(ofChild, world.root, ""), /permission_denied/);
      const reading = Promise.all([
        tail(ofRoot, world.root, "last"),
        tail(ofChild, world.child, "last"),
        tail(world.foreignOwner.token, world.foreign, "last"),
      ]);
      // Streams whose filters name what others have, until the others end.
      const filtered = [
        [ofRoot, { scope: world.root, type: foreign.type }, [foreign]],
        [ofRoot, { scope: world.root, actor: foreign.actor }, [foreign]],
        [ofRoot, { scope: world.root, actor: foreign.actor, type: foreign.type }, [foreign]],
        [ofChild, { scope: world.child, type: above.type }, [foreign, above]],
        [ofChild, { scope: world.child, actor: above.actor }, [foreign, above]],
        [ofRoot, { scope: world.root, type: above.type, actor: above.actor }, [foreign]],
        [world.foreignOwner.token, { scope: world.foreign, type: foreign.type, actor: foreign.actor }, [above]],
      ] as const;
      const filteredEnd = new AbortController();
      const collected = filtered.map(([token, filter]) => collect(token, filter, filteredEnd.signal));
      let done = false;
      reading.then(
        () => (done = true),
        () => (done = true),
      );
      // Rows are written until each reader has had all.
      for (let i = 0; i < 60 && !done; i++) {
        for (const [marked, rootUid] of [[foreign, world.foreign] as const, [above, world.root] as const]) {
          for (const subjectUid of marked.subjects) {
            await world.add({
              rootUid,
              subjectUid,
              actorUid: marked.actor,
              type: marked.type,
              requestId: marked.requestId,
            });
          }
        }
        await world.add({ rootUid: world.foreign, requestId: "last" });
        await world.add({ rootUid: world.root, subjectUid: world.child, requestId: "last" });
        await sleep(100);
      }
      if (!done) ending.abort();
      filteredEnd.abort();
      const counts: number[] = [];
      for (const [i, events] of (await Promise.all(collected)).entries()) {
        const [, filter, marked] = filtered[i] ?? assert.fail();
        assert.deepEqual(leaksIn(JSON.stringify(events, bigints), filter, ...marked), [], JSON.stringify(filter));
        counts.push(events.length);
      }
      // The control: where the filter names what the caller may see, there are events.
      assert.deepEqual(
        counts.map((count) => count > 0),
        [false, false, false, false, false, true, true],
      );
      const [root, child, theirs] = await reading;
      assert.deepEqual(leaksIn(root, {}, foreign), []);
      assert.deepEqual(leaksIn(child, {}, foreign, above), []);
      assert.ok(leaksIn(root, {}, above).length >= 4);
      assert.ok(leaksIn(theirs, {}, foreign).length >= 4);
    });
  });
}

const inbound = {
  protocol: "grpc" as const,
  fieldSpelling: "json" as const,
  method: "POST",
  url: "/",
  requestId: "request",
  header: () => undefined,
  headers: () => new Headers(),
};

function bigints(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
