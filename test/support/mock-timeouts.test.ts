import assert from "node:assert/strict";
import { it } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { mockTimeouts } from "./mock-timeouts.js";

for (const isRepaired of [true, false]) {
  it(`a timeout that was set before is ${isRepaired ? "cleared" : "not cleared by Node's own mock"}`, async (t) => {
    let fired = false;
    const timeout = setTimeout(() => (fired = true), 20);
    if (isRepaired) mockTimeouts(t);
    else t.mock.timers.enable({ apis: ["setTimeout"] });
    clearTimeout(timeout);
    t.mock.timers.reset();
    await wait(50);
    assert.equal(fired, !isRepaired);
  });
}

it("timeouts that are set while time is simulated are fired by ticks, and cleared", (t) => {
  mockTimeouts(t);
  const fired: string[] = [];
  setTimeout(() => fired.push("kept"), 1_000);
  clearTimeout(setTimeout(() => fired.push("cleared"), 1_000));
  t.mock.timers.tick(1_000);
  assert.deepEqual(fired, ["kept"]);
});

it("the end of the test restores the function", async (t) => {
  const before = globalThis.clearTimeout;
  await t.test("with simulated time", (inner) => {
    mockTimeouts(inner);
    assert.notEqual(globalThis.clearTimeout, before);
  });
  assert.equal(globalThis.clearTimeout, before);
});
