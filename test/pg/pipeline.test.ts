// Transactions over a pipelined connection: what is sent without waiting, and what happens when a statement before fails.
// Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import pg from "pg";
import { ApiError } from "../../src/kernel/errors.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { openPg } from "../../src/store/pg/open.js";
import { groupRow, rootUid } from "../support/rows.js";
import { newDatabase, withClient } from "./databases.js";

const isUnavailable = (error: unknown) => error instanceof ApiError && error.code === Code.Unavailable;

type Query = (text: string) => Promise<unknown>;

/** Calls `replace` in place of each statement of all connections; it gets the function that sends it. */
function onQuery(
  t: TestContext,
  replace: (text: string, send: Query, client: pg.Client) => Promise<unknown>,
): () => void {
  const { query } = pg.Client.prototype;
  const mocked = t.mock.method(pg.Client.prototype, "query", function replaced(this: pg.Client, ...args: never[]) {
    const [first] = args as readonly unknown[];
    const text = typeof first === "string" ? first : String((first as { text?: unknown }).text);
    const send = (sent: string) =>
      query.apply(this, (sent === text ? args : [sent]) as never) as unknown as Promise<unknown>;
    return replace(text, send, this);
  } as never);
  return () => mocked.mock.restore();
}

/** Records when statements are sent and answered, by their first word. */
function record(t: TestContext): { readonly events: string[]; stop(): void } {
  const events: string[] = [];
  const stop = onQuery(t, (text, send) => {
    const name = text.split(" ")[0]?.toLowerCase();
    events.push(`send ${name}`);
    const result = send(text);
    const note = () => void events.push(`done ${name}`);
    result.then(note, note);
    return result;
  });
  return { events, stop };
}

async function openStore(t: TestContext) {
  const url = await newDatabase();
  const store = await openPg({ url, poolSize: 1 });
  t.after(() => store.close());
  // The connection is there, and has prepared nothing yet.
  await store.check();
  return { url, store };
}

describe("a transaction on PostgreSQL", () => {
  test("that reads sends BEGIN with its first statement, and its caller does not wait for COMMIT", async (t) => {
    const { store } = await openStore(t);
    const { events, stop } = record(t);
    await store.read(async (tx) => {
      await tx.settings.find("one");
      await tx.settings.find("two");
    });
    events.push("read");
    await store.read((tx) => tx.settings.find("one"));
    stop();
    const first = ["send begin", "send select", "done begin", "done select", "send select", "done select"];
    assert.deepEqual(events.slice(0, 9), [...first, "send commit", "read", "send begin"]);
    assert.ok(events.indexOf("done commit") > events.lastIndexOf("send select"), events.join(", "));
  });

  test("sends statements that its unit issues together without waiting between them", async (t) => {
    const { store } = await openStore(t);
    const { events, stop } = record(t);
    await store.read((tx) => Promise.all(["one", "two", "three"].map((name) => tx.settings.find(name))));
    stop();
    assert.deepEqual(events.slice(0, 5), ["send begin", "send select", "send select", "send select", "done begin"]);
  });

  test("that writes waits for its COMMIT, and sends a change after the response to BEGIN", async (t) => {
    const { store } = await openStore(t);
    const { events, stop } = record(t);
    await store.write((tx) => tx.settings.put("one", "1"));
    events.push("written");
    stop();
    const change = ["send begin", "done begin", "send insert", "done insert"];
    assert.deepEqual(events, [...change, "send commit", "done commit", "written"]);
  });
});

describe("where BEGIN fails", () => {
  const failing = (text: string) => (text.startsWith("BEGIN") ? "SELECT 1 / 0" : text);

  test("no change is stored, and no read has a result", async (t) => {
    const { url, store } = await openStore(t);
    const stop = onQuery(t, (text, send) => send(failing(text)));
    const isDivision = (error: unknown) => /division by zero/.test((error as Error).message);
    await assert.rejects(
      store.write((tx) => tx.settings.put("stored", "1")),
      isDivision,
    );
    await assert.rejects(
      store.write(async (tx) => {
        await tx.settings.find("stored");
        await tx.settings.put("stored", "2");
      }),
      isDivision,
    );
    // A statement behind one that waits for BEGIN is not sent before it.
    await assert.rejects(
      store.write((tx) => Promise.all([tx.settings.put("stored", "3"), tx.settings.put("stored", "4")])),
      isDivision,
    );
    await assert.rejects(
      store.read((tx) => tx.settings.find("stored")),
      isDivision,
    );
    stop();
    const { rows } = await withClient(url, (client) => client.query("SELECT * FROM settings WHERE name = 'stored'"));
    assert.deepEqual(rows, []);
    assert.equal(await store.read((tx) => tx.settings.find("stored")), undefined);
  });

  test("control: PostgreSQL stores a change that is sent right behind it", async (t) => {
    const client = new pg.Client({ connectionString: await newDatabase(), pipeline: true });
    await client.connect();
    t.after(() => client.end());
    const begun = assert.rejects(client.query(failing("BEGIN")));
    await client.query("INSERT INTO settings (name, value) VALUES ($1, $2)", ["stored", "1"]);
    await begun;
    await client.query("ROLLBACK");
    const { rows } = await client.query("SELECT value FROM settings WHERE name = 'stored'");
    assert.deepEqual(rows, [{ value: "1" }]);
  });

  test("because the connection is lost, the call is UNAVAILABLE and the next one has another connection", async (t) => {
    const { url, store } = await openStore(t);
    const stop = onQuery(t, async (text, send, client) => {
      if (!text.startsWith("BEGIN")) return send(text);
      const { processID } = client as unknown as { processID: number };
      await withClientOf(url, "SELECT pg_terminate_backend($1)", processID);
      await sleep(50);
      return send(text);
    });
    for (const run of [store.read, store.write]) {
      await assert.rejects(
        run((tx) => tx.settings.find("one")),
        isUnavailable,
      );
    }
    stop();
    assert.equal(await store.read((tx) => tx.settings.find("one")), undefined);
  });
});

