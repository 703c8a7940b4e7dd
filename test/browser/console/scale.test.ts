// Large organisations: what the browser holds does not grow with what is stored, nor with the pages that a person turns. Times
// are printed and not judged. ROWS is the length of the longest list, such as 1000000.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { CDPSession, Page } from "playwright-core";
import { type GroupRow, groupKind } from "../../../src/store/iam/groups.js";
import { type IdentityRow, identityKind } from "../../../src/store/iam/identities.js";
import type { Tx } from "../../../src/store/transaction.js";
import { childUid, groupRow, identityRow } from "../../support/rows.js";
import { ada, type ConsoleWorld, type Person, startConsoleWorld } from "./world.js";

const ROWS = Number(process.env.ROWS ?? 20_000);
/** The children of the largest group. With the other groups, which are in areas, there are more than 100,000. */
const CROWD = 10_000;
const AREAS = 90;
const GROUPS_PER_AREA = 1_000;
const PAGE_SIZE = 50;
const TURNS = 100;
const MAX_ELEMENTS = 2_500;
const MAX_GROWTH_BYTES = 5e6;
const MAX_SHELL_BYTES = 200 * 1024;
/** How many rows a transaction stores. */
const BATCH = 5_000;

let world: ConsoleWorld;
let person: Person;
let page: Page;
let devtools: CDPSession;
let org: string;
let crowd: string;
let fleet: string;

before(async () => {
  world = await startConsoleWorld();
  ({ group: org } = await world.organisation("acme.example", ada));
  crowd = childUid(org, 1);
  fleet = childUid(org, 2);
  const startMs = performance.now();
  const groups = await store(listGroups(), (tx, row) => tx.table(groupKind).insert(row));
  const workloads = await store(listWorkloads(), (tx, row) => tx.table(identityKind).insert(row));
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  console.log(`stored ${count(groups)} groups and ${count(workloads)} workloads in ${seconds} s`);
  person = await world.person({ viewport: { width: 1440, height: 900 }, locale: "en-US" });
  page = person.page;
  devtools = await person.context.newCDPSession(page);
});
after(() => world?.stop());

function* listGroups(): Generator<GroupRow> {
  yield groupRow(crowd, { name: "crowd" });
  yield groupRow(fleet, { name: "fleet" });
  for (let n = 0; n < CROWD; n++) yield groupRow(childUid(crowd, n), { name: `team ${pad(n)}` });
  for (let area = 0; area < AREAS; area++) {
    const uid = childUid(org, 10 + area);
    yield groupRow(uid, { name: `area ${pad(area)}` });
    for (let n = 0; n < GROUPS_PER_AREA; n++) yield groupRow(childUid(uid, n), { name: `project ${pad(n)}` });
  }
}

function* listWorkloads(): Generator<IdentityRow> {
  const issuer = "https://token.actions.githubusercontent.com";
  for (let n = 0; n < ROWS; n++) {
    const relationship = { claimMatch: { issuer, subject: `repo:acme/${pad(n)}:ref:refs/heads/main` } };
    yield identityRow(childUid(fleet, n), { name: `workload ${pad(n)}`, relation: 1, relationship });
  }
}

async function store<Row>(rows: Iterable<Row>, insert: (tx: Tx, row: Row) => Promise<void>): Promise<number> {
  let [stored, batch]: [number, Row[]] = [0, []];
  const flush = async () => {
    const inserted = batch;
    await world.harness.app.installation.store.write(async (tx) => {
      for (const row of inserted) await insert(tx, row);
    });
    stored += batch.length;
    batch = [];
  };
  for (const row of rows) {
    batch.push(row);
    if (batch.length === BATCH) await flush();
  }
  await flush();
  return stored;
}

const pad = (n: number) => String(n).padStart(7, "0");
const count = (n: number) => n.toLocaleString("en-US");

/** Waits until the page that begins with this row of a list is shown. */
async function awaitPage(from: number, total = ROWS): Promise<void> {
  const range = `Rows ${count(from)} to ${count(from + PAGE_SIZE - 1)} of ${count(total)}`;
  await page.getByRole("status").getByText(range, { exact: true }).waitFor();
}

async function turnPages(start: number, turns: number): Promise<void> {
  for (let n = 1; n <= turns; n++) {
    await page.getByRole("button", { name: "Next page" }).click();
    await awaitPage(start + n * PAGE_SIZE);
  }
}

async function countElements(): Promise<number> {
  return (await page.evaluate('document.querySelectorAll("*").length')) as number;
}

/** The bytes of the objects that scripts of the page still reach. */
async function measureHeap(): Promise<number> {
  await devtools.send("HeapProfiler.collectGarbage");
  return (await devtools.send("Runtime.getHeapUsage")).usedSize;
}

