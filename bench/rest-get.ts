// REST: GET of a group, with token, authorization and read, against node:http
// answering with the same bytes from memory.
//
//   node --import tsx bench/rest-get.ts [--rows 100000] [--rounds 5] [--seconds 3] [--service dist/main.js]
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { openSqlite } from "../src/store/sqlite/open.js";
import { printConditions } from "./conditions.js";
import { freePort, requireTools, runLoad, startServer } from "./processes.js";
import { compare, judge, type LoadResult } from "./rounds.js";
import { firstLevel, IDENTITIES, readerBinding, seed } from "./seed.js";
import { type Service, startService } from "./service.js";
import { targetsIn } from "./targets.js";

const READERS = IDENTITIES - 1;
const TARGETS = 50_000;
const CONNECTIONS = 32;
const GOAL = 0.38;

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "100000" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "3" },
    service: { type: "string" },
  },
});
requireTools("wrk", "taskset");

const seeded = await seed(Number(values.rows));
printConditions({ directory: seeded.directory, rows: seeded.tree.groups, tokens: READERS });
const scratch = mkdtempSync(join(tmpdir(), "arbor-rest-get-"));
const service = await startService(seeded, values.service);
try {
  const script = writeScript();
  const body = join(scratch, "body.json");
  const sample = await get(service.tokens[0], seeded.tree.root);
  writeFileSync(body, sample.body);
  const port = await freePort();
  const fixed = await startServer([
    fileURLToPath(new URL("./peers/fixed-json.mjs", import.meta.url)),
    String(port),
    body,
  ]);
  console.log(`bodies of ${sample.body.length} bytes, ${TARGETS} different requests over ${CONNECTIONS} connections`);
  try {
    const { ratio } = await compare(
      [
        { name: "arbor", server: service.server, load: (seconds) => wrk(service.url, script, seconds) },
        { name: "node:http", server: fixed, load: (seconds) => wrk(`http://127.0.0.1:${port}`, script, seconds) },
      ],
      { rounds: Number(values.rounds), seconds: Number(values.seconds), warmUpSeconds: 2 },
    );
    judge("ratio of rates", ratio, { atLeast: GOAL });
    await revokeUnderLoad(service, script);
  } finally {
    await fixed.stop();
  }
} finally {
  await service.server.stop();
  rmSync(scratch, { recursive: true });
}

/** A script for wrk that requests all targets in order; it builds the requests before the measurement. */
function writeScript(): string {
  const requests = join(scratch, "requests.txt");
  const lines = targetsIn(seeded, READERS, TARGETS).map(({ uid, reader }) => `${uid} ${service.tokens[reader]}`);
  writeFileSync(requests, lines.join("\n"));
  const script = join(scratch, "get.lua");
  writeFileSync(
    script,
    `local requests = {}
function init()
  for line in io.lines("${requests}") do
    local uid, token = line:match("(%S+) (%S+)")
    requests[#requests + 1] = wrk.format("GET", "/iam/v2beta1/groups/" .. uid, { authorization = "Bearer " .. token })
  end
end
local i = 0
function request()
  i = i % #requests + 1
  return requests[i]
end
`,
  );
  return script;
}

async function wrk(url: string, script: string, seconds: number): Promise<LoadResult> {
  const args = ["-t1", `-c${CONNECTIONS}`, `-d${seconds}s`, "-s", script, url];
  const output = await runLoad("wrk", args);
  const number = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
  const requests = number(/(\d+) requests in/);
  const requestsPerSecond = number(/Requests\/sec:\s+([\d.]+)/);
  if (/Non-2xx|Socket errors/.test(output) || !(requestsPerSecond > 0))
    throw new Error(`wrk: not all is well\n${output}`);
  return { requests, requestsPerSecond };
}

async function get(token: string | undefined, uid: string): Promise<{ status: number; body: string }> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${service.url}/iam/v2beta1/groups/${uid}`, { headers });
  return { status: response.status, body: await response.text() };
}

/** After another process deletes a binding under load, the next call that needs it must fail. */
async function revokeUnderLoad({ url, tokens }: Service, script: string): Promise<void> {
  const { directory, tree } = seeded;
  const binding = readerBinding(tree, firstLevel(seeded), READERS);
  const call = async () => (await get(tokens[READERS], binding.groupUid)).status;
  const load = wrk(url, script, 6);
  const before = [await call(), await call()];
  const unbind = fileURLToPath(new URL("./unbind.ts", import.meta.url));
  await promisify(execFile)(process.execPath, ["--import", "tsx", unbind, directory, binding.uid]);
  try {
    const after = await call();
    const { requests } = await load;
    console.log(`\nbinding deleted by another process during ${requests} requests: ${before.join(" ")}, then ${after}`);
    if (before.some((status) => status !== 200) || after !== 403) throw new Error("a deleted binding did not count");
  } finally {
    const store = openSqlite({ directory });
    await store.write((tx) => tx.roleBindings.insert(binding));
    await store.close();
  }
}
