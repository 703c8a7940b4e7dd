// Who bytes are held for, how much of an account each may have, and who gives way.
import assert from "node:assert/strict";
import { BlockList } from "node:net";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { defaultLimits } from "../../../src/transport/http/limits.js";
import { Buffers, createConnections, type RequestBuffers } from "../../../src/transport/http/request-buffers.js";

const MIB = 1024 * 1024;
const limits = { ...defaultLimits, requestBufferBytes: 16 * MIB, responseBufferBytes: 16 * MIB };
/** A quarter, less the part of it that is kept for small bodies. */
const SHARE = 3.5 * MIB;

function start({ proxy, behindProxy = false }: { proxy?: string; behindProxy?: boolean } = {}) {
  const proxies = new BlockList();
  if (proxy !== undefined) proxies.addAddress(proxy);
  const buffers = new Buffers(limits);
  const connections = createConnections(
    buffers,
    proxy === undefined ? undefined : { addresses: proxies, header: "X-Forwarded-For" },
    behindProxy,
  );
  const begin = (address: string, forwarded?: string, caller?: string) => {
    const request = connections.begin(
      connections.open(address),
      address,
      forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
    );
    if (caller !== undefined) request.holdFor(caller);
    return request;
  };
  return { buffers, begin };
}

const failIfRejected = () => assert.fail("the body was rejected");
const fits = (request: RequestBuffers, bytes: number) => request.openRequest(failIfRejected).grow(bytes);

describe("an empty answer", () => {
  it("is not kept, and takes room from no other", async () => {
    const { buffers, begin } = start();
    const empty = begin("192.0.2.1");
    empty.chargeResponse(0, () => assert.fail("nothing is held for it"));
    await delay(300);
    const large = begin("192.0.2.1");
    large.chargeResponse(SHARE, () => {});
    assert.throws(() => begin("192.0.2.1").chargeResponse(MIB, () => {}), /too much is being sent/);
    for (const request of [empty, large]) request.release();
    assert.equal(buffers.answers.bufferedBytes, 0);
  });
});

describe("a share of the requests", () => {
  it("belongs to an address, whatever the number of its connections", () => {
    const { begin } = start();
    assert.ok(fits(begin("192.0.2.1"), SHARE));
    assert.ok(!fits(begin("192.0.2.1"), MIB));
    assert.ok(fits(begin("192.0.2.2"), SHARE));
  });

  it("belongs to a network of IPv6", () => {
    const { begin } = start();
    assert.ok(fits(begin("2001:db8::1"), SHARE));
    assert.ok(!fits(begin("2001:db8::2"), MIB));
    assert.ok(fits(begin("2001:db8:0:1::1"), SHARE));
  });

  it("belongs to a caller, wherever the calls come from", () => {
    const { begin } = start();
    assert.ok(fits(begin("192.0.2.1", undefined, "caller"), SHARE));
    assert.ok(!fits(begin("192.0.2.2", undefined, "caller"), MIB));
  });

  it("belongs to the address that a trusted proxy names, and to no proxy", () => {
    const { begin } = start({ proxy: "10.0.0.1" });
    for (const client of ["192.0.2.1", "192.0.2.2", "192.0.2.3"]) assert.ok(fits(begin("10.0.0.1", client), SHARE));
    assert.ok(!fits(begin("10.0.0.1", "192.0.2.1"), MIB));
  });

  it("is charged to no address where the proxy names none", () => {
    const { begin } = start({ behindProxy: true });
    for (let i = 0; i < 3; i++) assert.ok(fits(begin("10.0.0.1"), SHARE));
  });

  it("leaves room for small bodies where it is used up for large ones", () => {
    const { begin } = start();
    assert.ok(fits(begin("192.0.2.1"), SHARE));
    assert.ok(fits(begin("192.0.2.1"), 10_000));
  });

  it("is given back", () => {
    const { begin, buffers } = start();
    const request = begin("192.0.2.1");
    assert.ok(fits(request, SHARE));
    request.release();
    request.release();
    assert.equal(buffers.requests.bufferedBytes, 0);
    assert.ok(fits(begin("192.0.2.1"), SHARE));
  });
});

describe("a body without room", () => {
  it("gets it when another is over", async () => {
    const { begin } = start();
    const first = begin("192.0.2.1");
    assert.ok(fits(first, SHARE));
    const second = begin("192.0.2.1").openRequest(failIfRejected);
    const room = new Promise<void>((resolve) => second.growLater(MIB, resolve));
    first.release();
    await room;
    assert.equal(second.bytes, MIB);
  });

  it("gets it from one that does not move, but not from one that is complete", async () => {
    const { begin } = start();
    const told: string[] = [];
    const complete = begin("192.0.2.1").openRequest(failIfRejected);
    const stalled = begin("192.0.2.1").openRequest((error) => told.push(error.message));
    assert.ok(complete.grow(SHARE / 2) && stalled.grow(SHARE / 2));
    complete.complete();
    const next = begin("192.0.2.1").openRequest(failIfRejected);
    await Promise.race([
      new Promise<void>((resolve) => next.growLater(MIB, resolve)),
      delay(3_000, undefined, { ref: false }),
    ]);
    assert.equal(next.bytes, MIB);
    assert.equal(told.length, 1);
    assert.equal(stalled.bytes, 0);
    assert.equal(complete.bytes, SHARE / 2);
  });

  it("is rejected at once where too many wait", () => {
    const { begin } = start();
    assert.ok(fits(begin("192.0.2.1"), SHARE));
    let rejections = 0;
    const waiting = Array.from({ length: limits.waitingBodies + 1 }, () =>
      begin("192.0.2.1").openRequest(() => {
        rejections++;
      }),
    );
    for (const body of waiting) body.growLater(MIB, failIfRejected);
    assert.equal(rejections, 1);
    for (const body of waiting) body.release();
  });
});

describe("an answer", () => {
  it("that is made after its request was over is not charged", () => {
    const { begin, buffers } = start();
    const request = begin("192.0.2.1");
    request.release();
    request.chargeResponse(MIB, failIfRejected);
    assert.equal(buffers.answers.bufferedBytes, 0);
  });

  it("that nobody reads gives way to another", async () => {
    const { begin } = start();
    let cut = 0;
    begin("192.0.2.1").chargeResponse(SHARE, () => cut++);
    await delay(300);
    begin("192.0.2.1").chargeResponse(SHARE, failIfRejected);
    assert.equal(cut, 1);
  });

  it("that is new does not, and the other is rejected with its reason", () => {
    const { begin } = start();
    begin("192.0.2.1").chargeResponse(SHARE, failIfRejected);
    assert.throws(() => begin("192.0.2.1").chargeResponse(SHARE, failIfRejected), { reason: "RESOURCE_EXHAUSTED" });
    begin("192.0.2.1").chargeResponse(500, failIfRejected);
  });
});
