// Several nodes, and verifiers that cache their public keys, under random sequences of events: what must hold in any
// order.
import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { generateTokenKey } from "../../../src/issuer/keys/key-generation.js";
import type { KeyRing } from "../../../src/issuer/keys/key-ring.js";
import { addSuccessor, type KeySchedule, revokeKey } from "../../../src/issuer/keys/key-states.js";
import { DAY, HOUR, type KeyKit, MINUTE, openKit, SECOND } from "./key-kit.js";

/** An event of a sequence. */
type Event =
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "sign" | "verify" | "tend" | "refresh" | "ask"; readonly node: number }
  | { readonly do: "rotate" | "all at once" }
  | { readonly do: "revoke"; readonly pick: number };

/** The clocks of the nodes are this far ahead. */
const SKEWS_MS = [0, 3 * SECOND, -3 * SECOND] as const;
const MAX_AGE_MS = 300 * SECOND;
const TOKEN_LIFE_MS = HOUR;
/** A running node has read the store within this time: the interval of its maintenance, and some more. */
const LOOKED_MS = 1_500;

const node = fc.nat({ max: SKEWS_MS.length - 1 });
const wait = (ms: number) => fc.record({ do: fc.constant("wait" as const), ms: fc.nat({ max: ms }) });
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: wait(3 * SECOND) },
  { weight: 8, arbitrary: wait(2 * MINUTE) },
  { weight: 3, arbitrary: wait(HOUR) },
  { weight: 1, arbitrary: wait(60 * DAY) },
  { weight: 24, arbitrary: fc.record({ do: fc.constantFrom("sign", "verify", "tend", "refresh", "ask"), node }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("rotate", "all at once") }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("revoke" as const), pick: fc.nat() }) },
);

/** Counts, to show that the run checked something. */
export interface Tally {
  signed: number;
  /** Valid tokens that a node accepted, and that other verifiers accepted. */
  accepted: number;
  acceptedElsewhere: number;
  /** Tokens of revoked keys that a node rejected. */
  rejected: number;
  keys: number;
}

/**
 * Runs random sequences of events.
 *
 * @param schedule what the nodes go by
 * @throws Error that names the sequence, when something did not hold.
 */
export async function runInterleavings(
  schedule: KeySchedule,
  options: { readonly runs: number; readonly open?: Parameters<typeof openKit>[0]; readonly seed?: number },
): Promise<Tally> {
  const tally: Tally = { signed: 0, accepted: 0, acceptedElsewhere: 0, rejected: 0, keys: 0 };
  const kit = await openKit(options.open);
  const stores = [kit.store, await kit.anotherStore(), await kit.anotherStore()];
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 30, maxLength: 120 }), async (events) => {
        await kit.store.write(async (tx) => {
          for (const { kid } of await tx.keys.list()) await tx.keys.delete(kid);
        });
        const rings: KeyRing[] = [];
        for (const [i, skewMs] of SKEWS_MS.entries()) rings.push(await kit.node(skewMs, stores[i]));
        const world = new World(kit, rings, schedule, tally);
        for (const one of events) await world.happen(one);
      }),
      { numRuns: options.runs, endOnFailure: true, ...(options.seed !== undefined && { seed: options.seed }) },
    );
  } finally {
    await kit.close();
  }
  return tally;
}

interface Token {
  readonly kid: string;
  readonly expireMs: number;
}

class World {
  readonly #kit: KeyKit;
  readonly #rings: readonly KeyRing[];
  readonly #schedule: KeySchedule;
  readonly #tally: Tally;
  readonly #lookedMs: number[];
  /** Public keys that other verifiers cache, each from another node. */
  readonly #kept: { kids: ReadonlySet<string>; untilMs: number }[];
  readonly #revokedMs = new Map<string, number>();
  /** Keys that were used before they were published, and when. */
  readonly #suddenMs = new Map<string, number>();
  #tokens: Token[] = [];

  constructor(kit: KeyKit, rings: readonly KeyRing[], schedule: KeySchedule, tally: Tally) {
    this.#kit = kit;
    this.#rings = rings;
    this.#schedule = schedule;
    this.#tally = tally;
    this.#lookedMs = rings.map(() => kit.nowMs);
    this.#kept = rings.map(() => ({ kids: new Set(), untilMs: 0 }));
  }