/** Notes the requests to the service from now on. */
async function watchRequests() {
  const origins = new Map<string, string>();
  const seen = { requests: 0, bytes: 0, encodings: new Set<string>() };
  devtools.on("Network.requestWillBeSent", ({ requestId, request }) =>
    origins.set(requestId, new URL(request.url).origin),
  );
  devtools.on("Network.responseReceived", ({ requestId, response }) => {
    if (origins.get(requestId) !== world.url) return;
    seen.requests++;
    seen.encodings.add(response.headers["content-encoding"] ?? response.headers["Content-Encoding"] ?? "none");
  });
  devtools.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (origins.get(requestId) === world.url) seen.bytes += encodedDataLength;
  });
  await devtools.send("Network.enable");
  return seen;
}

test("sign-in and the shell are small", async () => {
  const seen = await watchRequests();
  await world.signIn(person, ada);
  await page.getByRole("main").getByText("acme.example").waitFor();
  await page.waitForLoadState("networkidle");
  console.log(`sign-in and the shell: ${seen.requests} requests, ${count(seen.bytes)} bytes`);
  assert.ok(seen.encodings.has("br"), [...seen.encodings].join());
  // Scripts and styles alone are more than this, so that the measure does see them.
  assert.ok(seen.bytes > 50_000, `${seen.bytes} bytes`);
  assert.ok(seen.bytes <= MAX_SHELL_BYTES, `${seen.bytes} bytes`);
});

test("the tree shows a part of 10,000 groups", async () => {
  await page.goto(`/console/groups/${childUid(crowd, 0)}`);
  const tree = page.getByRole("tree", { name: "Groups" });
  await tree.getByText(`All ${CROWD} groups…`).waitFor();
  await tree.getByText(`team ${pad(99)}`).waitFor();
  const elements = await countElements();
  console.log(`a tree with an open group of ${count(CROWD)}: ${elements} elements`);
  assert.ok(elements <= MAX_ELEMENTS, `${elements} elements`);
  await tree.getByText(`All ${CROWD} groups…`).click();
  await awaitPage(1, CROWD);
  assert.ok((await countElements()) <= MAX_ELEMENTS);
});

describe("a long list", () => {
  before(async () => {
    await page.goto(`/console/groups/${fleet}?view=identities`);
    await awaitPage(1);
  });

  test("takes no more memory and no more elements after 100 pages", async () => {
    await turnPages(1, 3);
    const [heap, elements] = [await measureHeap(), await countElements()];
    await turnPages(1 + 3 * PAGE_SIZE, TURNS);
    const [growth, after] = [(await measureHeap()) - heap, await countElements()];
    console.log(
      `${TURNS} pages of ${count(ROWS)} rows: ${count(heap)} bytes, then ${count(growth)} more; ${after} elements`,
    );
    assert.ok(growth < MAX_GROWTH_BYTES, `${growth} bytes more`);
    assert.ok(after <= MAX_ELEMENTS, `${after} elements`);
    assert.equal(after, elements);
  });

  test("goes back by a page, and stays on it when it is loaded again", async () => {
    const here = 1 + (3 + TURNS) * PAGE_SIZE;
    await page.goBack();
    await awaitPage(here - PAGE_SIZE);
    await page.reload();
    await awaitPage(here - PAGE_SIZE);
    await page.getByRole("button", { name: "Back", exact: true }).click();
    await awaitPage(here - 2 * PAGE_SIZE);
    await page.goForward();
    await awaitPage(here - PAGE_SIZE);
  });

  test("the controls: the measures see more elements and more memory", async () => {
    const heap = await measureHeap();
    await page.evaluate(`
      for (let n = 0; n < ${MAX_ELEMENTS}; n++) document.body.append(document.createElement("i"));
      window.kept = Array.from({ length: 200_000 }, (_, n) => ({ n, text: "row " + n }));
    `);
    assert.ok((await countElements()) > MAX_ELEMENTS);
    assert.ok((await measureHeap()) - heap > MAX_GROWTH_BYTES);
  });
});

test("what a slow processor has to do is printed", async () => {
  await page.addInitScript(`
    window.longTasks = [];
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longTasks.push(Math.round(duration));
    }).observe({ type: "longtask", buffered: true });
  `);
  await devtools.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  const seen = await watchRequests();
  const steps: Record<string, () => Promise<unknown>> = {
    "the organisations": async () => {
      await page.goto("/console/");
      await page.getByRole("main").getByText("acme.example").waitFor();
    },
    "the list": async () => {
      await page.goto(`/console/groups/${fleet}?view=identities`);
      await awaitPage(1);
    },
    "its next page": () => turnPages(1, 1),
  };
  for (const [name, step] of Object.entries(steps)) {
    const requests = seen.requests;
    await step();
    await page.waitForLoadState("networkidle");
    const tasks = (await page.evaluate("window.longTasks.splice(0)")) as number[];
    console.log(
      `${name}, at a quarter of the speed: ${seen.requests - requests} requests, long tasks in ms: ${tasks.join(" ")}`,
    );
  }
  assert.deepEqual(person.complaints, []);
});
