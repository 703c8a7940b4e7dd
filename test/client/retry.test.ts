import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { type CallDeadline, retryUnavailable, startDeadline } from "../../src/client/call-policy.js";
import { failureOf } from "./failure.js";
import { unavailableFor } from "./flaky-service.js";

const busy = new ConnectError("busy", Code.Unavailable);

/** A call with `leftMs` milliseconds to go, whose waits take no time but are counted. */
function createDeadline(leftMs: number): { time: CallDeadline; waits: number[] } {
  const waits: number[] = [];
  let left = leftMs;
  const time: CallDeadline = {
    remainingMs: () => left,
    hasMoreThan: (ms) => left > ms,
    within: (promise) => promise,
    async pause(ms) {
      waits.push(ms);
      left -= ms;
    },
  };
  return { time, waits };
}

describe("spacing of retries", () => {
  const cases = [
    { reason: "shortest", errors: [busy, busy, busy, busy], random: 0, leftMs: 30_000, waits: [100, 200, 400] },
    { reason: "middle", errors: [busy, busy, busy, busy], random: 0.5, leftMs: 30_000, waits: [150, 300, 600] },
    { reason: "until the deadline", errors: [busy, busy, busy, busy], random: 0, leftMs: 600, waits: [100, 200] },
    { reason: "not up to the deadline", errors: [busy, busy], random: 0, leftMs: 100, waits: [] },
    {
      reason: "RetryInfo comes on top",
      errors: [unavailableFor(1_500), busy, unavailableFor(2_000), busy],
      random: 0,
      leftMs: 30_000,
      waits: [1_600, 200, 2_400],
    },
    {
      reason: "a negative RetryInfo counts as none",
      errors: [unavailableFor(-5_000), busy],
      random: 0,
      leftMs: 250,
      waits: [100],
    },
  ];
  for (const { reason, errors, random, leftMs, waits } of cases) {
    it(reason, async () => {
      const call = createDeadline(leftMs);
      let attempts = 0;
      const attempt = async () => {
        throw errors[attempts++];
      };
      const failure = await failureOf(retryUnavailable(attempt, call.time, { backoffMs: 200, random: () => random }));
      assert.equal(failure.code, Code.Unavailable);
      assert.deepEqual(call.waits, waits);
      assert.equal(attempts, waits.length + 1);
    });
  }
});

describe("time of a call", () => {
  it("ends a pause when the call is cancelled, with the caller's reason", async () => {
    const controller = new AbortController();
    const pause = startDeadline(0, controller.signal).pause(60_000);
    controller.abort(new ConnectError("changed my mind", Code.Canceled));
    const failure = await failureOf(pause);
    assert.equal(failure.code, Code.Canceled);
    assert.equal(failure.rawMessage, "changed my mind");
  });

  it("has no end with a timeout of 0", () => {
    const time = startDeadline(0);
    assert.equal(time.remainingMs(), undefined);
    assert.equal(time.hasMoreThan(Number.MAX_SAFE_INTEGER), true);
  });
});
