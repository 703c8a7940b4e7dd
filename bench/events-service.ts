// The service of bench/events.ts: `DATA`. It makes organisations and, when it is told, subscriptions; and it tells what
// processor time it has taken.
import { randomIds } from "../src/kernel/ids.js";
import { groupKind } from "../src/store/iam/groups.js";
import { subscriptionKind } from "../src/store/iam/subscriptions.js";
import { RECEIVER_SETTINGS } from "../test/events/receiver.js";
import { startHarness } from "../test/support/harness.js";
import { groupRow } from "../test/support/rows.js";

const [data = ""] = process.argv.slice(2);
const harness = await startHarness({ ...RECEIVER_SETTINGS, data, tokenAlgorithm: "RS256" });
const { store } = harness.app.installation;
const subscribed: string[] = [];

type Request =
  | { readonly kind: "organisations"; readonly count: number }
  | { readonly kind: "subscribe"; readonly groups: readonly string[]; readonly sinks: readonly string[] }
  | { readonly kind: "usage" };

process.on("message", async (request: Request) => {
  switch (request.kind) {
    case "organisations": {
      const made = [];
      for (let i = 0; i < request.count; i++) {
        const organisation = await harness.organisation(`bench ${i}`);
        const child = randomIds.newUid(organisation.group);
        await store.write((tx) => tx.table(groupKind).insert(groupRow(child)));
        made.push({ ...organisation, child });
      }
      return process.send?.({ url: harness.url, made });
    }
    case "subscribe": {
      for (const uid of subscribed.splice(0)) await store.write((tx) => tx.table(subscriptionKind).delete(uid));
      const times = { createTimeMs: Date.now(), updateTimeMs: Date.now() };
      for (const [i, groupUid] of request.groups.entries()) {
        const row = { uid: randomIds.newUid(groupUid), groupUid, sink: request.sinks[i] ?? "", ...times };
        await store.write((tx) => tx.table(subscriptionKind).insert(row));
        subscribed.push(row.uid);
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
