import assert from "node:assert/strict";
import { test } from "node:test";
import { createIssuerCache, type IssuerEntry } from "../../../src/issuer/upstream/issuer-cache.js";
import type { UsableKeys } from "../../../src/issuer/upstream/jwks.js";

const keysOf = (bytes: number): UsableKeys => ({ any: true, bytes, has: () => false, list: () => [] });
const entry = (values: Partial<IssuerEntry> = {}): IssuerEntry => ({
  keys: keysOf(1_000),
  fetchedMs: 0,
  attempts: [],
  failed: false,
  proven: false,
  ...values,
});
const LIMITS = { proven: 3, fetched: 2, failed: 2, bytes: 1_000_000 };

test("an entry is in one tier while its state changes", () => {
  const cache = createIssuerCache(LIMITS);
  for (const state of [{ keys: undefined, failed: true }, {}, { proven: true }, { proven: true, failed: true }]) {
    cache.set("a", "x", entry(state));
    const found = cache.find("a", "x");
    assert.deepEqual([found?.proven, found?.failed], [state.proven ?? false, state.failed ?? false]);
  }
  for (const issuer of ["f1", "f2", "f3"]) cache.set("a", issuer, entry({ keys: undefined, failed: true }));
  for (const issuer of ["u1", "u2", "u3"]) cache.set("a", issuer, entry());
  assert.ok(cache.find("a", "x"));
  const kept = ["f1", "f2", "f3", "u1", "u2", "u3"].filter((issuer) => cache.find("a", issuer) !== undefined);
  assert.deepEqual(kept, ["f2", "f3", "u2", "u3"]);
});

test("the organisation that occupies most makes room, and the operator never", () => {
  const cache = createIssuerCache({ proven: 100, fetched: 100, failed: 100, bytes: 50_000 });
  cache.set("small", "x", entry());
  for (let i = 0; i < 30; i++) cache.set(undefined, `o${i}`, entry({ keys: keysOf(100_000) }));
  for (let i = 0; i < 100; i++) cache.set("large", `l${i}`, entry());
  assert.ok(cache.find("small", "x"));
  assert.ok(cache.find("large", "l99"));
  assert.equal(cache.find("large", "l0"), undefined);
  for (let i = 0; i < 30; i++) assert.ok(cache.find(undefined, `o${i}`));
});

test("what is larger than everything is not kept, and does not stop the rest", () => {
  const cache = createIssuerCache({ ...LIMITS, bytes: 5_000 });
  cache.set("a", "x", entry({ keys: keysOf(10_000) }));
  assert.equal(cache.find("a", "x"), undefined);
  cache.set("a", "y", entry());
  assert.ok(cache.find("a", "y"));
});