  async happen(event: Event): Promise<void> {
    switch (event.do) {
      case "wait":
        this.#kit.nowMs += event.ms;
        break;
      case "sign":
        await this.#sign(event.node);
        break;
      case "verify":
        await this.#verify(event.node);
        break;
      case "tend":
        await this.#advanceKeys(event.node);
        break;
      case "refresh":
        await this.#ring(event.node).refresh();
        break;
      case "ask":
        await this.#ask(event.node);
        break;
      case "rotate": {
        const spare = await this.#newKey();
        await this.#kit.store.write((tx) => addSuccessor(tx, spare));
        break;
      }
      case "all at once":
        await Promise.all([...this.#rings.keys()].flatMap((i) => [this.#advanceKeys(i), this.#advanceKeys(i)]));
        break;
      case "revoke":
        await this.#revoke(event.pick);
    }
    // Reads of one tick share a snapshot, and the next read must see this change.
    await nextTurn();
    const states = (await this.#kit.rows()).map(({ state }) => state);
    assert.equal(states.filter((state) => state === "active").length, 1, "one key is in use");
    assert.ok(states.filter((state) => state === "pending").length <= 1, "at most one waits");
  }

  #ring(i: number): KeyRing {
    const ring = this.#rings[i];
    assert.ok(ring);
    return ring;
  }

  #newKey() {
    this.#tally.keys++;
    return generateTokenKey("ES256", this.#kit.masterKey, this.#kit.nowMs);
  }

  async #advanceKeys(i: number): Promise<void> {
    this.#lookedMs[i] = this.#kit.nowMs;
    await this.#ring(i).advanceKeys(this.#schedule);
  }

  // A node does nothing before its maintenance has read the store, also after a sleep.
  async #awake(i: number): Promise<KeyRing> {
    if (this.#kit.nowMs - (this.#lookedMs[i] ?? 0) > LOOKED_MS) await this.#advanceKeys(i);
    return this.#ring(i);
  }

  async #sign(i: number): Promise<void> {
    const { kid } = (await this.#awake(i)).getSigningKey();
    this.#tokens.push({ kid, expireMs: this.#kit.nowMs + (SKEWS_MS[i] ?? 0) + TOKEN_LIFE_MS });
    this.#tally.signed++;
  }

  #live(nowMs: number): readonly Token[] {
    // No clock is set back further than this.
    this.#tokens = this.#tokens.filter(({ expireMs }) => expireMs > this.#kit.nowMs - MINUTE);
    return this.#tokens.filter(({ expireMs }) => expireMs >= nowMs);
  }

  async #verify(i: number): Promise<void> {
    const ring = await this.#awake(i);
    await ring.refresh();
    const { nowMs } = this.#kit;
    for (const { kid } of this.#live(nowMs + (SKEWS_MS[i] ?? 0))) {
      const revokedMs = this.#revokedMs.get(kid);
      if (revokedMs === undefined) {
        // Within a second of the last read, an unknown key causes no other read.
        if (nowMs - (this.#suddenMs.get(kid) ?? 0) <= LOOKED_MS) continue;
        assert.ok(ring.findVerifyingKey(kid), "a live token is accepted by every node");
        this.#tally.accepted++;
      } else if (nowMs - revokedMs > LOOKED_MS) {
        assert.equal(ring.findVerifyingKey(kid), undefined, "a token of a revoked key is rejected");
        this.#tally.rejected++;
      }
    }
  }

  async #ask(i: number): Promise<void> {
    const { nowMs } = this.#kit;
    const kept = this.#kept[i];
    assert.ok(kept);
    if (nowMs >= kept.untilMs) {
      const ring = await this.#awake(i);
      await ring.refresh();
      kept.kids = new Set(ring.listPublicJwks().map(({ kid }) => String(kid)));
      kept.untilMs = nowMs + MAX_AGE_MS;
    }
    for (const { kid } of this.#live(nowMs)) {
      if (this.#revokedMs.has(kid)) continue;
      if (nowMs - (this.#suddenMs.get(kid) ?? 0) <= MAX_AGE_MS + LOOKED_MS) continue;
      assert.ok(kept.kids.has(kid), "a live token is accepted by those who keep keys for max-age");
      this.#tally.acceptedElsewhere++;
    }
  }

  async #revoke(pick: number): Promise<void> {
    const rows = await this.#kit.rows();
    const { kid } = rows[pick % rows.length] ?? assert.fail("there is no key");
    const spare = await this.#newKey();
    // Nodes may do so at the same moment.
    const [{ replaced }] = await Promise.all([
      this.#kit.store.write((tx) => revokeKey(tx, kid, spare)),
      this.#advanceKeys(0),
      this.#advanceKeys(1),
    ]);
    this.#revokedMs.set(kid, this.#kit.nowMs);
    if (replaced) this.#suddenMs.set(spare.kid, this.#kit.nowMs);
  }
}
