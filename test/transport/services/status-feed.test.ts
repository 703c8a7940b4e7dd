import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createFeed } from "../../../src/transport/services/status-feed.js";

function setUp() {
  const seen = { value: "up", checks: 0 };
  const end = new AbortController();
  const check = async () => {
    seen.checks++;
    return seen.value;
  };
  return { seen, end, feed: createFeed({ check, end: end.signal, last: "down" }) };
}
const never = () => new AbortController().signal;

test("a thousand followers share one read of the value, and get each change", async () => {
  const { seen, feed } = setUp();
  const followers = Array.from({ length: 1_000 }, () => feed.follow(never()));
  assert.deepEqual(new Set(await Promise.all(followers.map((each) => each.next(undefined)))), new Set(["up"]));
  assert.equal(seen.checks, 1);
  seen.value = "away";
  assert.deepEqual(new Set(await Promise.all(followers.map((each) => each.next("up")))), new Set(["away"]));
  assert.equal(seen.checks, 2);
  for (const each of followers) each.close();
});

test("nothing is read without followers, and the next one gets no old value", async () => {
  const { seen, feed } = setUp();
  const first = feed.follow(never());
  assert.equal(await first.next(undefined), "up");
  first.close();
  seen.value = "away";
  const { checks } = seen;
  await delay(1_200);
  assert.equal(seen.checks, checks);
  const second = feed.follow(never());
  assert.equal(await second.next(undefined), "away");
  second.close();
});

test("at the end followers get the last value and then none, and new ones too", async () => {
  const { end, feed } = setUp();
  const follower = feed.follow(never());
  assert.equal(await follower.next(undefined), "up");
  const next = follower.next("up");
  end.abort();
  assert.equal(await next, "down");
  assert.equal(await follower.next("down"), undefined);
  await follower.waitForEnd();
  const late = feed.follow(never());
  assert.equal(await late.next(undefined), "down");
  for (const each of [follower, late]) each.close();
});

test("one that has gone waits for nothing", async () => {
  const { feed } = setUp();
  const gone = new AbortController();
  const follower = feed.follow(gone.signal);
  assert.equal(await follower.next(undefined), "up");
  const waiting = [follower.next("up"), follower.waitForEnd()];
  gone.abort();
  assert.deepEqual(await Promise.all(waiting), [undefined, undefined]);
  follower.close();
});
