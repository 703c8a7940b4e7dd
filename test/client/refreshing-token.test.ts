import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { refreshingToken } from "../../src/client/index.js";
import { jwt, print } from "./failure.js";

const HOUR_MS = 3_600_000;
const START_MS = 1_700_000_000_000;

describe("refreshing tokens", () => {
  let nowMs: number;
  let fetches: number;
  /** Turns the fetch under way into its result; each fetch waits for it. */
  let finish: (result: string | Error) => void;
  const clock = () => nowMs;
  const fetchToken = () => {
    fetches++;
    return new Promise<string>((resolve, reject) => {
      finish = (result) => (typeof result === "string" ? resolve(result) : reject(result));
    });
  };
  const idle = () => new Promise((resolve) => setImmediate(resolve));

  beforeEach(() => {
    nowMs = START_MS;
    fetches = 0;
  });

  /** A source that holds `token` from the start. */
  async function holding(token: string, earlyMs?: number) {
    const source = refreshingToken(fetchToken, { clock, ...(earlyMs !== undefined && { earlyMs }) });
    const first = source.token();
    finish(token);
    assert.equal(await first, token);
    return source;
  }

  it("all who wait share one fetch", async () => {
    const source = refreshingToken(fetchToken, { clock });
    const waiting = Array.from({ length: 10 }, () => source.token());
    finish("t1");
    assert.deepEqual(new Set(await Promise.all(waiting)), new Set(["t1"]));
    assert.equal(fetches, 1);
  });

  it("a failed fetch fails those who wait, and the next asks again", async () => {
    const source = refreshingToken(fetchToken, { clock });
    const waiting = source.token();
    finish(new Error("away"));
    await assert.rejects(Promise.resolve(waiting), { message: "away" });
    const again = source.token();
    finish("t1");
    assert.equal(await again, "t1");
    assert.equal(fetches, 2);
  });

  const refreshes = [
    { reason: "five minutes before the end", lifeMs: HOUR_MS, earlyMs: undefined, atMs: HOUR_MS - 300_000 },
    { reason: "as early as set", lifeMs: HOUR_MS, earlyMs: 60_000, atMs: HOUR_MS - 60_000 },
    { reason: "half way through a short life", lifeMs: 120_000, earlyMs: undefined, atMs: 60_000 },
  ];
  for (const { reason, lifeMs, earlyMs, atMs } of refreshes) {
    it(`a token is replaced ${reason}, and used until then`, async () => {
      const old = jwt("old", START_MS + lifeMs);
      const source = await holding(old, earlyMs);
      nowMs = START_MS + atMs - 1;
      assert.equal(source.token(), old);
      assert.equal(fetches, 1);
      nowMs++;
      assert.equal(source.token(), old);
      assert.equal(source.token(), old);
      assert.equal(fetches, 2);
      finish("new");
      await idle();
      assert.equal(source.token(), "new");
    });
  }

  it("when the refresh ahead fails, the old token is used to its end and fetches keep a distance", async () => {
    const old = jwt("old", START_MS + HOUR_MS);
    const source = await holding(old, 60_000);
    nowMs = START_MS + HOUR_MS - 60_000;
    assert.equal(source.token(), old);
    finish(new Error("away"));
    await idle();
    nowMs += 4_999;
    assert.equal(source.token(), old);
    assert.equal(fetches, 2);
    nowMs++;
    assert.equal(source.token(), old);
    assert.equal(fetches, 3);
    finish(new Error("away"));
    await idle();
    nowMs = START_MS + HOUR_MS;
    const waiting = source.token();
    finish(new Error("still away"));
    await assert.rejects(Promise.resolve(waiting), { message: "still away" });
  });

  const endless = [
    { reason: "a JWT without exp", token: jwt("x") },
    { reason: "no JWT", token: "opaque" },
    { reason: "claims that are no JSON", token: "a.b.c" },
    { reason: "claims that are no object", token: `a.${Buffer.from("null").toString("base64url")}.c` },
    { reason: "an exp that is no number", token: `a.${Buffer.from('{"exp":"1"}').toString("base64url")}.c` },
    { reason: "an exp beyond numbers", token: `a.${Buffer.from('{"exp":1e999}').toString("base64url")}.c` },
  ];
  for (const { reason, token } of endless) {
    it(`${reason} is used until it is refused`, async () => {
      const source = await holding(token);
      nowMs += 1_000 * HOUR_MS;
      assert.equal(source.token(), token);
      const renewed = source.renew?.(token);
      finish("new");
      assert.equal(await renewed, "new");
    });
  }

  it("calls refused together cause one fetch, and a late one none", async () => {
    const source = await holding("old");
    const renewed = [source.renew?.("old"), source.renew?.("old")];
    finish("new");
    assert.deepEqual(await Promise.all(renewed), ["new", "new"]);
    assert.equal(source.renew?.("old"), "new");
    assert.equal(fetches, 2);
  });

  it("printing a source shows no token", async () => {
    const source = await holding("se-cret");
    assert.doesNotMatch(print(source), /se-cret/);
  });
});
