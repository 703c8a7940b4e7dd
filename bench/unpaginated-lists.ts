// Lists without pages: all groups in one gRPC response of version 1, against the same
// groups in pages of version 2; and how long other callers wait meanwhile.
//
//   node --import tsx bench/unpaginated-lists.ts [--rows 400000] [--rounds 3] [--service dist/main.js]
import { request as httpRequest } from "node:http";
import { parseArgs } from "node:util";
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Groups } from "#gen/chainguard/platform/iam/group_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { printConditions } from "./conditions.js";
import { judge, median } from "./figures.js";
import { pinSelf, requireTools } from "./processes.js";
import { firstLevel, seed } from "./seed.js";
import { startService } from "./service.js";

const PAGE = 200;

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "400000" },
    rounds: { type: "string", default: "3" },
    service: { type: "string" },
  },
});
requireTools("taskset");
pinSelf();

const seeded = await seed(Number(values.rows));
const { directory, tree } = seeded;
printConditions({ directory, rows: tree.groups, tokens: 1 });
const [uid = ""] = firstLevel(seeded);
const { url, tokens, server } = await startService(seeded, values.service);
const authorization = `Bearer ${tokens[0]}`;
const withToken: Interceptor = (next) => (call) => {
  call.header.set("authorization", authorization);
  return next(call);
};
const transport = createGrpcTransport({ baseUrl: url, readMaxBytes: 100_000_000, interceptors: [withToken] });
const v1 = createClient(Groups, transport);
const v2 = createClient(GroupsService, createGrpcTransport({ baseUrl: url, interceptors: [withToken] }));

/** What a reader of all groups measured, and how long another caller waited meanwhile. */
interface Reading {
  readonly elements: number;
  readonly seconds: number;
  /** Milliseconds per call, in order. */
  readonly waits: readonly number[];
}

const readers: readonly { readonly name: string; read(): Promise<number> }[] = [
  { name: "v1, whole, gRPC", read: async () => (await v1.list({})).items.length },
  { name: "v1, whole, REST", read: countOverRest },
  { name: `v2, pages of ${PAGE}, gRPC`, read: countInPages },
];

try {
  const rates = new Map<string, number[]>(readers.map(({ name }) => [name, []]));
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const { name, read } of readers) {
      const { elements, seconds, waits } = await measure(read);
      if (elements !== tree.belowRoot + 1) throw new Error(`${name}: ${elements} of ${tree.belowRoot + 1} groups`);
      rates.get(name)?.push(elements / seconds);
      const at = (share: number) => waits[Math.min(waits.length - 1, Math.floor(waits.length * share))]?.toFixed(1);
      console.log(
        `${name.padEnd(24)} ${elements} groups in ${seconds.toFixed(1)} s; ${waits.length} other calls waited ` +
          `${at(0.5)} ms, 99 % at most ${at(0.99)}, all at most ${at(1)}; peak memory ${server.peakMegabytes()} MB`,
      );
    }
  }
  const rate = ({ name }: { readonly name: string }) => median(rates.get(name) ?? []);
  for (const reader of readers) console.log(`${reader.name}: ${rate(reader).toFixed(0)} groups/s`);
  const [unpaginated, rest, paged] = readers.map(rate);
  judge("rate of the unpaginated list / of pages, gRPC", (unpaginated ?? 0) / (paged ?? 1), { atLeast: 1 });
  judge("rate of the unpaginated list over REST / of pages, gRPC", (rest ?? 0) / (paged ?? 1), { atLeast: 1 });
} finally {
  await server.stop();
}

async function measure(read: () => Promise<number>): Promise<Reading> {
  const waits: number[] = [];
  let done = false;
  const others = (async () => {
    while (!done) {
      const start = performance.now();
      await getGroup();
      waits.push(performance.now() - start);
    }
  })();
  const start = performance.now();
  const elements = await read();
  const seconds = (performance.now() - start) / 1000;
  done = true;
  await others;
  return { elements, seconds, waits: waits.sort((a, b) => a - b) };
}

async function countInPages(): Promise<number> {
  let [count, pageToken] = [0, ""];
  do {
    const page = await v2.listGroups({ pageSize: PAGE, pageToken });
    count += page.groups.length;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return count;
}

// Counted as bytes arrive: otherwise the benchmark would measure the parsing of JSON.
function countOverRest(): Promise<number> {
  return new Promise((resolve, reject) => {
    httpRequest(`${url}/iam/v1/groups`, { headers: { authorization } }, (response) => {
      let [count, rest] = [0, ""];
      response.setEncoding("latin1");
      response.on("data", (chunk: string) => {
        const text = rest + chunk;
        count += text.split('"resourceLimits":').length - 1;
        rest = text.slice(-16);
      });
      response.on("end", () => (response.complete ? resolve(count) : reject(new Error("the list was cut off"))));
      response.on("error", reject);
    })
      .on("error", reject)
      .end();
  });
}

async function getGroup(): Promise<void> {
  const answer = await fetch(`${url}/iam/v2beta1/groups/${uid}`, { headers: { authorization } });
  if (answer.status !== 200) throw new Error(`GetGroup: ${answer.status}`);
  await answer.arrayBuffer();
}
