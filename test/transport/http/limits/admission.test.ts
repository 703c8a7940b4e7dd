// When requests are handled, which come first, and which are refused.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLogger } from "../../../../src/telemetry/logger.js";
import { Admission, findCallersTimeout, type LateReason } from "../../../../src/transport/http/limits/admission.js";
import { defaultLimits, type Limits } from "../../../../src/transport/http/limits/limits.js";
import { standStill } from "../../../support/stand-still.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));

class Log {
  readonly ran: string[] = [];
  readonly refused: string[] = [];
  readonly warnings: string[] = [];
}

interface Given {
  readonly costMs?: number;
  readonly maxWaitMs?: number;
  /** Whose wait is over then. */
  readonly lateReason?: LateReason;
  readonly isHealth?: boolean;
  readonly unread?: number;
  /** What the request awaits before it is over. */
  readonly work?: () => Promise<void>;
}

function put(admission: Admission, log: Log, key: string, given: Given = {}): void {
  const {
    costMs = 0,
    maxWaitMs = Number.POSITIVE_INFINITY,
    isHealth = false,
    unread = 0,
    work,
    lateReason = "max_wait",
  } = given;
  const request = {
    key,
    startByMs: performance.now() + maxWaitMs,
    lateReason,
    run() {
      log.ran.push(key);
      standStill(costMs);
      void work?.();
    },
    refuse: (reason: string) => void log.refused.push(`${key} ${reason}`),
    onError: assert.fail,
    countUnread: () => unread,
  };
  admission.enter(request, isHealth);
}

function start(limits: Partial<Limits> = {}) {
  const log = new Log();
  const logger = createLogger("warn", { write: (line) => log.warnings.push(line) });
  return { admission: new Admission({ limits: { ...defaultLimits, ...limits }, logger }), log };
}

async function untilOver(log: Log, count: number): Promise<number> {
  let turns = 0;
  while (log.ran.length + log.refused.length < count) {
    assert.ok(++turns < 5_000, `only ${log.ran.length} ran and ${log.refused.length} were refused`);
    await turn();
  }
  return turns;
}

describe("a turn", () => {
  it("begins after the callback that queued the request", async () => {
    const { admission, log } = start();
    for (const key of ["a", "b"]) put(admission, log, key);
    await Promise.resolve();
    assert.deepEqual(log.ran, []);
    await untilOver(log, 2);
    assert.deepEqual(log.ran, ["a", "b"]);
  });

  it("takes requests for some milliseconds, so that the event loop reads its sockets", async () => {
    const { admission, log } = start();
    for (let i = 0; i < 100; i++) put(admission, log, "a", { costMs: 1 });
    const turns = await untilOver(log, 100);
    assert.ok(turns > 10, `all were taken within ${turns} turns`);
  });

  it("takes one request, however much it costs", async () => {
    const { admission, log } = start();
    for (let i = 0; i < 4; i++) put(admission, log, "a", { costMs: 20 });
    assert.ok((await untilOver(log, 4)) >= 3);
  });

  it("charges a request for what its promises do", async () => {
    const { admission, log } = start();
    const spend = (ms: number) => async () => {
      await Promise.resolve();
      await Promise.resolve();
      standStill(ms);
    };
    for (let i = 0; i < 50; i++) put(admission, log, "dear", { work: spend(2) });
    for (let i = 0; i < 50; i++) put(admission, log, "cheap", { work: spend(0.2) });
    await untilOver(log, 100);
    const last = log.ran.lastIndexOf("cheap");
    const dear = log.ran.slice(0, last).filter((key) => key === "dear").length;
    // In turn without charges all 50 would come before it. A busy machine makes cheap ones look dear.
    assert.ok(dear < 40, `${dear} dear ones before the last cheap one`);
  });

  it("goes on after a request that throws", async () => {
    const { admission, log } = start();
    const told: unknown[] = [];
    const error = new Error("broken");
    const run = () => {
      throw error;
    };
    const broken = {
      key: "a",
      startByMs: Infinity,
      lateReason: "timeout",
      run,
      refuse: assert.fail,
      countUnread: () => 0,
    } as const;
    admission.enter({ ...broken, onError: (caught) => told.push(caught) }, false);
    put(admission, log, "a");
    await untilOver(log, 1);
    assert.deepEqual(told, [error]);
  });
});

describe("health checks", () => {
  it("run in the next turn, whatever waits before them", async () => {
    const { admission, log } = start();
    for (let i = 0; i < 500; i++) put(admission, log, "busy", { costMs: 1 });
    await turn();
    put(admission, log, "check", { isHealth: true });
    await turn();
    await turn();
    assert.ok(log.ran.includes("check"));
    assert.ok(log.ran.length < 100);
    await untilOver(log, 501);
  });

  it("are never refused, and a flood of them delays its own address", async () => {
    const { admission, log } = start({ waitingRequests: 10 });
    for (let i = 0; i < 200; i++) put(admission, log, "flood", { isHealth: true, costMs: 1, maxWaitMs: 0 });
    await turn();
    const before = log.ran.length;
    put(admission, log, "honest", { isHealth: true });
    await turn();
    await turn();
    assert.ok(log.ran.indexOf("honest") - before < 20);
    await untilOver(log, 201);
    assert.deepEqual(log.refused, []);
  });
});

