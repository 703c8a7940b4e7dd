// How long a start takes, and what it leaves to the first calls. A bare `node:http` server, the service on existing data
// and the service on a new directory are started in turn.
//
//   npm run bench -- boot [--runs 15] [--against DIRECTORY]
//
// --against measures another built checkout beside this one. A Node that can keep compiled code (22.8 and newer) is measured
// with and without it.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import * as nodeModule from "node:module";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, promisify } from "node:util";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { connectTo, staticToken } from "../src/client/index.js";
import { environmentWithoutSettings, PROJECT } from "../test/support/project.js";
import { judge, median } from "./figures.js";

const IDLE_MS = 5_000;
const GOALS = { existingMs: 300, existingRatio: 5, newMs: 600, residentMebibytes: 105 };

const BARE = `import { createServer } from "node:http";
const server = createServer((_request, response) => response.end("ok"));
server.listen(0, "127.0.0.1", () => console.log("http://127.0.0.1:" + server.address().port));
`;

/** What is started. */
interface Candidate {
  readonly name: string;
  readonly args: (data: string) => readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Its data, with a token for it; each start has a new directory without. */
  readonly existing?: { readonly data: string; readonly token: string };
}

/** What is measured; times are in milliseconds. */
type Measure = "ready" | "resident MiB" | "first REST" | "first gRPC";
type Measured = ReadonlyMap<string, Record<Measure, number[]>>;

const { values } = parseArgs({ options: { runs: { type: "string", default: "15" }, against: { type: "string" } } });
const runs = Number(values.runs);
const scratch = mkdtempSync(join(tmpdir(), "arbor-bench-boot-"));
const env = environmentWithoutSettings();
try {
  await measureAll();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function measureAll(): Promise<void> {
  console.log(`node ${process.version}, ${cpus().length} x ${cpus()[0]?.model.trim()}, medians of ${runs} starts each`);
  const bare = join(scratch, "bare.mjs");
  writeFileSync(bare, BARE);
  const candidates: readonly Candidate[] = [
    { name: "node:http", args: () => [bare], env },
    ...(await candidatesOf("", PROJECT)),
    ...(values.against === undefined ? [] : await candidatesOf(`, ${values.against}`, values.against)),
    ...("enableCompileCache" in nodeModule
      ? await candidatesOf(", compile cache", PROJECT, { NODE_COMPILE_CACHE: join(scratch, "compiled") })
      : []),
  ];
  // Before the first round the files are not in the memory of the system, and the client of this process is not warm.
  await runRound(candidates, -1);
  const measured: Measured = new Map(
    candidates.map(({ name }) => [name, { ready: [], "resident MiB": [], "first REST": [], "first gRPC": [] }]),
  );
  for (let run = 0; run < runs; run++) {
    for (const [name, one] of await runRound(candidates, run))
      for (const key of Object.keys(one) as Measure[]) measured.get(name)?.[key].push(one[key] ?? Number.NaN);
  }
  print(measured);
}

async function candidatesOf(
  suffix: string,
  checkout: string,
  more: Readonly<Record<string, string>> = {},
): Promise<readonly Candidate[]> {
  const main = join(checkout, "dist", "main.js");
  const data = mkdtempSync(join(scratch, "data-"));
  const where = ["--listen", "127.0.0.1:0", "--base-url", "http://127.0.0.1"];
  const bootstrap = [main, "bootstrap", "--org", "bench", "--json", "--data", data, ...where];
  const { stdout } = await promisify(execFile)(process.execPath, bootstrap, { env });
  const args = (directory: string) => [main, "serve", "--no-access-log", "--data", directory, ...where];
  return [
    {
      name: `existing data${suffix}`,
      args,
      env: { ...env, ...more },
      existing: { data, token: JSON.parse(stdout).token },
    },
    { name: `new data${suffix}`, args, env: { ...env, ...more } },
  ];
}

type Round = ReadonlyMap<string, Partial<Record<Measure, number>>>;

// One server idles while the next ones start: it uses no processor time.
async function runRound(candidates: readonly Candidate[], run: number): Promise<Round> {
  const pending: [string, Promise<Partial<Record<Measure, number>>>][] = [];
  for (const { name, args, existing, env: variables } of candidates) {
    const directory = existing?.data ?? join(scratch, `new ${pending.length} ${run}`);
    const first: Partial<Record<Measure, number>> = {};
    for (const [key, call] of existing
      ? ([
          ["first REST", callRest],
          ["first gRPC", callGrpc],
        ] as const)
      : []) {
      const server = await start(args(directory), variables);
      first[key] = await call(server.url, existing?.token ?? "").finally(server.stop);
    }
    const server = await start(args(directory), variables);
    const idle = sleep(IDLE_MS).then(() => server.residentMebibytes());
    pending.push([
      name,
      idle.finally(server.stop).then((resident) => ({ ...first, ready: server.readyMs, "resident MiB": resident })),
    ]);
  }
  return new Map(await Promise.all(pending.map(async ([name, measures]) => [name, await measures] as const)));
}

async function start(args: readonly string[], variables: NodeJS.ProcessEnv) {
  const startMs = performance.now();
  const child = spawn(process.execPath, args, { env: variables, stdio: ["ignore", "pipe", "ignore"] });
  const exited = once(child, "exit");
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), "line"),
    exited.then(([code]) => Promise.reject(new Error(`${args.join(" ")} ended with code ${code}`))),
  ])) as [string];
  return {
    readyMs: performance.now() - startMs,
    url: line.slice(line.indexOf("http://")),
    residentMebibytes() {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
    },
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

async function callRest(url: string, token: string): Promise<number> {
  const startMs = performance.now();
  const response = await fetch(`${url}/iam/v2beta1/groups`, { headers: { authorization: `Bearer ${token}` } });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${text}`);
  return performance.now() - startMs;
}

async function callGrpc(url: string, token: string): Promise<number> {
  const connection = connectTo({ baseUrl: url, token: staticToken(token) });
  const startMs = performance.now();
  try {
    await connection.client(GroupsService).listGroups({});
    return performance.now() - startMs;
  } finally {
    connection.close();
  }
}

function print(measured: Measured): void {
  const medians = [...measured].map(([name, one]) => {
    const of = (key: Measure) => (one[key].every(Number.isNaN) ? undefined : Math.round(10 * median(one[key])) / 10);
    const row = { ready: of("ready"), "resident MiB": of("resident MiB"), "first REST": of("first REST") };
    return [name, { ...row, "first gRPC": of("first gRPC") }] as const;
  });
  console.table(Object.fromEntries(medians));
  const [bare = Number.NaN, existing = Number.NaN, fresh = Number.NaN] = medians.map(([, { ready }]) => ready);
  const resident = medians[1]?.[1]["resident MiB"] ?? Number.NaN;
  judge("existing data, ms until ready", existing, { atMost: GOALS.existingMs });
  judge("existing data, of node:http", existing / bare, { atMost: GOALS.existingRatio });
  judge("new data, ms until ready", fresh, { atMost: GOALS.newMs });
  judge("idle, MiB", resident, { atMost: GOALS.residentMebibytes });
}
