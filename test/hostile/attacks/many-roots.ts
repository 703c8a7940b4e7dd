// One person creates as many root groups as the service lets it, all of one name,
// and lists them; anybody asks whether that name can sign in.
import { type Attack, Counts, pick, repeat } from "../support/attack.js";
import { createGroups, get } from "../support/http.js";

const ROOTS = process.env.HOSTILE_CAMPAIGN === undefined ? 1_500 : 15_000;
const NAME = "popular.example";
const LISTS = [
  "/iam/v2beta1/groups?page_size=200",
  "/iam/v2beta1/groups?order_by=name%20desc",
  "/iam/v2beta1/identities",
  "/iam/v2beta1/roleBindings",
  "/iam/v2beta1/roles",
];

export const attack: Attack<number> = {
  prepare: ({ url, token, addresses: [address = ""] }) =>
    createGroups({ url, token, address }, "", ROOTS, { name: NAME }),

  async run({ url, addresses, token }, stop, roots) {
    const counts = new Counts();
    counts.add("roots", roots);
    if (roots === 0) counts.problem("no root can be created at all");
    await repeat({ ms: 60, width: 2, limit: 10_000, stop }, async (n) => {
      const isAnonymous = n % 3 === 2;
      const path = isAnonymous ? `/orgcheck?name=${NAME}` : pick(LISTS, Math.floor(n / 3) * 2 + (n % 3));
      const status = await get(url, path, pick(addresses, n), isAnonymous ? undefined : token);
      if (stop.aborted) return;
      counts.add(`HTTP ${status}`);
      if (status !== 200 && status !== 429) counts.problem(`${path}: HTTP ${status}`);
    });
    return counts;
  },
};
