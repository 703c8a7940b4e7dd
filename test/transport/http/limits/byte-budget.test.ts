// Whose bytes they are, how much each may hold, and which body gives way.
import assert from "node:assert/strict";
import { BlockList, type Socket } from "node:net";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Admission } from "../../../../src/transport/http/limits/admission.js";
import { createBudgets } from "../../../../src/transport/http/limits/budgets.js";
import { ByteBudget } from "../../../../src/transport/http/limits/byte-budget.js";
import { Connections } from "../../../../src/transport/http/limits/connections.js";
import { defaultLimits } from "../../../../src/transport/http/limits/limits.js";
import { ChargedRequest } from "../../requests.js";

const MIB = 1024 * 1024;
const limits = {
  ...defaultLimits,
  ...{ requestBufferBytes: 64 * MIB, responseBufferBytes: 64 * MIB, unknownBytes: 16 * MIB, responseBytes: 20 * MIB },
  // The bodies stay open when a test has ended.
  ...{ slowBodyMs: Number.POSITIVE_INFINITY, responseStallMs: Number.POSITIVE_INFINITY },
};
const SHARE = 16 * MIB;
const UNKNOWN_SHARE = 8 * MIB;

function start({ proxy, behindProxy = false }: { proxy?: string; behindProxy?: boolean } = {}) {
  const addresses = new BlockList();
  if (proxy !== undefined) addresses.addAddress(proxy);
  const budgets = createBudgets(limits);
  const connections = new Connections({
    ...{ limits, budgets, behindProxy, hasTls: false, takesStream: () => false },
    admission: new Admission({ limits }),
    proxies: proxy === undefined ? undefined : { addresses, header: "X-Forwarded-For" },
  });
  let port = 0;
  const begin = (address: string, forwarded?: string, caller?: string) => {
    const socket = { remoteAddress: address, remotePort: ++port, localAddress: "::1", once() {}, destroy() {} };
    const connection = connections.accept(socket as unknown as Socket);
    assert.ok(connection);
    const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
    const key = connections.begin(connection, headers, address);
    const request = new ChargedRequest(key, connections.host, connection);
    request.callerUid = caller;
    return request;
  };
  return { budgets, begin };
}

const failIfRejected = () => assert.fail("the body was rejected");
const fits = (request: ChargedRequest, bytes: number) => request.openBody(failIfRejected).grow(bytes);

describe("a byte belongs", () => {
  it("to a caller, wherever the calls come from, and not to the address", () => {
    const { begin } = start();
    assert.ok(fits(begin("192.0.2.1", undefined, "a"), SHARE));
    assert.ok(!fits(begin("192.0.2.2", undefined, "a"), 1));
    assert.ok(fits(begin("192.0.2.1", undefined, "b"), SHARE));
    assert.ok(fits(begin("192.0.2.1"), UNKNOWN_SHARE));
  });

  it("to an address while nobody knows the caller, whatever the number of its connections", () => {
    const { begin } = start();
    assert.ok(fits(begin("192.0.2.1"), UNKNOWN_SHARE));
    assert.ok(!fits(begin("192.0.2.1"), 1));
    assert.ok(fits(begin("192.0.2.2"), UNKNOWN_SHARE));
  });

  it("to a network of IPv6", () => {
    const { begin } = start();
    assert.ok(fits(begin("2001:db8::1"), UNKNOWN_SHARE));
    assert.ok(!fits(begin("2001:db8::2"), 1));
    assert.ok(fits(begin("2001:db8:0:1::1"), UNKNOWN_SHARE));
  });

  it("to the address that a trusted proxy names, and to no proxy", () => {
    const { begin } = start({ proxy: "10.0.0.1" });
    for (const client of ["192.0.2.1", "192.0.2.2"]) assert.ok(fits(begin("10.0.0.1", client), UNKNOWN_SHARE));
    assert.ok(!fits(begin("10.0.0.1", "192.0.2.1"), 1));
  });

  it("to a connection where the proxy names nobody", () => {
    const { begin } = start({ behindProxy: true });
    for (let i = 0; i < 2; i++) assert.ok(fits(begin("10.0.0.1"), UNKNOWN_SHARE));
    assert.ok(!fits(begin("10.0.0.1"), UNKNOWN_SHARE));
  });

  it("to the unknown callers, who have a part of the whole together", () => {
    const { begin } = start();
    for (let i = 0; i < 2; i++) assert.ok(fits(begin(`192.0.2.${i}`), UNKNOWN_SHARE));
    assert.ok(!fits(begin("192.0.2.9"), 1));
    assert.ok(fits(begin("192.0.2.9", undefined, "known"), SHARE));
  });

  it("to one of two budgets: unread responses stop no body", () => {
    const { begin } = start();
    for (const caller of ["a", "b", "c", "d"])
      begin("192.0.2.1", undefined, caller).chargeResponse(SHARE, failIfRejected);
    assert.ok(fits(begin("192.0.2.1", undefined, "a"), SHARE));
  });

  it("to nobody when its request is over", () => {
    const { begin, budgets } = start();
    const request = begin("192.0.2.1");
    assert.ok(fits(request, UNKNOWN_SHARE));
    request.finish();
    request.finish();
    assert.equal(budgets.requests.bytes, 0);
    request.chargeResponse(MIB, failIfRejected);
    assert.equal(budgets.responses.bytes, 0);
    assert.ok(fits(begin("192.0.2.1"), UNKNOWN_SHARE));
  });
});

