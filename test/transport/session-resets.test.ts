// Resets of streams that a peer spreads over several sessions: they count together, sessions that did not take part go on,
// and other addresses notice nothing.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type FrameConnection, grpcFields, headersFrame, openFrames, resetBurst } from "../hostile/support/frames.js";
import { openHttp2, type Running, rawHttp2, SERVICE, startServer } from "./harness.js";

const GET = `${SERVICE}/GetGroup`;
const PAUSE_MS = 300;
/** Below what one session may reset. */
const FEW = 40;

describe("resets of an address", () => {
  let server: Running;
  before(async () => {
    server = await startServer({ limits: { sessionPauseMs: PAUSE_MS } });
  });
  after(() => server.stop());

  const open: FrameConnection[] = [];
  after(() => {
    for (const connection of open) connection.close();
  });

  /** Opens a session of an address. */
  async function connect(address: string): Promise<FrameConnection> {
    const connection = openFrames(server.url, address);
    open.push(connection);
    await connection.ready;
    return connection;
  }

  /** Resets a few streams on each of some new sessions; how many were told to stop. */
  async function resetOn(sessions: number, address: string, fields: Readonly<Record<string, string>> = {}) {
    const all = await Promise.all(Array.from({ length: sessions }, () => connect(address)));
    for (const connection of all) {
      connection.send(resetBurst({ ...grpcFields(server.url, GET), ...fields }, FEW));
      await sleep(10);
    }
    const count = () => all.filter(({ goaway }) => goaway !== undefined).length;
    // A busy machine takes longer to stop them, and none is stopped later where none is stopped at all.
    for (let i = 0; i < 50 && (i < 3 || (count() > 0 && count() < sessions - 1)); i++) await sleep(100);
    return count();
  }

  const call = (connection: FrameConnection, id: number) =>
    new Promise<boolean>((resolve) => {
      const timer = setTimeout(resolve, 3_000, false);
      connection.onFrame = ({ stream }) => {
        if (stream !== id) return;
        clearTimeout(timer);
        resolve(true);
      };
      connection.send(headersFrame(id, grpcFields(server.url, GET), true));
    });

  it("few on one session are nobody's concern", async () => {
    assert.equal(await resetOn(2, "127.0.0.3"), 0);
  });

  it("count for all of its sessions together, and not for another address or an honest session of its own", async () => {
    const [honest, other] = await Promise.all([connect("127.0.0.4"), connect("127.0.0.5")]);
    assert.ok(await call(honest, 1));
    // The first hundred are below the limit.
    const stopped = await resetOn(6, "127.0.0.4");
    assert.ok(stopped >= 3, `${stopped} of 6 sessions were told to stop`);
    assert.ok(await call(honest, 3));
    assert.ok(await call(other, 1));
    assert.deepEqual([honest.goaway, other.goaway], [undefined, undefined]);

    // Sessions of another address begin at once, those of this one after each other.
    const times = await Promise.all(
      ["127.0.0.5", "127.0.0.4", "127.0.0.4"].map(async (address) => {
        const startMs = performance.now();
        assert.ok(await call(await connect(address), 1), address);
        return performance.now() - startMs;
      }),
    );
    const [elsewhere = 0, ...own] = times;
    const [first = 0, second = 0] = own.sort((a, b) => a - b);
    assert.ok(first >= PAUSE_MS * 0.9 && second >= PAUSE_MS * 1.9 && elsewhere < first, times.join());
  });

  it("do not count where the deadline of the caller may have passed", async () => {
    assert.equal(await resetOn(6, "127.0.0.6", { "grpc-timeout": "5m" }), 0);
  });

  it("a session that goes on after it was told to stop is cut", async () => {
    const connection = await connect("127.0.0.7");
    connection.send(headersFrame(1, grpcFields(server.url, GET)));
    for (let i = 0; i < 3 && connection.goaway === undefined; i++) {
      connection.send(resetBurst(grpcFields(server.url, GET), 3 * FEW, 3 + i * 6 * FEW));
      await sleep(30);
    }
    assert.notEqual(connection.goaway, undefined);
    // Control: one that sends no more keeps its open stream for a while.
    await sleep(400);
    assert.equal(connection.isClosed, false);
    const fields = { ...grpcFields(server.url, GET), "x-padding": "x".repeat(12_000) };
    const many = Array.from({ length: 20 }, (_, i) => headersFrame(10_001 + 2 * i, fields, true));
    for (let i = 0; i < 10 && !connection.isClosed; i++) {
      connection.send(...many);
      await sleep(50);
    }
    await sleep(300);
    assert.equal(connection.isClosed, true);
  });

  it("a caller that waits for its session is served, over any client", async () => {
    const session = openHttp2(server.url);
    const { headers } = await rawHttp2(session, { ":path": GET, "content-type": "application/grpc" }, Buffer.alloc(5));
    assert.equal(headers[":status"], 200);
    session.destroy();
  });
});
