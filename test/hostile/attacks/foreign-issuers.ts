// One tenant's issuers take the memory for issuers and the outgoing requests from
// all others: hundreds of them are named in unsigned tokens, and some never
// answer. The good client comes with issuers of its organisation that the service
// knows, and with some that it has not met before.
import { type Attack, Counts, pick, repeat } from "../support/attack.js";
import { post } from "../support/http.js";
import { listen, startIssuers } from "../support/issuers.js";
import { createUnsignedToken } from "../support/tokens.js";
import { createIdentities, type Target, type Workload } from "../support/world.js";

const QUICK = 240;
const STUCK = 120;
/** How many unsigned tokens wait for a response at once: for issuers that response, and for those that do not. */
const WIDTHS = { quick: 8, stuck: 110 };

interface State {
  readonly quick: readonly Workload[];
  readonly stuck: readonly Workload[];
  close(): void;
}

export const attack: Attack<State> = {
  async prepare(target) {
    const { url, issuerPorts } = target;
    const issuers = await startIssuers(issuerPorts[0]);
    // Takes every request and never answers.
    const tarpit = await listen(issuerPorts[1] ?? 0, () => {});
    return {
      quick: await createIdentities(url, target, issuers.origin, QUICK),
      stuck: await createIdentities(url, target, tarpit.origin, STUCK),
      close() {
        issuers.stop();
        tarpit.stop();
      },
    };
  },

  async run(target, stop, { quick, stuck, close }) {
    const counts = new Counts();
    const bother = (workloads: readonly Workload[], name: keyof typeof WIDTHS, ms: number) =>
      repeat({ ms, width: WIDTHS[name], limit: 50_000, stop }, async (n) => {
        const status = await present(target, pick(workloads, n), pick(target.addresses, n));
        if (stop.aborted) return;
        counts.add(`${name} HTTP ${status}`);
        if (status === 200) counts.problem("an unsigned token is exchanged");
      });
    await Promise.all([bother(quick, "quick", 30), bother(stuck, "stuck", 100)]);
    close();
    return counts;
  },
};

function present({ url }: Target, { identity, issuer }: Workload, address: string): Promise<number> {
  const path = `/sts/exchange?aud=${encodeURIComponent(url)}&identity=${encodeURIComponent(identity)}`;
  const bearer = createUnsignedToken({ iss: issuer, sub: "ci", aud: url }, "none");
  return post(url, path, address, Buffer.alloc(0), { authorization: `Bearer ${bearer}` });
}