describe("when an account is full", () => {
  it("its slowest body gives way, but not one that is complete", async () => {
    const { begin } = start();
    const told: string[] = [];
    const complete = begin("192.0.2.1").openBody(failIfRejected);
    const stalled = begin("192.0.2.1").openBody((error) => told.push(error.message));
    const slow = begin("192.0.2.1").openBody(failIfRejected);
    for (const body of [complete, stalled, slow]) assert.ok(body.grow(UNKNOWN_SHARE / 4));
    complete.complete();
    slow.noteProgress(1_000);
    await delay(300);
    const next = begin("192.0.2.1").openBody(failIfRejected);
    assert.ok(next.grow(UNKNOWN_SHARE / 2));
    assert.match(told.join(), /^Resource exhausted: body: the service holds as many bytes as it may/);
    assert.deepEqual([complete.bytes, stalled.bytes, slow.bytes], [UNKNOWN_SHARE / 4, 0, UNKNOWN_SHARE / 4]);
  });

  it("the next body is rejected if the others are as new, and nothing waits", () => {
    const { begin } = start();
    assert.ok(fits(begin("192.0.2.1"), UNKNOWN_SHARE));
    assert.throws(() => {
      const request = begin("192.0.2.1");
      request.openBody(failIfRejected);
      request.chargeBody(MIB);
    }, /holds as many bytes as it may/);
  });

  it("no other account gives way", async () => {
    const { begin } = start();
    const other = begin("192.0.2.2").openBody(failIfRejected);
    assert.ok(other.grow(MIB));
    await delay(300);
    assert.ok(fits(begin("192.0.2.1"), UNKNOWN_SHARE));
    assert.ok(!fits(begin("192.0.2.1"), MIB));
    assert.equal(other.bytes, MIB);
  });
});

it("when the whole is full, the largest account gives way", async () => {
  const { begin } = start();
  let cut = 0;
  for (const caller of ["a", "b", "c"]) {
    for (let i = 0; i < 2; i++)
      begin("192.0.2.1", undefined, caller)
        .openBody(failIfRejected)
        .grow(SHARE / 2 - MIB);
  }
  for (let i = 0; i < 2; i++)
    begin("192.0.2.1", undefined, "largest")
      .openBody(() => cut++)
      .grow(SHARE / 2);
  await delay(300);
  assert.ok(fits(begin("192.0.2.1", undefined, "next"), 8 * MIB));
  assert.equal(cut, 1);
});

describe("a response", () => {
  it("that nobody reads gives way to another", async () => {
    const { begin } = start();
    let cut = 0;
    begin("192.0.2.1", undefined, "a").chargeResponse(SHARE, () => cut++);
    await delay(300);
    begin("192.0.2.1", undefined, "a").chargeResponse(SHARE, failIfRejected);
    assert.equal(cut, 1);
  });

  it("that is new does not, and the other is rejected; a status always has room", () => {
    const { begin } = start();
    begin("192.0.2.1", undefined, "a").chargeResponse(SHARE, failIfRejected);
    const next = begin("192.0.2.1", undefined, "a");
    assert.throws(() => next.chargeResponse(SHARE, failIfRejected), { reason: "RESOURCE_EXHAUSTED" });
    begin("192.0.2.1", undefined, "a").chargeResponse(500, failIfRejected);
  });

  it("may exceed the share as a list that is one message", () => {
    const { begin } = start();
    const list = begin("192.0.2.1", undefined, "a");
    list.chargeResponse(20 * MIB, failIfRejected, true);
    assert.throws(() => list.chargeResponse(MIB, failIfRejected, true), { reason: "RESOURCE_EXHAUSTED" });
  });

  it("that is empty holds nothing and gives no room", async () => {
    const { begin, budgets } = start();
    const empty = begin("192.0.2.1", undefined, "a");
    empty.chargeResponse(0, failIfRejected);
    await delay(300);
    begin("192.0.2.1", undefined, "a").chargeResponse(SHARE, failIfRejected);
    assert.throws(() => begin("192.0.2.1", undefined, "a").chargeResponse(MIB, failIfRejected));
    empty.finish();
    assert.equal(budgets.responses.bytes, SHARE);
  });
});

describe("a body that is too slow", () => {
  const budget = () => new ByteBudget({ totalBytes: MIB, unknownBytes: MIB, leastRate: 1_000, graceMs: 300 });
  const owner = { callerUid: undefined, key: "a" };

  it("is rejected after a while, also where no byte arrives; faster, complete and streaming ones are not", async () => {
    const bytes = budget();
    const told: string[] = [];
    const onRejected = (name: string) => (error: Error) => told.push(`${name}: ${error.message}`);
    bytes.open(owner, { onRejected: onRejected("empty") });
    const slow = bytes.open(owner, { onRejected: onRejected("slow") });
    slow.grow(100);
    slow.noteProgress(100);
    const fast = bytes.open(owner, { onRejected: onRejected("fast") });
    fast.grow(10_000);
    fast.noteProgress(10_000);
    const complete = bytes.open(owner, { onRejected: onRejected("complete") });
    complete.complete();
    bytes.open(owner, { onRejected: onRejected("stream"), mayPause: true });
    await delay(1_300);
    assert.deepEqual(
      told.sort(),
      ["empty", "slow"].map((name) => `${name}: Invalid argument: body: must arrive at 1000 bytes a second or more`),
    );
    assert.equal(bytes.bytes, 10_000);
  });

  it("is not, while it is young", async () => {
    const bytes = new ByteBudget({ totalBytes: MIB, unknownBytes: MIB, leastRate: 1_000, graceMs: 60_000 });
    const body = bytes.open(owner, { onRejected: failIfRejected });
    await delay(1_200);
    body.release();
  });
});
