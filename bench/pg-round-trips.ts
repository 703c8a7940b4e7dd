// How often a call waits for PostgreSQL, and for how long, in this checkout and another one.
//
//   node scripts/with-pg.mjs node --import tsx bench/pg-round-trips.ts --against DIRECTORY [--delay 1] [--calls 200]
//
// Both services reach the server through a proxy that counts how often the direction changes, and can delay each response by
// some milliseconds, as a network does. Calls are sent one after another.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { median } from "./figures.js";
import { createDatabase } from "./pg-database.js";
import { build, type Side, startSide } from "./side.js";

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    delay: { type: "string", default: "1" },
    calls: { type: "string", default: "200" },
    "no-build": { type: "boolean", default: false },
  },
});
const [delayMs, calls] = [Number(values.delay), Number(values.calls)];
if (values.against === undefined || !(delayMs >= 0 && calls > 0)) {
  console.error("usage: pg-round-trips.ts --against DIRECTORY [--delay MS] [--calls N]");
  process.exit(2);
}
const checkouts = { a: fileURLToPath(new URL("..", import.meta.url)), b: resolve(values.against) };
if (!values["no-build"]) for (const checkout of Object.values(checkouts)) await build(checkout);
const scratch = mkdtempSync(join(tmpdir(), "arbor-round-trips-"));
try {
  for (const [name, checkout] of Object.entries(checkouts)) {
    const url = new URL(await createDatabase());
    const proxy = await startProxy(url);
    url.port = String(proxy.port);
    const side = await startSide(name, checkout, scratch, { databaseUrl: url.href });
    try {
      const { GET, PATCH } = await measure(side, proxy);
      console.log(`${name}: ${checkout}\n  GET ${GET}\n  PATCH ${PATCH}`);
    } finally {
      await side.stop();
      proxy.close();
    }
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function measure(
  side: Side,
  proxy: Awaited<ReturnType<typeof startProxy>>,
): Promise<Record<"GET" | "PATCH", string>> {
  const addresses = readFileSync(side.addresses, "utf8").split("\n");
  const headers = { authorization: `Bearer ${side.token}`, "content-type": "application/json" };
  const call = async (method: string, i: number) => {
    const body = method === "GET" ? {} : { body: JSON.stringify({ description: `description ${i}` }) };
    const response = await fetch(addresses[i % addresses.length] ?? "", { method, headers, ...body });
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    await response.text();
  };
  const run = async (method: string) => {
    for (let i = 0; i < 300; i++) await call(method, i);
    // Background jobs have connections too, and are seldom.
    const [tripsBefore, times] = [proxy.trips(), [] as number[]];
    proxy.delayMs = delayMs;
    for (let i = 0; i < calls; i++) {
      const startMs = performance.now();
      await call(method, i);
      times.push(performance.now() - startMs);
    }
    await sleep(2 * delayMs + 5);
    proxy.delayMs = 0;
    const trips = (proxy.trips() - tripsBefore) / calls;
    return `${median(times).toFixed(2)} ms with ${delayMs} ms for each response; ${trips.toFixed(2)} turns of the connection`;
  };
  return { GET: await run("GET"), PATCH: await run("PATCH") };
}

async function startProxy({ hostname, port }: URL) {
  let trips = 0;
  const state = { delayMs: 0 };
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    client.setNoDelay();
    upstream.setNoDelay();
    let isAsking = false;
    client.on("data", (chunk) => {
      isAsking = true;
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      if (isAsking) trips++;
      isAsking = false;
      // Timers of the same length fire in their order.
      if (state.delayMs === 0) client.write(chunk);
      else setTimeout(() => client.write(chunk), state.delayMs);
    });
    client.on("error", () => {}).on("close", () => upstream.destroy());
    upstream.on("error", () => {}).on("close", () => client.destroy());
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return Object.assign(state, {
    port: (server.address() as AddressInfo).port,
    trips: () => trips,
    close: () => server.close(),
  });
}
