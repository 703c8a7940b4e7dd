// Outages that callers and other services cause.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { startLocalIssuer } from "../../support/local-issuer.js";
import { scrape } from "../../support/metrics.js";
import { waitUntil } from "../../support/wait-until.js";
import { type Defer, type Node, type Outages, startNode, untilMetric, WELL } from "./outage.js";

const BUFFER = 4 * 2 ** 20;
/** How many bodies a caller sends at once. */
const BODIES = 10;

/** Opens a connection that sends nothing. */
async function openIdle({ harness }: Node, defer: Defer): Promise<void> {
  const { hostname, port } = new URL(harness.url);
  const socket = connect(Number(port), hostname).on("error", () => {});
  defer(() => socket.destroy());
  await Promise.race([once(socket, "connect"), once(socket, "close")]);
}

/** Sends a part of a large body, and not the rest. */
function sendSlowly({ harness, group }: Node, token: string, bytes: number, defer: Defer): void {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "content-length": bytes + 1 };
  const slow = request(`${harness.url}/iam/v2beta1/groups/${group}`, { method: "POST", headers }).on("error", () => {});
  defer(() => slow.destroy());
  slow.write(" ".repeat(bytes));
}

export const requestOutages: Outages = {
  "one address opens more connections than it may": {
    alerts: ["ArborAddressLimit"],
    async run(recording, defer) {
      const node = await startNode(defer, { connectionsPerAddress: "5" });
      const count = async () =>
        (await scrape(node.metrics)).sum("arbor_requests_rejected_total", { reason: "address_connections" }) ?? 0;
      await recording.scrape(node.metrics, WELL);
      recording.beginOutage();
      await recording.scrape(node.metrics, 22, async () => {
        const before = await count();
        await waitUntil(async () => {
          await Promise.all(Array.from({ length: 20 }, () => openIdle(node, defer)));
          return (await count()) > before + 65;
        }, 60_000);
      });
    },
  },
  "callers send large bodies slowly": {
    alerts: ["ArborBuffersNearLimit"],
    async run(recording, defer) {
      const node = await startNode(defer, {}, { values: { requestBuffer: BUFFER } });
      await recording.scrape(node.metrics, WELL);
      recording.beginOutage();
      for (let i = 0; i < 4; i++) {
        const { token } = await node.harness.organisation(`slow${i}.example`);
        for (let j = 0; j < BODIES; j++) sendSlowly(node, token, Math.round((0.9 * BUFFER) / 4 / BODIES), defer);
      }
      const labels = { direction: "requests" };
      await untilMetric(node, "arbor_buffered_bytes", labels, (bytes) => bytes > 0.85 * BUFFER);
      await recording.scrape(node.metrics, 2);
      recording.hold(6);
    },
  },
  "an issuer does not answer": {
    alerts: ["ArborExchangesFail"],
    async run(recording, defer) {
      const issuer = await startLocalIssuer();
      const node = await startNode(defer, { trustedIssuers: issuer.issuer });
      const relationship = { claimMatch: { issuer: issuer.issuer, subjectPattern: "ci" } };
      const { uid } = await node.harness.identity({ relation: 1, relationship }, node.group);
      const exchange = async (token: string) => {
        const query = new URLSearchParams({ aud: node.harness.url, identity: uid });
        const headers = { authorization: `Bearer ${token}` };
        return (await fetch(`${node.harness.url}/sts/exchange?${query}`, { headers })).status;
      };
      await recording.scrape(node.metrics, WELL, async () => assert.equal(await exchange("x.y.z"), 401));
      recording.beginOutage();
      await issuer.stop();
      const token = issuer.token({ aud: node.harness.url, sub: "ci" });
      await recording.scrape(node.metrics, 13, async () => assert.equal(await exchange(token), 503));
    },
  },
};
