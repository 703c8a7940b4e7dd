// The service of bench/events.ts: `DATA`. It makes organisations and, when it is told, subscriptions; and it tells what
// processor time it has taken.
import { randomIds } from "../src/kernel/ids.js";
import { RECEIVER_SETTINGS } from "../test/events/receiver.js";
import { startHarness } from "../test/support/harness.js";

const [data = ""] = process.argv.slice(2);
const harness = await startHarness({ ...RECEIVER_SETTINGS, data, tokenAlgorithm: "RS256" });
const { store } = harness.app.installation;

type Request =
  | { readonly kind: "organisations"; readonly count: number }
  | { readonly kind: "subscribe"; readonly groups: readonly string[]; readonly sinks: readonly string[] }
  | { readonly kind: "usage" };

process.on("message", async (request: Request) => {
  switch (request.kind) {
    case "organisations": {
      const made = [];
      for (let i = 0; i < request.count; i++) made.push(await harness.organisation(`bench ${i}`));
      return process.send?.({ url: harness.url, made });
    }
    case "subscribe": {
      const times = { createTimeMs: Date.now(), updateTimeMs: Date.now() };
      for (const [i, groupUid] of request.groups.entries()) {
        const row = { uid: randomIds.newUid(groupUid), groupUid, sink: request.sinks[i] ?? "", ...times };
        await store.write((tx) => tx.subscriptions.insert(row));
      }
      return process.send?.({});
    }
    case "usage": {
      const { user, system } = process.cpuUsage();
      return process.send?.({ cpuMs: (user + system) / 1_000, rss: process.memoryUsage.rss() });
    }
  }
});
process.send?.({});
