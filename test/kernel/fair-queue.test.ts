// Whose turn it is, what debts do, and which items have no room.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FairQueue } from "../../src/kernel/fair-queue.js";

interface Item {
  readonly key: string;
  readonly startByMs: number;
  readonly name: string;
}

function item(key: string, name = key, startByMs = Number.POSITIVE_INFINITY): Item {
  return { key, name, startByMs };
}

function fill(queue: FairQueue<Item>, key: string, count: number): void {
  for (let i = 0; i < count; i++) queue.push(item(key));
}

/** Takes so many items, each of which costs what its key says, and counts them by key. */
function serve(queue: FairQueue<Item>, count: number, costMs: Readonly<Record<string, number>>) {
  const served: Record<string, number> = {};
  for (let i = 0; i < count; i++) {
    const taken = queue.take();
    if (taken === undefined) break;
    served[taken.key] = (served[taken.key] ?? 0) + 1;
    queue.charge(taken.key, costMs[taken.key] ?? 0);
  }
  return served;
}

describe("turns", () => {
  it("items of one key keep their order", () => {
    const queue = new FairQueue<Item>();
    for (const name of ["1", "2", "3"]) queue.push(item("a", name));
    assert.deepEqual([queue.take()?.name, queue.take()?.name, queue.take()?.name], ["1", "2", "3"]);
    assert.equal(queue.take(), undefined);
    assert.equal(queue.size, 0);
  });

  it("a key with one item waits for no key with many", () => {
    const queue = new FairQueue<Item>();
    fill(queue, "many", 1_000);
    queue.push(item("few"));
    const served = serve(queue, 2, { many: 1, few: 1 });
    assert.deepEqual(served, { many: 1, few: 1 });
  });

  it("keys share the time, not the number of items", () => {
    const queue = new FairQueue<Item>();
    fill(queue, "dear", 1_000);
    fill(queue, "cheap", 1_000);
    const { dear = 0, cheap = 0 } = serve(queue, 550, { dear: 5, cheap: 0.5 });
    assert.ok(cheap / dear > 8 && cheap / dear < 12, `${cheap} cheap ones for ${dear} dear ones`);
  });

  it("control: without charges they share the number", () => {
    const queue = new FairQueue<Item>();
    fill(queue, "dear", 1_000);
    fill(queue, "cheap", 1_000);
    assert.deepEqual(serve(queue, 500, {}), { dear: 250, cheap: 250 });
  });

  it("a key that leaves and returns still owes what it has cost", () => {
    const queue = new FairQueue<Item>();
    fill(queue, "steady", 1_000);
    queue.push(item("visitor"));
    serve(queue, 2, { steady: 1, visitor: 20 });
    queue.push(item("visitor"));
    let before = 0;
    while (queue.take()?.key === "steady") {
      queue.charge("steady", 1);
      before++;
    }
    assert.ok(before > 10 && before < 40, `${before} of the other came before it`);
  });

  it("a debt is bounded, so that one pause of the process does not shut a key out", () => {
    const queue = new FairQueue<Item>();
    fill(queue, "steady", 1_000);
    queue.push(item("paused"));
    queue.charge("paused", 60_000);
    let before = 0;
    while (queue.take()?.key === "steady") {
      queue.charge("steady", 1);
      before++;
    }
    assert.ok(before < 40, `${before} of the other came before it`);
  });

  it("nobody owes anything once nobody has waited", () => {
    const queue = new FairQueue<Item>();
    queue.push(item("a"));
    serve(queue, 2, { a: 20 });
    queue.push(item("b"));
    queue.push(item("a"));
    queue.push(item("b"));
    assert.deepEqual([queue.take()?.key, queue.take()?.key], ["b", "a"]);
  });

  it("many keys that come and go are served in turn, and none is lost", () => {
    const queue = new FairQueue<Item>();
    let pushed = 0;
    let taken = 0;
    for (let step = 0; step < 20_000; step++) {
      const key = `key ${(step * 7919) % 301}`;
      queue.push(item(key));
      pushed++;
      if (step % 3 === 0) continue;
      const next = queue.take();
      if (next === undefined) continue;
      taken++;
      queue.charge(next.key, (step % 11) / 10);
    }
    while (queue.take() !== undefined) taken++;
    assert.equal(taken, pushed);
    assert.equal(queue.size, 0);
  });
});

describe("items that are given up", () => {
  it("have waited too long, oldest first, and as many as are asked for", () => {
    const queue = new FairQueue<Item>();
    queue.push(item("a", "first", 10));
    queue.push(item("a", "second", 20));
    queue.push(item("b", "other", 30));
    const names = (items: readonly Item[]) => items.map(({ name }) => name);
    assert.deepEqual(names(queue.expired(9)), []);
    assert.deepEqual(names(queue.expired(30, 2)), ["first", "second"]);
    assert.deepEqual(names(queue.expired(30)), ["other"]);
    assert.equal(queue.size, 0);
    assert.equal(queue.take(), undefined);
    queue.push(item("a", "third"));
    assert.equal(queue.take()?.name, "third");
  });

  it("have no room: the newest of the longest queue, which may be the one that comes", () => {
    const queue = new FairQueue<Item>(4);
    for (const name of ["1", "2", "3"]) assert.equal(queue.push(item("many", name)), undefined);
    queue.push(item("few", "only"));
    assert.equal(queue.push(item("new", "new"))?.name, "3");
    assert.equal(queue.push(item("many", "4"))?.name, "4");
    assert.equal(queue.size, 4);
    assert.deepEqual([...queue].map(({ name }) => name).sort(), ["1", "2", "new", "only"]);
  });

  it("are the newest of a key that is named", () => {
    const queue = new FairQueue<Item>();
    for (const name of ["1", "2"]) queue.push(item("a", name));
    assert.equal(queue.takeNewest("a")?.name, "2");
    assert.equal(queue.takeNewest("b"), undefined);
    assert.equal(queue.size, 1);
  });
});
