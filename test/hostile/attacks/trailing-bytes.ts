// Sends bytes that are no HTTP after a whole request, in the same packet: the
// request is carried out, and its response says so before anything else is said.
import { type Attack, Counts, pick, repeat } from "../support/attack.js";
import { exchangeBytes } from "../support/http1.js";

const TRAILING = [
  "\x00\x01\x02",
  "GARBAGE\r\n\r\n",
  "GET / HTTP/9.9\r\n\r\n",
  "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
];

export const attack: Attack = {
  async run({ url, addresses, token, group }, stop) {
    const counts = new Counts();
    await repeat({ ms: 50, width: 4, limit: 5_000, stop }, async (n) => {
      const body = JSON.stringify({ description: `trailing ${n}` });
      const request =
        `PATCH /iam/v2beta1/groups/${group} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      const { statuses } = await exchangeBytes(url, request + pick(TRAILING, n), pick(addresses, n), true);
      if (stop.aborted) return;
      counts.add(`HTTP ${statuses.join(" then ")}`);
      const [first, ...rest] = statuses;
      if (first !== 200) counts.problem(`a request that may be carried out is answered ${first ?? "nothing"}`);
      if (rest.some((status) => status !== 400)) counts.problem(`answered ${statuses.join(" then ")}`);
    });
    return counts;
  },
};