describe("where a statement fails", () => {
  test("those sent behind it do not hide why: a conflict is one whichever is awaited", async (t) => {
    const { store } = await openStore(t);
    const row = groupRow(rootUid(1));
    await store.write((tx) => tx.table(groupKind).insert(row));
    const again = store.write(
      async (tx) => {
        await tx.settings.find("any");
        const insert = tx.table(groupKind).insert(row);
        insert.catch(() => {});
        const behind = [1, 2].map(async () => tx.table(groupKind).find(row.uid));
        for (const one of behind) one.catch(() => {});
        await behind[1];
      },
      { deadlineMs: Date.now() + 300 },
    );
    await assert.rejects(again, (error) => error instanceof ApiError && error.code === Code.Aborted);
    assert.ok(await store.read((tx) => tx.table(groupKind).find(row.uid)));
  });

  test("a unit that goes on all the same is not acknowledged", async (t) => {
    const { store } = await openStore(t);
    const row = groupRow(rootUid(1));
    await store.write((tx) => tx.table(groupKind).insert(row));
    const written = store.write(
      async (tx) => {
        await tx.settings.put("lost", "1");
        await tx
          .table(groupKind)
          .insert(row)
          .catch(() => {});
      },
      { deadlineMs: Date.now() + 300 },
    );
    await assert.rejects(written, (error) => error instanceof ApiError && error.code === Code.Aborted);
    assert.equal(await store.read((tx) => tx.settings.find("lost")), undefined);
  });

  test("which is the COMMIT of a read, it harms neither its caller nor the next transaction", async (t) => {
    const { store } = await openStore(t);
    await store.write((tx) => tx.settings.put("one", "1"));
    const stop = onQuery(t, (text, send) => send(text === "COMMIT" ? "ROLLBACK; SELECT 1 / 0" : text));
    assert.equal(await store.read((tx) => tx.settings.find("one")), "1");
    stop();
    assert.equal(await store.read((tx) => tx.settings.find("one")), "1");
  });

  test("because the connection is lost at the COMMIT of a write, its outcome is unknown, and it is UNAVAILABLE", async (t) => {
    const { url, store } = await openStore(t);
    const stop = onQuery(t, async (text, send, client) => {
      if (text !== "COMMIT") return send(text);
      const { processID } = client as unknown as { processID: number };
      await withClientOf(url, "SELECT pg_terminate_backend($1)", processID);
      await sleep(50);
      return send(text);
    });
    await assert.rejects(
      store.write((tx) => tx.settings.put("one", "1")),
      isUnavailable,
    );
    stop();
    assert.equal(await store.read((tx) => tx.settings.find("one")), undefined);
  });
});

test("a change that a unit does not wait for is never part of another transaction", async (t) => {
  const { store } = await openStore(t);
  let late: Promise<void> | undefined;
  const failed = store.write((tx) => {
    late = tx.settings.put("late", "1");
    late.catch(() => {});
    throw new RangeError("the unit fails at once");
  });
  await assert.rejects(failed, /the unit fails at once/);
  await assert.rejects(late ?? Promise.resolve(), /was not awaited by its unit of work/);
  await store.write((tx) => tx.settings.put("other", "1"));
  assert.equal(await store.read((tx) => tx.settings.find("late")), undefined);
});

test("a read that fails while its statements run keeps its connection until they have ended", async (t) => {
  const { url, store } = await openStore(t);
  await withClient(url, async (client) => {
    await client.query("BEGIN; LOCK TABLE settings IN ACCESS EXCLUSIVE MODE");
    const failed = store.read((tx) => {
      tx.settings.find("locked").catch(() => {});
      throw new RangeError("fails");
    });
    let hasEnded = false;
    const ended = assert.rejects(failed, RangeError).then(() => {
      hasEnded = true;
    });
    await sleep(100);
    assert.equal(hasEnded, false);
    await client.query("ROLLBACK");
    await ended;
  });
});

function withClientOf(url: string, text: string, value: unknown): Promise<unknown> {
  return withClient(url, (client) => client.query({ text, values: [value] }));
}
