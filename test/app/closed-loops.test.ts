// Callers with one call at a time each are not refused, however many they are: each waits for the others. Health checks of
// another address do not. `bench/closed-loops.ts` measures the same with the defaults against a process of its own.
import assert from "node:assert/strict";
import { Agent, type OutgoingHttpHeaders, request } from "node:http";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Harness, startHarness } from "../support/harness.js";

const CONNECTIONS = 256;
const ROUNDS = 2;
const LISTED = 100;
/** The clients run in the process of the service, and other tests beside it: the default would be too short at times. */
const MAX_WAIT_S = 60;

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
}

let service: Harness;
let root: string;
let token: string;
const calls: Readonly<Record<string, (i: number) => Call>> = {
  GET: () => ({ method: "GET", path: `/iam/v2beta1/groups/${root}` }),
  list: () => ({ method: "GET", path: `/iam/v2beta1/groups?pageSize=${LISTED}&uidp.childrenOf=${root}` }),
  create: (i) => ({
    method: "POST",
    path: `/iam/v2beta1/groups/${root}`,
    body: JSON.stringify({ name: `group ${i} ${Math.random()}` }),
  }),
};

async function start(maxWait = MAX_WAIT_S): Promise<void> {
  service = await startHarness({ quotas: "groups=100000" }, { values: { maxWait } });
  ({ group: root, token } = await service.organisation("loops"));
  const agent = new Agent({ keepAlive: true, maxSockets: 4, localAddress: "127.0.0.2" });
  await Promise.all(Array.from({ length: LISTED }, (_, i) => send(calls.create?.(i) as Call, agent)));
  agent.destroy();
}

function send({ method, path, body }: Call, agent: Agent): Promise<number> {
  const headers: OutgoingHttpHeaders = { authorization: `Bearer ${token}` };
  if (body !== undefined) Object.assign(headers, { "content-type": "application/json", "content-length": body.length });
  return new Promise((resolve, reject) => {
    const req = request(service.url + path, { method, headers, agent }, (res) => {
      res.resume();
      res.on("end", () => resolve(res.statusCode ?? 0));
    });
    req.on("error", reject).end(body);
  });
}

/** Sends calls from so many connections, one at a time on each, and counts the statuses. */
async function runLoops(callOf: (i: number) => Call): Promise<{ statuses: Map<number, number>; longestMs: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS, localAddress: "127.0.0.2" });
  const statuses = new Map<number, number>();
  let sent = 0;
  let longestMs = 0;
  const loop = async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const startMs = performance.now();
      const status = await send(callOf(sent++), agent);
      longestMs = Math.max(longestMs, performance.now() - startMs);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, loop));
  agent.destroy();
  return { statuses, longestMs };
}

/** Checks the health on a new connection each time, until it is stopped; returns the longest wait in milliseconds. */
function watchHealth(): () => Promise<number> {
  let isOver = false;
  let longestMs = 0;
  const watch = async () => {
    while (!isOver) {
      const startMs = performance.now();
      const agent = new Agent({ localAddress: "127.0.0.1" });
      assert.equal(await send({ method: "GET", path: "/readyz" }, agent), 200);
      longestMs = Math.max(longestMs, performance.now() - startMs);
      await delay(20);
    }
  };
  const watching = watch();
  return async () => {
    isOver = true;
    await watching;
    return longestMs;
  };
}

describe(`${CONNECTIONS} connections with one call each`, () => {
  before(() => start());
  after(() => service.stop());

  for (const [name, callOf] of Object.entries(calls)) {
    it(`${name}: none is refused, and health checks do not wait for them`, async () => {
      const stopWatch = watchHealth();
      const { statuses, longestMs } = await runLoops(callOf);
      const checkMs = await stopWatch();
      assert.deepEqual([...statuses], [[200, CONNECTIONS * ROUNDS]]);
      assert.ok(checkMs < longestMs, `a health check took ${checkMs} ms, and the longest call ${longestMs}`);
    });
  }
});

describe("the control: calls may wait 2 ms", () => {
  before(() => start(0.002));
  after(() => service.stop());

  for (const [name, callOf] of Object.entries(calls)) {
    it(`${name}: some are refused`, async () => {
      const { statuses } = await runLoops(callOf);
      assert.ok((statuses.get(503) ?? 0) > 0, JSON.stringify([...statuses]));
      assert.deepEqual(new Set(statuses.keys()), new Set([200, 503]));
    });
  }
});
