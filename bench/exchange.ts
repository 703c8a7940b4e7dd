// The token exchange: an ES256 token of another issuer, whose keys are in memory,
// for an API token: verify, decide with the stored identity, and sign. The peer does
// only what every implementation must: verify a signature and sign. Both run in this
// process, alternating, with ES256. Then the exchange for API tokens of either algorithm.
//
//   node --import tsx bench/exchange.ts [--rounds 7] [--seconds 2] [--slices 40] [--only-algorithms]
import { createPublicKey, type JsonWebKey, type KeyObject, sign, verify } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Installation, openInstallation } from "../src/app/installation.js";
import { resolveSettings } from "../src/config/config.js";
import type { Exchanger } from "../src/issuer/sts/exchange.js";
import { builtinRoleUid } from "../src/kernel/ids.js";
import type { TokenAlgorithm } from "../src/kernel/jws.js";
import { groupKind } from "../src/store/iam/groups.js";
import { identityKind } from "../src/store/iam/identities.js";
import { roleBindingKind } from "../src/store/iam/role-bindings.js";
import { exchangerOf } from "../test/issuer/mutations/exchanger.js";
import { type LocalIssuer, startLocalIssuer } from "../test/support/local-issuer.js";
import { bindingRow, childUid, groupRow, identityRow, rootUid } from "../test/support/rows.js";
import { buildClaims, subjectFor } from "./ci-claims.js";
import { judge, median } from "./figures.js";
import { pinSelf, requireTools } from "./processes.js";
import { compareAlgorithms, type Work } from "./token-algorithms.js";

const IDENTITIES = 1_000;
/** Different tokens, about as many as are exchanged in a second. */
const TOKENS = 4_000;
/** Exchanges in flight. */
const CONCURRENT = 32;
const GOAL_RATE = 1_000;
const GOAL_RATIO = 0.4;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "2" },
    slices: { type: "string", default: "40" },
    "only-algorithms": { type: "boolean", default: false },
  },
});
requireTools("taskset");
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];

/** One exchange to make. */
interface Presented {
  readonly identity: string;
  readonly token: string;
}

interface Cell {
  readonly perSecond: number;
  readonly cpuUs: number;
}

pinSelf();
const directory = mkdtempSync(join(tmpdir(), "arbor-exchange-"));
const issuer = await startLocalIssuer();
const url = "http://127.0.0.1:8080";
try {
  if (!values["only-algorithms"]) await inProcess();
  await withBothAlgorithms();
} finally {
  await issuer.stop();
  rmSync(directory, { recursive: true });
}

function open(data: string, tokenAlgorithm: TokenAlgorithm): Promise<Installation> {
  return openInstallation({ mode: "create", settings: resolveSettings({ flags: { data, tokenAlgorithm }, env: {} }) });
}

async function withBothAlgorithms(): Promise<void> {
  const installations = {
    ES256: await open(join(directory, "es256"), "ES256"),
    RS256: await open(join(directory, "rs256"), "RS256"),
  };
  try {
    const workOf = async (installation: Installation): Promise<Work> => {
      const presented = await tokensFor(await identitiesIn(installation), issuer);
      return createExchangeWork(exchangerOf({ installation, url, trustedOrigins: [issuer.issuer] }), presented);
    };
    const work = { ES256: await workOf(installations.ES256), RS256: await workOf(installations.RS256) };
    await compareAlgorithms(work, { slices: Number(values.slices), seconds: 0.25 });
  } finally {
    for (const installation of Object.values(installations)) await installation.close();
  }
}

async function inProcess(): Promise<void> {
  const installation = await open(directory, "ES256");
  try {
    const presented = await tokensFor(await identitiesIn(installation), issuer);
    const exchanger = exchangerOf({ installation, url, trustedOrigins: [issuer.issuer] });
    const [first] = presented;
    if (first === undefined) throw new Error("there is nothing to exchange");
    const { token } = await exchange(exchanger, first);
    const upstreamKey = await fetchPublishedKey(issuer);
    const { key: signingKey } = installation.keys.getSigningKey();
    const bareWork = bare(presented, upstreamKey, signingKey, token);
    const ours = createExchangeWork(exchanger, presented);
    console.log(`node ${process.version}, ${cpus().length} x ${cpus()[0]?.model.trim()}, ES256 both ways, SQLite`);
    console.log(
      `${TOKENS} different tokens of ${first.token.length} characters for ${IDENTITIES} identities, ` +
        `${CONCURRENT} at once; API tokens of ${token.length} characters\n`,
    );
    for (const work of [ours, bareWork]) await measure(work, 2);
    const cells: { ours: Cell; bare: Cell }[] = [];
    for (let i = 0; i < rounds; i++) {
      cells.push({ ours: await measure(ours, seconds), bare: await measure(bareWork, seconds) });
    }
    if (issuer.requests.keys !== 2) throw new Error(`the keys were fetched ${issuer.requests.keys} times`);
    console.log(`${"".padEnd(34)}${["min", "median", "max"].map((head) => head.padStart(10)).join("")}`);
    const of = (pick: (cell: { ours: Cell; bare: Cell }) => number) => cells.map(pick);
    row(
      "exchange, a second",
      of((cell) => cell.ours.perSecond),
      0,
    );
    row(
      "bare verify + sign, a second",
      of((cell) => cell.bare.perSecond),
      0,
    );
    row(
      "exchange, us of CPU",
      of((cell) => cell.ours.cpuUs),
      1,
    );
    row(
      "bare verify + sign, us of CPU",
      of((cell) => cell.bare.cpuUs),
      1,
    );
    const ratios = of((cell) => cell.ours.perSecond / cell.bare.perSecond);
    row("ratio of rates", ratios, 3);
    row(
      "ratio by CPU time",
      of((cell) => cell.bare.cpuUs / cell.ours.cpuUs),
      3,
    );
    judge("exchanges a second", median(of((cell) => cell.ours.perSecond)), { atLeast: GOAL_RATE });
    judge("ratio of rates, exchange to bare verify + sign", median(ratios), { atLeast: GOAL_RATIO });
  } finally {
    await installation.close();
  }
}

