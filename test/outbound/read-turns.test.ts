// Who parses what has arrived, and when others have their turn.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ReadTurns } from "../../src/outbound/read-turns.js";

/** Turns whose iterations of the event loop a test counts; each slice takes as long as its reader says. */
function createTurns() {
  let nowMs = 0;
  let due: (() => void)[] = [];
  const turns = new ReadTurns({ now: () => nowMs, defer: (callback) => due.push(callback) });
  /** The accounts that were served in each iteration. */
  const served: string[][] = [];
  return {
    served,
    add(account: string, slices: number, ms: number) {
      let left = slices;
      const reader = {
        account,
        readSlice() {
          nowMs += ms;
          served.at(-1)?.push(account);
          left--;
          if (left > 0) turns.add(reader);
        },
      };
      turns.add(reader);
    },
    iterate(times: number) {
      for (let i = 0; i < times; i++) {
        served.push([]);
        const callbacks = due;
        due = [];
        assert.ok(callbacks.length <= 1);
        for (const callback of callbacks) callback();
      }
    },
  };
}

test("a connection has one slice in an iteration of the event loop", () => {
  const { add, iterate, served } = createTurns();
  add("a", 3, 0);
  iterate(4);
  assert.deepEqual(served, [["a"], ["a"], ["a"], []]);
});

test("after four milliseconds the event loop looks at other sockets, and the others come first then", () => {
  const { add, iterate, served } = createTurns();
  for (const account of ["a", "b", "c", "d", "e"]) add(account, 2, 2);
  iterate(5);
  assert.deepEqual(served, [
    ["a", "b"],
    ["c", "d"],
    ["e", "a"],
    ["b", "c"],
    ["d", "e"],
  ]);
});

test("organisations take turns, however many connections each has", () => {
  const { add, iterate, served } = createTurns();
  for (let i = 0; i < 100; i++) add("flood", 50, 3);
  add("honest", 3, 0);
  iterate(4);
  assert.deepEqual(
    served.map((accounts) => accounts.filter((account) => account === "honest").length),
    [1, 1, 1, 0],
  );
  assert.ok(served.every(({ length }) => length <= 3));
});

test("an error of one connection stops no other", () => {
  const due: (() => void)[] = [];
  const turns = new ReadTurns({ defer: (callback) => due.push(callback) });
  const served: string[] = [];
  const fail = () => {
    throw new Error("a listener failed");
  };
  turns.add({ account: "a", readSlice: fail });
  turns.add({ account: "b", readSlice: () => served.push("b") });
  assert.throws(() => due.shift()?.(), /a listener failed/);
  due.shift()?.();
  assert.deepEqual(served, ["b"]);
});
