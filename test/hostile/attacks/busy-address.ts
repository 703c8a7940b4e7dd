// One address sends as many calls as it can, on hundreds of connections: long lists and changes.
import { Agent } from "node:http";
import { type Attack, Counts, repeat } from "../support/attack.js";
import { createGroups, get, post } from "../support/http.js";

const CONNECTIONS = 256;
const LISTED = 200;
const UPDATE_GROUP = "/chainguard.platform.iam.v2beta1.GroupsService/UpdateGroup";

export const attack: Attack = {
  prepare: ({ url, token, group, addresses: [address = ""] }) =>
    createGroups({ url, token, address }, group, LISTED, { name: "listed" }),

  async run({ url, addresses: [address = ""], token, group }, stop) {
    const counts = new Counts();
    const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const list = `/iam/v2beta1/groups?page_size=${LISTED}&uidp.children_of=${group}`;
    await repeat({ ms: 0, width: CONNECTIONS, limit: 1_000_000, stop }, async (n) => {
      const change = Buffer.from(JSON.stringify({ group: { uid: group, description: `change ${n}` } }));
      const status =
        n % 3 === 0
          ? await post(url, UPDATE_GROUP, address, change, headers, agent)
          : await get(url, list, address, token, agent);
      if (stop.aborted) return;
      counts.add(`HTTP ${status}`);
      // It waits for itself; what waits too long is refused.
      if (status !== 200 && status !== 503) counts.problem(`HTTP ${status}`);
    });
    agent.destroy();
    return counts;
  },
};
