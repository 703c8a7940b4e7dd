// Checks that `arbor copy` goes on after SIGKILL at random moments and ends with the digests of a copy that was not killed.
// Needs PostgreSQL:
//
//   node scripts/with-pg.mjs node scripts/copy-kills.mjs [--groups N] [--kills N] [--seed N]
//
// Half of the kills are on the way to PostgreSQL, and half on the way back.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { register } from "tsx/esm/api";

const { values } = parseArgs({
  options: {
    groups: { type: "string", default: "20000" },
    kills: { type: "string", default: "20" },
    seed: { type: "string", default: String(Date.now() % 100_000) },
  },
});
const [groups, kills, seedNumber] = [values.groups, values.kills, values.seed].map(Number);
if (![groups, kills, seedNumber].every((n) => Number.isInteger(n) && n > 0)) {
  console.error("copy-kills: --groups, --kills and --seed must be whole numbers above 0");
  process.exit(2);
}
register();
const { seed } = await import("../bench/seed.ts");
const { emptyDatabase } = await import("../test/pg/databases.ts");
const { runKills } = await import("../test/store/copy/kill-campaign.ts");
const { createRandom } = await import("../test/support/openapi/random.ts");

console.log(`copy-kills: seed ${seedNumber}`);
const draw = createRandom(seedNumber).int;
const random = () => draw(10_000) / 10_000;
const { directory } = await seed(groups);
const scratch = mkdtempSync(join(tmpdir(), "arbor-copy-kills-"));
const masterKey = ["--master-key-file", join(directory, "master.key")];
const urls = [];
let count = 0;
let isSound = true;
try {
  await run("SQLite to PostgreSQL", ["--data", directory], Math.ceil(kills / 2), async () => {
    const url = await emptyDatabase();
    urls.push(url);
    return { to: url, flags: ["--database-url", url, ...masterKey] };
  });
  await run("PostgreSQL to SQLite", ["--database-url", urls[0], ...masterKey], Math.floor(kills / 2), async () => {
    const to = join(scratch, String(count++));
    return { to, flags: ["--data", to, ...masterKey] };
  });
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(isSound ? 0 : 1);

async function run(direction, from, number, createTarget) {
  const result = await runKills({ from, createTarget, kills: number, random });
  const { unfinished, resumed, completed, violations } = result;
  for (const violation of violations.slice(0, 5)) console.error(`copy-kills: ${violation}`);
  console.log(
    `${direction}: killed ${result.kills} times, ${unfinished} targets were unfinished and rejected, ${resumed} runs went ` +
      `on, ${completed} copies completed with equal digests and a sound check, ${violations.length} violations`,
  );
  // Where nothing was unfinished, the campaign proves nothing.
  isSound &&= violations.length === 0 && unfinished > 0 && resumed > 0;
}
