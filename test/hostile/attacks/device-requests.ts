// Begins logins of devices that nobody will finish, as large as they may be and as
// many as are accepted.
import { randomBytes } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Attack, Counts, pick, repeat } from "../support/attack.js";
import { post } from "../support/http.js";

/** As many and as long uids of groups as a request may name. */
const SCOPES = 32;
const SEGMENTS = 63;
/** How much the database may grow, its log included: beside other attacks that write, all that is stored waits in the log. */
const MAX_GROWTH = 64 * 1024 * 1024;
const PATH = "/oauth/device_authorization";

export const attack: Attack = {
  async run({ url, addresses, data }, stop) {
    const counts = new Counts();
    const before = bytesIn(data);
    const scopes = Array.from({ length: SCOPES }, deepUid);
    const forms = [
      Buffer.from(`client_id=flood&scope=${scopes.join("+")}`),
      Buffer.from("client_id=flood&scope=openid"),
    ];
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    await repeat({ ms: 5, width: 8, limit: 20_000, stop }, async (n) => {
      const status = await post(url, PATH, pick(addresses, n), pick(forms, n), headers);
      if (stop.aborted) return;
      counts.add(`HTTP ${status}`);
      if (![200, 400, 413, 429].includes(status)) counts.problem(`HTTP ${status}`);
    });
    const growth = bytesIn(data) - before;
    counts.add("bytes stored", growth);
    if (growth > MAX_GROWTH) counts.problem(`the database grew by ${(growth / 1024 / 1024).toFixed(0)} MiB`);
    const refused = (counts.done["HTTP 400"] ?? 0) + (counts.done["HTTP 413"] ?? 0) + (counts.done["HTTP 429"] ?? 0);
    if (refused === 0) counts.problem("everything is accepted from one address");
    return counts;
  },
};

function deepUid(): string {
  const segments = Array.from({ length: SEGMENTS }, () => randomBytes(8).toString("hex"));
  return [randomBytes(20).toString("hex"), ...segments].join("/");
}

function bytesIn(directory: string): number {
  return readdirSync(directory).reduce((sum, name) => sum + (statSync(join(directory, name)).size ?? 0), 0);
}
