// Attacks a running service while an honest client calls it: builds the service,
// then runs test/hostile, one file after the other.
//   npm run campaign -- hostile [--campaign | --short] [--workers N] [FILE...]
// With --campaign the honest client makes 3,000 calls during each attack in place of
// 1,000, and the combined attack takes 5 minutes in place of one. With --short, for
// shared machines, it makes 300, the combined attack takes 15 seconds, and times are
// only printed. With --workers the service has so many, none of which may end.
//   HOSTILE_ROOT     another built checkout to attack, such as the commit before
//   HOSTILE_CALLS    calls of the honest client during each attack
//   HOSTILE_SECONDS  duration of the combined attack
//   HOSTILE_WORKERS  the same as --workers
//   HOSTILE_TIMES    "reported": times are only printed
//   HOSTILE_RESULTS  a file for a line of JSON per row
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values: given, positionals: named } = parseArgs({
  options: { campaign: { type: "boolean" }, short: { type: "boolean" }, workers: { type: "string" } },
  allowPositionals: true,
});
const folder = join("test", "hostile");
const files = named.length > 0 ? named : testsIn(folder);
const env = {
  ...process.env,
  HOSTILE_BUILT: "1",
  ...(given.workers !== undefined && { HOSTILE_WORKERS: given.workers }),
  ...(given.campaign && { HOSTILE_CAMPAIGN: "1" }),
  ...(given.short && {
    HOSTILE_CALLS: "300",
    HOSTILE_SECONDS: "15",
    HOSTILE_TIMES: "reported",
  }),
};

if (process.env.HOSTILE_ROOT === undefined) run("npm", ["run", "-s", "build"]);
run(process.execPath, ["--import", "tsx", "--test", "--test-concurrency=1", ...files]);

function testsIn(directory) {
  const names = readdirSync(directory, { recursive: true }).filter((name) => name.endsWith(".test.ts"));
  return names.map((name) => join(directory, name)).sort();
}

function run(program, args) {
  const { status } = spawnSync(program, args, { stdio: "inherit", env });
  if (status !== 0) process.exit(status ?? 1);
}
