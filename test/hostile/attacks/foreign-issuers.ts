// One tenant's issuers take the memory for issuers and the outgoing requests
// from all others: hundreds of them are named in unsigned tokens, and some never
// answer. Meanwhile workloads of another organisation come with issuers that the
// service has not met before.
import { createServer, type Server, type ServerResponse } from "node:http";
import { type LocalIssuer, startLocalIssuer } from "../../support/local-issuer.js";
import { type Attack, Counts, pause, pick, repeat } from "../support/attack.js";
import { post } from "../support/http.js";
import { unsignedToken } from "../support/tokens.js";
import { createIdentity, type Owner, type Target } from "../support/world.js";

const ISSUERS = 240;
const TARPITS = 120;
const HONEST = 12;
const HONEST_EVERY_MS = 300;
/** How long an honest workload may wait for its token; undisturbed it is about 10 ms. */
const HONEST_MS = 1_000;
/** How many unsigned tokens wait for an answer at once: for issuers that answer, and for those that do not. */
const WIDTHS = { quick: 8, stuck: 110 };

const HONEST_ADDRESS = "127.0.0.8";

interface Presented {
  readonly identity: string;
  readonly token: () => string;
}

interface State {
  readonly quick: readonly Presented[];
  readonly stuck: readonly Presented[];
  /** In turn a workload that was here before, and one that was not. */
  readonly honest: readonly Presented[];
  close(): void;
}

export const attack: Attack<State> = {
  async prepare(target) {
    const { url, issuerPorts } = target;
    const [quickPort = 0, stuckPort = 0, honestPort = 0] = issuerPorts;
    const key = await startLocalIssuer();
    const servers = [
      await serveIssuers(quickPort, key),
      await serveNothing(stuckPort),
      await serveIssuers(honestPort, key),
    ];
    const one = async (owner: Owner, issuer: string, token: () => string): Promise<Presented> => {
      const identity = await createIdentity(url, owner, { name: "ci", claimMatch: { issuer, subject: "ci" } });
      return { identity, token };
    };
    const many = async (count: number, port: number, make: (issuer: string) => Promise<Presented>) => {
      const made: Presented[] = [];
      const width = 16;
      for (let i = 0; i < count; i += width) {
        const some = Array.from(
          { length: Math.min(width, count - i) },
          (_, j) => `http://127.0.0.1:${port}/i/${i + j}`,
        );
        made.push(...(await Promise.all(some.map(make))));
      }
      return made;
    };
    const claims = (issuer: string) => ({ iss: issuer, sub: "ci", aud: url });
    const unsigned = (issuer: string) => one(target, issuer, () => unsignedToken(claims(issuer), "none"));
    const honest = await many(HONEST, honestPort, (issuer) =>
      one(target.good, issuer, () => key.token(claims(issuer))),
    );
    for (const [i, workload] of honest.entries()) {
      if (i % 2 === 0 && (await exchange(target, workload, HONEST_ADDRESS)) !== 200) {
        throw new Error("an honest workload cannot exchange its token");
      }
    }
    return {
      quick: await many(ISSUERS, quickPort, unsigned),
      stuck: await many(TARPITS, stuckPort, unsigned),
      honest,
      close() {
        for (const server of servers) server.closeAllConnections();
        for (const server of servers) server.close();
        void key.stop();
      },
    };
  },

  async run(target, stop, { quick, stuck, honest, close }) {
    const counts = new Counts();
    const bother = (all: readonly Presented[], name: keyof typeof WIDTHS, ms: number) =>
      repeat({ ms, width: WIDTHS[name], limit: 20_000, stop }, async (n) => {
        const status = await exchange(target, pick(all, n), pick(target.addresses, n));
        counts.add(`${name} HTTP ${status}`);
        if (status === 200) counts.problem("an unsigned token is exchanged");
      });
    const workloads = async () => {
      // The slots for outgoing requests are taken by then.
      await pause(HONEST_EVERY_MS, stop);
      for (const workload of honest) {
        if (stop.aborted) return;
        const startMs = performance.now();
        const status = await exchange(target, workload, HONEST_ADDRESS);
        const ms = performance.now() - startMs;
        if (stop.aborted) return;
        counts.add(`honest HTTP ${status}`);
        if (status !== 200) counts.problem(`the token of an honest workload is refused: HTTP ${status}`);
        else if (ms > HONEST_MS) counts.problem(`an honest workload waited ${(ms / 1000).toFixed(1)} s`);
        await pause(HONEST_EVERY_MS, stop);
      }
    };
    await Promise.all([bother(quick, "quick", 30), bother(stuck, "stuck", 100), workloads()]);
    close();
    return counts;
  },
};

function exchange({ url }: Target, { identity, token }: Presented, address: string): Promise<number> {
  const path = `/sts/exchange?aud=${encodeURIComponent(url)}&identity=${encodeURIComponent(identity)}`;
  return post(url, path, address, Buffer.alloc(0), { authorization: `Bearer ${token()}` });
}

// Every path below the origin is an issuer, all with the keys of one.
async function serveIssuers(port: number, { issuer: keys }: LocalIssuer): Promise<Server> {
  const origin = `http://127.0.0.1:${port}`;
  const jwks = await (await fetch(`${keys}/keys`)).text();
  return listen(port, (path, res) => {
    res.setHeader("content-type", "application/json");
    const [, own] = /^(.*)\/\.well-known\/openid-configuration$/.exec(path) ?? [];
    if (own === undefined) res.end(jwks);
    else res.end(JSON.stringify({ issuer: origin + own, jwks_uri: `${origin}/keys` }));
  });
}

// Takes every request and never answers.
function serveNothing(port: number): Promise<Server> {
  return listen(port, () => {});
}

function listen(port: number, answer: (path: string, res: ServerResponse) => void): Promise<Server> {
  const server = createServer((req, res) => answer(req.url ?? "", res));
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
