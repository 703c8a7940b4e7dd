// Says HTTP/2.0 and other versions on a connection that speaks HTTP/1.1: without
// credentials, in every form a request line may have.

import { type Attack, Counts, pick, repeat } from "../support/attack.js";
import { HTTP_FORMS, readStatus } from "../support/http1.js";

export const attack: Attack = {
  async run({ url, addresses }, stop) {
    const counts = new Counts();
    await repeat({ ms: 20, width: 4, limit: 20_000, stop }, async (n) => {
      const { name, text, status } = pick(HTTP_FORMS, n);
      const got = await readStatus(url, text, pick(addresses, n));
      if (stop.aborted) return;
      counts.add(`${got}`);
      if (got !== status) counts.problem(`${name} is answered ${got} in place of ${status}`);
    });
    return counts;
  },
};
