// Syncs many tags from a stock registry, with several kills by kill -9 in between:
//
//   node scripts/sync-100k.mjs [--tags N] [--repos N] [--kills N]
//
// The registry is docker-registry. This script writes its storage directory in the
// registry's format. At the end every tag must exist once, with its digest.
import { parseArgs } from "node:util";
import { register } from "tsx/esm/api";

const { values } = parseArgs({
  options: {
    tags: { type: "string", default: "100000" },
    repos: { type: "string", default: "100" },
    kills: { type: "string", default: "2" },
  },
});
const [tags, repos, kills] = [values.tags, values.repos, values.kills].map(Number);
if (![tags, repos].every((n) => Number.isInteger(n) && n > 0) || !Number.isInteger(kills) || kills < 0) {
  console.error("sync-100k: --tags and --repos must be whole numbers above 0, --kills one from 0");
  process.exit(2);
}
register();
const { runSyncCampaign } = await import("../test/registry-e2e/sync-campaign.ts");
const { problems } = await runSyncCampaign({ tags, repos, kills, say: (line) => console.log(line) });
for (const problem of problems) console.error(`sync-100k: ${problem}`);
process.exit(problems.length === 0 ? 0 : 1);
