// How long page tokens live (docs/api-rules.md#page-tokens).
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { generatePageTokenKey } from "../../src/issuer/keys/key-generation.js";
import { rotateKey } from "../../src/issuer/keys/key-states.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { type Harness, startHarness } from "../support/harness.js";
import { childUid, groupRow } from "../support/rows.js";
import { invalid } from "./expectations.js";
import { type RestResponse, restAs } from "./rest.js";

const LIFE_MS = 3 * 24 * 60 * 60 * 1000;
const ROWS = 12;
const forged = invalid(["pageToken", "pageToken is not one this service made"]);

let harness: Harness;
let halls = 0;
let identity: string;
let hall: string;

before(async () => {
  harness = await startHarness();
});

beforeEach(async () => {
  harness.skewMs = 0;
  ({ group: hall, identity } = await harness.organisation(`hall ${halls++}`));
  await harness.app.installation.store.write(async (tx) => {
    for (let n = 0; n < ROWS; n++) await tx.table(groupKind).insert(groupRow(childUid(hall, n), { name: name(n) }));
  });
});

after(() => harness.stop());

function name(n: number): string {
  return `row ${String(n).padStart(2, "0")}`;
}

/** The names of rows from `first` to before `end`. */
function rows(first: number, end: number): string[] {
  return Array.from({ length: end - first }, (_, i) => name(first + i));
}

interface ListResponse extends RestResponse {
  readonly names: readonly string[];
  readonly next: string;
}

// Tokens of callers run out long before page tokens, so every call has a new one.
async function list(query: string, pageToken = ""): Promise<ListResponse> {
  const call = restAs(harness.url, await harness.token(identity));
  const response = await call(
    "GET",
    `/groups?uidp.children_of=${hall}&${query}&page_token=${encodeURIComponent(pageToken)}`,
  );
  const { groups = [], nextPageToken = "" } = (response.json ?? {}) as {
    readonly groups?: readonly { readonly name: string }[];
    readonly nextPageToken?: string;
  };
  return { ...response, names: groups.map((group) => group.name), next: nextPageToken };
}

async function rotate(): Promise<void> {
  const { store, keys, masterKey, clock } = harness.app.installation;
  await store.write((tx) => rotateKey(tx, generatePageTokenKey(masterKey, clock())));
  await keys.refresh();
}

describe("page tokens", () => {
  it("go on after a clock that went back", async () => {
    const first = await list("page_size=5");
    harness.skewMs = -60_000;
    assert.deepEqual((await list("page_size=5", first.next)).names, rows(5, 10));
    harness.skewMs = -LIFE_MS;
    assert.deepEqual((await list("page_size=5", first.next)).names, rows(0, 5));
  });

  it("outlive the key they were sealed with", async () => {
    const first = await list("page_size=5");
    const madeMs = Date.now();
    for (let i = 0; i < 3; i++) await rotate();
    const second = await list("page_size=5", first.next);
    assert.deepEqual([second.status, second.names], [200, rows(5, 10)]);
    assert.notEqual(second.next.slice(0, 11), first.next.slice(0, 11), "a new key seals");
    assert.deepEqual((await list("page_size=5", second.next)).names, rows(10, ROWS));
    harness.skewMs = LIFE_MS + 1_000 - (Date.now() - madeMs);
    const late = await list("page_size=5", first.next);
    assert.deepEqual([late.status, late.names], [200, rows(0, 5)], "restarts, with no error");
  });

  const walks = [
    { query: "page_size=5", skip: 0 },
    { query: "page_size=4", skip: 0 },
    { query: "page_size=1&order_by=name", skip: 0 },
    { query: "page_size=5&skip=3", skip: 3 },
    { query: "page_size=3&order_by=created_at&skip=6", skip: 6 },
    { query: "page_size=200&skip=11", skip: 11 },
  ];
  for (const { query, skip } of walks) {
    it(`lose and repeat nothing: ${query}`, async () => {
      const names: string[] = [];
      let pageToken = "";
      do {
        const response = await list(query, pageToken);
        assert.deepEqual([response.json?.totalCount, response.json?.skipped], [String(ROWS), skip]);
        names.push(...response.names);
        pageToken = response.next;
      } while (pageToken !== "" && names.length <= ROWS);
      assert.deepEqual(names, rows(skip, ROWS));
    });
  }

  it("keep their place when rows come and go", async () => {
    const first = await list("page_size=5&order_by=name");
    await harness.app.installation.store.write(async (tx) => {
      for (const gone of [4, 5]) {
        const row = await tx.table(groupKind).find(childUid(hall, gone));
        if (row) await tx.table(groupKind).delete(row.uid);
      }
      await tx.table(groupKind).insert(groupRow(childUid(hall, 90), { name: "row 00 a" }));
      await tx.table(groupKind).insert(groupRow(childUid(hall, 91), { name: "row 06 a" }));
    });
    const second = await list("page_size=5&order_by=name", first.next);
    assert.deepEqual(second.names, ["row 06", "row 06 a", "row 07", "row 08", "row 09"]);
  });

  const tampered: readonly { name: string; change: (token: string) => string }[] = [
    { name: "nonsense", change: () => "nonsense" },
    { name: "an empty sealing", change: (token) => token.slice(0, 11) },
    { name: "a cut token", change: (token) => token.slice(0, -1) },
    { name: "a longer token", change: (token) => `${token}A` },
    { name: "padding", change: (token) => `${token}=` },
    { name: "a blank", change: (token) => `${token} ` },
    { name: "another key", change: (token) => `AAAAAAAAAAA${token.slice(11)}` },
    { name: "10,000 characters", change: () => "A".repeat(10_000) },
    { name: "no ASCII", change: () => "ü\u0001" },
  ];
  for (const { name: what, change } of tampered) {
    it(`are refused with ${what}, however old`, async () => {
      const { next } = await list("page_size=5");
      for (const skewMs of [0, LIFE_MS + 1_000]) {
        harness.skewMs = skewMs;
        assert.deepEqual((await list("page_size=5", change(next))).outcome, forged);
      }
    });
  }

  it("are refused with any character changed", async () => {
    const { next } = await list("page_size=5");
    for (let i = 0; i < next.length; i += 7) {
      const changed = next.slice(0, i) + (next[i] === "A" ? "B" : "A") + next.slice(i + 1);
      assert.deepEqual((await list("page_size=5", changed)).outcome, forged, `at ${i}`);
    }
  });
});
