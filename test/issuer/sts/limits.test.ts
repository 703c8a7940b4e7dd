// Only failures count against an address: valid callers are never delayed.
import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { after, before, describe, it } from "node:test";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { createFailureLimiter } from "../../../src/issuer/sts/failure-limiter.js";
import { notFound, permissionDenied, unavailable } from "../../../src/kernel/errors.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { addressKey } from "../../../src/kernel/ip-address.js";
import { rawClients, requestOf } from "../../contract/iam-clients.js";
import { chooseScale } from "../../support/scale.js";
import { startStopwatch } from "../../support/stopwatch.js";
import { queryOf } from "./ask.js";
import { type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";

const AT_ONCE = 200;
const WINDOW_S = 4;
/** Several times the failure limit of a window. */
const GOOD = chooseScale(10_000, 500);

let world: ExchangeWorld;
let identity: string;
const agent = new Agent({ keepAlive: true });

before(async () => {
  world = await startExchangeWorld();
  identity = await world.workload("ci");
});
after(async () => {
  agent.destroy();
  await world.stop();
});

interface Answered {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

/** An exchange from an address of this machine's own choice. */
function from(localAddress: string, bearer: string, uid = identity): Promise<Answered> {
  const path = `/sts/exchange?${queryOf({ aud: world.url, identity: uid })}`;
  const options = { localAddress, path, agent, headers: { authorization: `Bearer ${bearer}` } };
  return new Promise((resolve, reject) => {
    const req = request(world.url, options, (res) => {
      let text = "";
      res.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      res.on("end", () => resolve({ status: res.statusCode ?? 0, retryAfter: res.headers["retry-after"], text }));
    });
    req.on("error", reject).end();
  });
}

/** Sends that many of them, some at a time, and counts the outcomes. */
async function many(count: number, atATime: number, send: () => Promise<Answered>): Promise<Map<number, Answered[]>> {
  const statuses = new Map<number, Answered[]>();
  let left = count;
  const worker = async () => {
    while (left-- > 0) {
      const answered = await send();
      statuses.set(answered.status, [...(statuses.get(answered.status) ?? []), answered].slice(-1_000));
    }
  };
  await Promise.all(Array.from({ length: atATime }, worker));
  return statuses;
}

describe("exchanges", () => {
  it("that succeed are never limited", async () => {
    const bearer = world.token({ sub: "ci" });
    let good = 0;
    const statuses = await many(GOOD, 16, async () => {
      const answered = await from("127.0.0.1", bearer);
      if (answered.status === 200) good++;
      return answered;
    });
    assert.deepEqual([[...statuses.keys()], good], [[200], GOOD]);
  });

  it("that are rejected slow their address down, and valid ones pass", async () => {
    const [good, bad] = [world.token({ sub: "ci" }), world.token({ sub: "somebody else" })];
    // Of names of its own: what one name does slows down that name alone.
    const names = Array.from({ length: 50 }, () => randomIds.newUid(world.root));
    let next = 0;
    const spray = () => from("127.0.0.2", bad, names[next++ % names.length]);
    // As many as it takes: on a machine that is busy the window may end before it is full.
    let full: Answered | undefined;
    for (let i = 0; i < 10 && full === undefined; i++) {
      await many(AT_ONCE, 8, spray);
      const flood = await Promise.all(Array.from({ length: 60 }, spray));
      full = flood.find(({ status }) => status === 429);
    }
    assert.ok(full, "a full queue rejects");
    assert.ok(Number(full.retryAfter) >= 1 && Number(full.retryAfter) <= WINDOW_S, full.retryAfter);
    const { code, message, details } = JSON.parse(full.text) as { code: number; message: string; details: object[] };
    assert.deepEqual([code, message], [8, "Resource exhausted: too many refused requests"]);
    assert.match(JSON.stringify(details), /RetryInfo","retryDelay":"[0-3](?:\.\d+)?s"/);
    for (const other of ["127.0.0.1", "127.0.0.3"]) {
      assert.equal((await from(other, bad)).status, 403);
      assert.equal((await from(other, good)).status, 200);
    }
    const elapsedMs = startStopwatch();
    assert.equal((await from("127.0.0.2", good)).status, 200, "a good token of the same address waits, and passes");
    assert.ok(elapsedMs() < 3_000, `${elapsedMs()} ms`);
  });

  it("count together for every reason and over all protocols", async () => {
    const { exchange } = SecurityTokenService.method;
    const clients = rawClients(world.url);
    const request = requestOf(exchange, { aud: [world.url], identity });
    const wrong = [
      [request, world.token({ sub: "x" })],
      [request, "garbage"],
      [requestOf(exchange, { identity }), world.token({ sub: "ci" })],
    ] as const;
    const counts = new Map<string, number>();
    const one = async (i: number) => {
      const [message, bearer] = wrong[i % wrong.length] ?? wrong[0];
      const { code } = (await clients[i % clients.length]?.call(exchange, message, bearer)) ?? {};
      counts.set(String(code), (counts.get(String(code)) ?? 0) + 1);
    };
    for (let round = 0; round < 10 && !counts.has("RESOURCE_EXHAUSTED"); round++) {
      for (let i = 0; i < 100; i += 10) await Promise.all(Array.from({ length: 10 }, (_, j) => one(i + j)));
      await Promise.all(Array.from({ length: 100 }, (_, i) => one(i)));
    }
    assert.deepEqual([...counts.keys()].sort(), [
      "INVALID_ARGUMENT",
      "PERMISSION_DENIED",
      "RESOURCE_EXHAUSTED",
      "UNAUTHENTICATED",
    ]);
    for (const client of clients) client.close();
  });

  it("do not count when it is their issuer that fails", async () => {
    const issuer = "http://127.0.0.1:1";
    const uid = await world.assumable({ claimMatch: { issuer, subject: "ci" } });
    const bearer = world.token({ iss: issuer, sub: "ci" });
    const statuses = await many(AT_ONCE + 50, 4, () => from("127.0.0.4", bearer, uid));
    assert.deepEqual([...statuses.keys()], [503]);
    assert.equal((await from("127.0.0.4", world.token({ sub: "ci" }))).status, 200);
  });
});

describe("a failure limiter", () => {
  const reject = () => {
    throw permissionDenied("this");
  };
  const outcome = async (work: Promise<unknown>) =>
    work.then(
      () => "done",
      (error: Error) => error.message.split(":")[0],
    );

  it("counts failures for every key, and other errors for none", async () => {
    const { guard } = createFailureLimiter({ points: 2, seconds: 60 });
    assert.equal(await outcome(guard(["a", "b"], reject)), "Permission denied");
    assert.equal(await outcome(guard(["a"], () => Promise.reject(unavailable("now")))), "Unavailable");
    assert.equal(await outcome(guard(["a"], () => Promise.reject(new TypeError("broken")))), "broken");
    assert.equal(
      await outcome(guard(["b", "c"], () => Promise.reject(notFound({ displayName: "x", type: "x" }, "")))),
      "Not found",
    );
    for (const keys of [["b"], ["c", "b"], ["b", "a"]]) {
      assert.equal(await outcome(guard(keys, () => "good")), "Resource exhausted", keys.join());
    }
    for (const keys of [["a"], ["c"], []]) assert.equal(await outcome(guard(keys, () => "good")), "done", keys.join());
  });

  it("ends", async (t) => {
    const { guard } = createFailureLimiter({ points: 1, seconds: 1 });
    await outcome(guard(["a"], reject));
    assert.equal(await outcome(guard(["a"], () => 1)), "Resource exhausted");
    const nowMs = performance.now();
    t.mock.method(performance, "now", () => nowMs + 1_000);
    assert.equal(await outcome(guard(["a"], () => 1)), "done");
  });
});

describe("addresses that count as one", () => {
  const cases: readonly [one: string | undefined, other: string | undefined, same: boolean][] = [
    ["192.0.2.1", "192.0.2.1", true],
    ["192.0.2.1", "192.0.2.2", false],
    ["192.0.2.1", "::ffff:192.0.2.1", true],
    ["192.0.2.1", "::FFFF:192.0.2.1", true],
    ["192.0.2.1", "::ffff:192.0.2.2", false],
    ["2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true],
    ["2001:db8:1:2::1", "2001:DB8:0001:2::9", true],
    ["2001:db8:1:2::1", "2001:db8:1:3::1", false],
    ["2001:db8::1", "2001:db8:0:0:5::", true],
    ["2001:db8::1", "2001:db8:0:1::1", false],
    ["::1", "::2", true],
    ["::1", "1::1", false],
    ["::1", "127.0.0.1", false],
    [undefined, undefined, true],
    [undefined, "127.0.0.1", false],
  ];
  for (const [one, other, same] of cases) {
    it(`${one} and ${other}: ${same ? "yes" : "no"}`, () => {
      assert.equal(addressKey(one) === addressKey(other), same, `${addressKey(one)}, ${addressKey(other)}`);
    });
  }
});
