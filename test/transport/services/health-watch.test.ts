// Watchers of the health: many of them cost little, and no caller may open all of them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { createConnection } from "node:net";
import { after, before, describe, it, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { defaultLimits } from "../../../src/transport/http/limits/limits.js";
import { startService } from "../../e2e/process.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { chooseScale } from "../../support/scale.js";
import { tempDir } from "../../support/temp-dir.js";

const { openStreamsPerAddress: perAddress, openStreamsPerConnection: perConnection } = defaultLimits;
const RESOURCE_EXHAUSTED = "8";

/** An open watch, or the status it was rejected with. */
interface Watch {
  readonly stream: ClientHttp2Stream;
  /** Resolves with `open` at the first message, else with the gRPC status. */
  readonly outcome: Promise<string>;
}

// Every address of 127.0.0.0/8 is one of this machine.
function connectFrom(url: string, localAddress = "127.0.0.1"): ClientHttp2Session {
  const port = Number(new URL(url).port);
  const session = connect(url, {
    createConnection: () => createConnection({ host: "127.0.0.1", port, localAddress }),
  });
  session.on("error", () => {});
  return session;
}

function watch(session: ClientHttp2Session, forwarded?: string): Watch {
  const stream = session.request({
    ":method": "POST",
    ":path": "/grpc.health.v1.Health/Watch",
    "content-type": "application/grpc",
    te: "trailers",
    ...(forwarded !== undefined && { "x-forwarded-for": forwarded }),
  });
  stream.on("error", () => {});
  const outcome = new Promise<string>((resolve) => {
    const status = (fields: { readonly "grpc-status"?: unknown }) => {
      if (fields["grpc-status"] !== undefined) resolve(String(fields["grpc-status"]));
    };
    stream.on("response", status);
    stream.on("trailers", status);
    stream.on("data", () => resolve("open"));
    stream.on("close", () => resolve("closed"));
  });
  // A message without fields: the service as a whole.
  stream.end(Buffer.alloc(5));
  return { stream, outcome };
}

async function watchTimes(count: number, session: ClientHttp2Session, forwarded?: string): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, () => watch(session, forwarded).outcome));
}

const allOpen = (count: number) => Array<string>(count).fill("open");

test("two thousand watchers cost a server less than a twentieth of a processor", async (t) => {
  const service = await startService(tempDir(), "--no-access-log");
  const sessions: ClientHttp2Session[] = [];
  try {
    for (let address = 1; address <= 10; address++) {
      for (let i = 0; i < 4; i++) {
        const session = connectFrom(service.url, `127.0.0.${address}`);
        sessions.push(session);
        assert.deepEqual(await watchTimes(50, session), allOpen(50));
      }
    }
    // What opening them cost is over.
    await delay(1_000);
    const [cpuMs, startMs] = [cpuMsOf(service.pid), performance.now()];
    await delay(chooseScale(5_000, 2_000));
    const share = (cpuMsOf(service.pid) - cpuMs) / (performance.now() - startMs);
    t.diagnostic(`2000 watchers: ${(share * 100).toFixed(1)} % of a processor`);
    assert.ok(share < 0.05, `${(share * 100).toFixed(1)} % of a processor`);
  } finally {
    for (const session of sessions) session.destroy();
    await service.stop();
  }
});

describe("a service that peers reach by themselves", () => {
  let service: Harness;
  const sessions: ClientHttp2Session[] = [];
  const open = (address?: string) => {
    const session = connectFrom(service.url, address);
    sessions.push(session);
    return session;
  };
  before(async () => {
    service = await startHarness();
  });
  after(async () => {
    for (const session of sessions) session.destroy();
    await service.stop();
  });

  it("limits the watchers of a connection, and admits another when one has gone", async () => {
    const session = open("127.0.1.1");
    const first = watch(session);
    assert.equal(await first.outcome, "open");
    assert.deepEqual(await watchTimes(perConnection - 1, session), allOpen(perConnection - 1));
    assert.equal(await watch(session).outcome, RESOURCE_EXHAUSTED);
    assert.equal(await watch(open("127.0.1.1")).outcome, "open", "the limit is the connection's");
    first.stream.close();
    const deadline = performance.now() + 5_000;
    while ((await watch(session).outcome) !== "open") {
      assert.ok(performance.now() < deadline, "the room of a watcher that has gone is lost");
      await delay(20);
    }
  });

  it("limits the watchers of an address over all its connections, and not those of others", async () => {
    for (let left = perAddress; left > 0; left -= perConnection) {
      const count = Math.min(left, perConnection);
      assert.deepEqual(await watchTimes(count, open("127.0.1.2")), allOpen(count));
    }
    assert.equal(await watch(open("127.0.1.2")).outcome, RESOURCE_EXHAUSTED);
    assert.equal(await watch(open("127.0.1.3")).outcome, "open");
  });

  it("releases the watchers of a lost connection", async () => {
    for (let round = 0; round < 3; round++) {
      for (let left = perAddress; left > 0; left -= perConnection) {
        const session = connectFrom(service.url, "127.0.1.4");
        const deadline = performance.now() + 5_000;
        while ((await watch(session).outcome) !== "open") {
          assert.ok(performance.now() < deadline, "the room of a lost connection is lost");
          await delay(20);
        }
        await watchTimes(Math.min(left, perConnection) - 1, session);
        session.destroy();
      }
    }
  });

  it("ignores X-Forwarded-For", async () => {
    const session = open("127.0.1.5");
    await watchTimes(perConnection, session, "192.0.2.1");
    assert.equal(await watch(session, "192.0.2.2").outcome, RESOURCE_EXHAUSTED);
  });
});

describe("a service behind a trusted proxy", () => {
  it("counts by the forwarded address, an IPv6 network as one, however few connections there are", async () => {
    const service = await startHarness({ trustedProxies: "127.0.0.1" });
    const sessions = Array.from({ length: 6 }, () => connectFrom(service.url));
    try {
      const [one, two, three, four, five, six] = sessions as [
        ClientHttp2Session,
        ClientHttp2Session,
        ClientHttp2Session,
        ClientHttp2Session,
        ClientHttp2Session,
        ClientHttp2Session,
      ];
      const many = Array.from({ length: 90 }, (_, i) => watch(one, `192.0.2.${i}`).outcome);
      assert.deepEqual(await Promise.all(many), allOpen(90), "a connection of the proxy has no share of its own");
      const half = perAddress / 2;
      for (const [session, address] of [
        [two, "2001:db8:0:1::1"],
        [three, "2001:db8:0:1:ffff::2"],
      ] as const) {
        assert.deepEqual(await watchTimes(half - 10, session, address), allOpen(half - 10));
      }
      assert.deepEqual(await watchTimes(20, four, "2001:db8:0:1:1:2:3:4"), allOpen(20));
      assert.equal(await watch(five, "2001:db8:0:1::ffff").outcome, RESOURCE_EXHAUSTED);
      assert.equal(await watch(six, "2001:db8:0:2::1").outcome, "open");
    } finally {
      for (const session of sessions) session.destroy();
      await service.stop();
    }
  });
});

function cpuMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