describe("a request is refused", () => {
  it("when it has waited too long, and others of its address with it; another address is served", async () => {
    const { admission, log } = start();
    for (let i = 0; i < 40; i++) put(admission, log, "many", { costMs: 10, maxWaitMs: 100 });
    put(admission, log, "few");
    await untilOver(log, 41);
    assert.ok(log.ran.indexOf("few") < 5, `it ran after ${log.ran.indexOf("few")} others`);
    assert.ok(log.refused.length > 10, `${log.refused.length} were refused`);
    assert.deepEqual(new Set(log.refused), new Set(["many max_wait"]));
    assert.equal(admission.counts.max_wait, log.refused.length);
    assert.match(log.warnings.join(), /calls were refused, because too many wait/);
  });

  it("when its caller's own timeout is over, which is no refusal of the service", async () => {
    const { admission, log } = start();
    put(admission, log, "slow", { costMs: 20 });
    put(admission, log, "slow", { maxWaitMs: 10, lateReason: "timeout" });
    await untilOver(log, 2);
    assert.deepEqual(log.refused, ["slow timeout"]);
    assert.deepEqual(new Set(Object.values(admission.counts)), new Set([0]));
    assert.deepEqual(log.warnings, []);
  });

  it("control: not when it may wait longer", async () => {
    const { admission, log } = start();
    for (let i = 0; i < 40; i++) put(admission, log, "many", { costMs: 10, maxWaitMs: 10_000 });
    await untilOver(log, 40);
    assert.deepEqual(log.refused, []);
  });

  it("when too many wait: the newest of the address with most", async () => {
    const { admission, log } = start({ waitingRequests: 20 });
    for (let i = 0; i < 30; i++) put(admission, log, "many");
    put(admission, log, "few");
    assert.equal(log.refused.length, 11);
    assert.deepEqual(new Set(log.refused), new Set(["many queue_full"]));
    await untilOver(log, 31);
    assert.ok(log.ran.includes("few"));
    assert.equal(admission.counts.queue_full, 11);
  });

  it("when the bodies of those that wait are too large: the newest of whose are largest", async () => {
    const { admission, log } = start({ unreadBytes: 1_000_000 });
    for (let i = 0; i < 300; i++) put(admission, log, "large", { unread: 10_000, costMs: 1 });
    for (let i = 0; i < 100; i++) put(admission, log, "small", { unread: 10, costMs: 0.1 });
    await untilOver(log, 400);
    assert.ok(log.refused.length >= 190, `${log.refused.length} were refused`);
    assert.deepEqual(new Set(log.refused), new Set(["large unread_bytes"]));
  });
});

it("an admitted request that waits again is not refused", async () => {
  const { admission, log } = start({ waitingRequests: 5 });
  admission.waitAgain({ key: "a" }, () => log.ran.push("again"));
  await untilOver(log, 1);
  assert.deepEqual(log.ran, ["again"]);
});

// By a clock of its own, which calls and turns move: on a busy machine turns last as long as the machine pleases.
it("while connections wait to be accepted, half of the time is for them", async (t) => {
  let nowMs = 1;
  t.mock.method(performance, "now", () => nowMs);
  const work = async () => {
    nowMs += 2;
  };
  const shareWithoutCalls = async (onTurn: (admission: Admission) => void) => {
    const { admission, log } = start();
    for (let i = 0; i < 80; i++) put(admission, log, "a", { work });
    let idleMs = 0;
    const startMs = nowMs;
    while (log.ran.length < 80) {
      const [before, beganMs] = [log.ran.length, nowMs];
      onTurn(admission);
      await turn();
      nowMs += 0.1;
      assert.ok(nowMs - startMs < 10_000, `only ${log.ran.length} were taken`);
      if (log.ran.length === before) idleMs += nowMs - beganMs;
    }
    return idleMs / (nowMs - startMs);
  };
  const share = await shareWithoutCalls((admission) => admission.noteConnection());
  assert.ok(share > 0.4 && share < 0.6, `turns without calls took ${share} of the time`);
  const without = await shareWithoutCalls(() => {});
  assert.ok(without < 0.05, `without new connections ${without} of the time`);
});

describe("requests of an address", () => {
  it("are as many as it may have, and as many health checks beyond", () => {
    const { admission } = start({ requestsPerAddress: 2 });
    const open = () => admission.open("a");
    open();
    open();
    assert.ok(admission.mayServe("a", false));
    open();
    assert.ok(!admission.mayServe("a", false));
    assert.ok(admission.mayServe("a", true));
    open();
    open();
    assert.ok(!admission.mayServe("a", true));
    for (let i = 0; i < 4; i++) admission.close("a");
    assert.ok(admission.mayServe("a", false));
    assert.ok(admission.mayServe("b", false));
  });
});

it("a caller says over every protocol how long it waits", () => {
  const cases = [
    [{}, Infinity],
    [{ "grpc-timeout": "2S" }, 2_000],
    [{ "grpc-timeout": "1M" }, 60_000],
    [{ "connect-timeout-ms": "300" }, 300],
    [{ "x-server-timeout": "0.5" }, 500],
    [{ "grpc-timeout": "2S", "x-server-timeout": "1" }, 1_000],
    [{ "grpc-timeout": "x" }, Infinity],
    [{ "grpc-timeout": "0S" }, 0],
    [{ "connect-timeout-ms": "1e3" }, Infinity],
    [{ "x-server-timeout": "-1" }, Infinity],
  ] as const;
  for (const [headers, expected] of cases) assert.equal(findCallersTimeout(headers), expected);
});
