// The page at /docs in a real browser: everything is shown, nothing is refused by
// the page's own policy, and nothing is asked of anybody else. Needs chromium.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Harness, startHarness } from "../support/harness.js";
import { operationsOf, type PlacedOperation } from "../support/openapi/document.js";
import { readDocument } from "../support/openapi/request.js";
import { tempDir } from "../support/temp-dir.js";

const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const TIMEOUT_MS = 60_000;

// Nothing of the browser's own may go out, and its own host name leads nowhere but to the page.
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  "--virtual-time-budget=5000",
  "--enable-logging=stderr",
];

const sizes = ["1280,900", "390,844"] as const;

let harness: Harness;
let operations: readonly PlacedOperation[] = [];

before(async () => {
  assert.ok(existsSync(BROWSER), `no browser at ${BROWSER}: apt-get install chromium, or name one in CHROMIUM`);
  harness = await startHarness();
  operations = operationsOf(await readDocument(harness.url));
});

after(() => harness?.stop());

for (const size of sizes) {
  test(`every operation is shown at ${size}`, async () => {
    const { dom, log } = await browse(`${harness.url}/docs`, size, ["--dump-dom"]);
    for (const { path, method, operationId } of operations) {
      assert.ok(dom.includes(`data-path="${path}"`), `${method} ${path} is not there`);
      assert.ok(dom.includes(`-${operationId}"`), `${operationId} is not there`);
    }
    assert.equal(dom.split('class="opblock opblock-').length - 1, operations.length);
    assert.deepEqual(complaints(log), []);
  });

  test(`the page can be painted at ${size}`, async () => {
    const file = join(tempDir(), "docs.png");
    const { log } = await browse(`${harness.url}/docs`, size, [`--screenshot=${file}`]);
    assert.ok(statSync(file).size > 20_000, "there is hardly anything on the picture");
    assert.deepEqual(complaints(log), []);
  });
}

test("an operation opens by its address, with parameters, example and answers", async () => {
  const create = operations.find(({ operationId }) => operationId === "v2beta1_GroupsService_CreateGroup");
  assert.ok(create);
  const url = `${harness.url}/docs#/${create.tags[0]}/${create.operationId}`;
  const { dom, log } = await browse(url, sizes[0], ["--dump-dom"]);
  for (const text of ["Parameters", "Request body", "What it is for", "4XX", "Try it out"]) {
    assert.ok(dom.includes(text), `${text} is not there`);
  }
  assert.deepEqual(complaints(log), []);
});

// What the console says, but for advice on addresses that nobody here writes.
function complaints(log: string): string[] {
  return log.split("\n").filter((line) => line.includes("CONSOLE") && !line.includes("escaping deep link whitespace"));
}

function browse(url: string, size: string, more: readonly string[]): Promise<{ dom: string; log: string }> {
  return new Promise((resolve, reject) => {
    const args = [...FLAGS, `--user-data-dir=${tempDir()}`, `--window-size=${size}`, ...more, url];
    const child = spawn(BROWSER, args, { timeout: TIMEOUT_MS });
    let dom = "";
    let log = "";
    child.stdout.on("data", (chunk: Buffer) => {
      dom += chunk;
    });
    child.stderr.on("data", (chunk: Buffer) => {
      log += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve({ dom, log }) : reject(new Error(`chromium: ${code} ${log}`))));
  });
}