// Each in a group of its own, as a viewer there.
async function identitiesIn({ store }: Installation): Promise<readonly string[]> {
  const root = rootUid(1);
  return store.write(async (tx) => {
    const uids: string[] = [];
    await tx.table(groupKind).insert(groupRow(root));
    for (let i = 0; i < IDENTITIES; i++) {
      const group = childUid(root, i);
      const uid = childUid(group, i);
      const claimMatch = { issuer: issuer.issuer, subject: subjectFor(i), claims: { repository_owner: "octo" } };
      await tx.table(groupKind).insert(groupRow(group, { name: `group ${i}` }));
      await tx
        .table(identityKind)
        .insert(identityRow(uid, { name: `identity ${i}`, relation: 1, relationship: { claimMatch } }));
      await tx
        .table(roleBindingKind)
        .insert(bindingRow(childUid(group, IDENTITIES + i), uid, builtinRoleUid("viewer")));
      uids.push(uid);
    }
    return uids;
  });
}

async function tokensFor(identities: readonly string[], { token }: LocalIssuer): Promise<readonly Presented[]> {
  return Array.from({ length: TOKENS }, (_, run) => {
    const i = run % identities.length;
    const claims = buildClaims({ run, app: i, audience: url });
    return { identity: identities[i] ?? "", token: token(claims) };
  });
}

function exchange(exchanger: Exchanger, { identity, token }: Presented) {
  const request = { aud: [url], cap: [], scopes: [], identity, identityProvider: "" };
  return exchanger.exchange(request, token, "192.0.2.1");
}

function createExchangeWork(exchanger: Exchanger, presented: readonly Presented[]): Work {
  let next = 0;
  return async () => {
    const underWay: Promise<unknown>[] = [];
    for (let i = 0; i < CONCURRENT; i++) {
      const one = presented[next++ % presented.length];
      if (one === undefined) throw new Error("there is nothing to exchange");
      underWay.push(
        exchange(exchanger, one).then(({ identityUid, token }) => {
          if (identityUid !== one.identity || token.length < 200) throw new Error("a wrong answer");
        }),
      );
    }
    await Promise.all(underWay);
    return CONCURRENT;
  };
}

/** Verifies the same tokens and signs as much text as an API token has, without reading or writing JSON. */
function bare(presented: readonly Presented[], publicKey: KeyObject, privateKey: KeyObject, issued: string): Work {
  let next = 0;
  const unsigned = issued.slice(0, issued.lastIndexOf("."));
  return async () => {
    for (let i = 0; i < CONCURRENT; i++) {
      const { token } = presented[next++ % presented.length] as Presented;
      const end = token.lastIndexOf(".");
      const signature = Buffer.from(token.slice(end + 1), "base64url");
      const key = { key: publicKey, dsaEncoding: "ieee-p1363" } as const;
      if (!verify("sha256", Buffer.from(token.slice(0, end)), key, signature)) throw new Error("a wrong signature");
      const made = sign("sha256", Buffer.from(unsigned), { key: privateKey, dsaEncoding: "ieee-p1363" });
      if (`${unsigned}.${made.toString("base64url")}`.length !== issued.length) throw new Error("another length");
    }
    return CONCURRENT;
  };
}

async function fetchPublishedKey({ issuer: from }: LocalIssuer): Promise<KeyObject> {
  const { keys } = (await (await fetch(`${from}/keys`)).json()) as { keys: JsonWebKey[] };
  return createPublicKey({ key: keys[0] ?? {}, format: "jwk" });
}

/** The rate of the work and its processor time per unit, over some seconds. */
async function measure(work: Work, forSeconds: number): Promise<Cell> {
  const before = process.cpuUsage();
  const startedAt = performance.now();
  let done = 0;
  while (performance.now() - startedAt < forSeconds * 1000) {
    done += await work();
    // As between requests: a tick of the event loop ends.
    await new Promise(setImmediate);
  }
  const { user, system } = process.cpuUsage(before);
  return { perSecond: (done / (performance.now() - startedAt)) * 1000, cpuUs: (user + system) / done };
}

function row(name: string, figures: readonly number[], digits: number): void {
  const columns = [Math.min(...figures), median(figures), Math.max(...figures)];
  console.log(name.padEnd(34) + columns.map((figure) => figure.toFixed(digits).padStart(10)).join(""));
}
