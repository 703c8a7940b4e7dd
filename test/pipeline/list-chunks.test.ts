// How many lists of one caller are under way: more wait, those of others do not, and none is counted for ever.
import assert from "node:assert/strict";
import { setMaxListeners } from "node:events";
import { test } from "node:test";
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Message } from "@bufbuild/protobuf";
import type { UnaryCall } from "../../src/pipeline/call.js";
import type { Invoke } from "../../src/pipeline/invoke.js";
import { readChunks } from "../../src/pipeline/list-chunks.js";
import type { UnaryEntry } from "../../src/pipeline/method-table.js";

const AT_ONCE = 8;
const entry = { list: { localName: "items" } } as unknown as UnaryEntry;
let callers = 0;

/** A list of two parts. */
function listOf(
  caller: string,
  invoke: () => Promise<object> = async () => ({}),
  signal = new AbortController().signal,
) {
  const call = { nextCursor: {} as object | undefined, nextChunk: () => {}, signal };
  call.nextChunk = () => {
    call.nextCursor = undefined;
  };
  const principal = { identityUid: caller, tokenId: "t", issuedAt: 0, expiresAt: 0 };
  const listCall = { entry, call: call as unknown as UnaryCall, principal, request: {} as Message };
  return readChunks(invoke as unknown as Invoke, () => 0, listCall);
}

async function isGiven(part: Promise<unknown>): Promise<boolean> {
  let given = false;
  part.then(
    () => {
      given = true;
    },
    () => {
      given = true;
    },
  );
  for (let i = 0; i < 200; i++) await turn();
  return given;
}

async function fill(caller: string) {
  const lists = Array.from({ length: AT_ONCE }, () => listOf(caller));
  for (const list of lists) await list.next();
  return lists;
}

const ends: Record<string, (list: ReturnType<typeof listOf>) => Promise<unknown>> = {
  "was read to its end": async (list) => {
    for await (const _ of list);
  },
  "was given up": (list) => list.return(),
};

for (const [how, end] of Object.entries(ends)) {
  test(`one more than ${AT_ONCE} lists waits until another ${how}`, async () => {
    const caller = `caller ${callers++}`;
    const [first, ...others] = await fill(caller);
    assert.ok(first);
    const late = listOf(caller);
    const part = late.next();
    assert.equal(await isGiven(part), false);
    assert.equal(await isGiven(listOf("somebody else").next()), true);
    await end(first);
    assert.equal(await isGiven(part), true);
    for (const list of [...others, late]) await list.return();
    for (const list of await fill(caller)) await list.return();
  });
}

test("who goes away while waiting leaves the queue, and costs nothing when its turn would have come", async () => {
  const caller = `caller ${callers++}`;
  const lists = await fill(caller);
  const gone = new AbortController();
  setMaxListeners(0, gone.signal);
  let invoked = 0;
  const invoke = async () => {
    invoked++;
    return {};
  };
  const waiting = Array.from({ length: 20 }, () => listOf(caller, invoke, gone.signal).next());
  const patient = listOf(caller).next();
  assert.equal(await isGiven(patient), false);
  gone.abort();
  for (const part of waiting) await assert.rejects(part, /the caller has gone/);
  await assert.rejects(listOf(caller, invoke, gone.signal).next(), /the caller has gone/);
  const late = assert.rejects(listOf(caller, invoke, AbortSignal.timeout(1)).next(), { code: 4 });
  // Its timer keeps no process alive.
  await delay(50);
  await late;
  await lists[0]?.return();
  assert.equal(await isGiven(patient), true);
  assert.equal(invoked, 0);
  for (const list of lists) await list.return();
});

test("a list that fails is under way no more", async () => {
  const caller = `caller ${callers++}`;
  for (let i = 0; i < 3 * AT_ONCE; i++) {
    const failing = listOf(caller, () => Promise.reject(new Error("broken")));
    await assert.rejects(failing.next(), /broken/);
  }
  assert.equal(await isGiven(listOf(caller).next()), true);
});

test("nothing is kept of who has gone while waiting", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const caller = `caller ${callers++}`;
  const lists = await fill(caller);
  // Node 20 keeps a signal made of several, as those of calls are, for as long as it has a listener.
  async function leave(): Promise<WeakRef<AbortSignal>> {
    const gone = new AbortController();
    const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(60_000)]);
    const late = listOf(caller, undefined, signal).next();
    await turn();
    gone.abort();
    await assert.rejects(late);
    return new WeakRef(signal);
  }
  const waited = await leave();
  // Each collection takes long, and the first one is nearly always enough.
  for (let i = 0; i < 10 && waited.deref() !== undefined; i++) {
    await turn();
    collect();
  }
  assert.equal(waited.deref(), undefined);
  for (const list of lists) await list.return();
});
