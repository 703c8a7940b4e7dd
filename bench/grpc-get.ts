// gRPC: unary GetGroup, with token, authorization and read, against grpc-js
// answering with the same group from memory.
//
//   node --import tsx bench/grpc-get.ts [--rows 100000] [--rounds 5] [--seconds 3] [--service dist/main.js]
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { GetGroupRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { printConditions } from "./conditions.js";
import { freePort, requireTools, runLoad, startServer } from "./processes.js";
import { compare, judge, type LoadResult } from "./rounds.js";
import { IDENTITIES, seed } from "./seed.js";
import { startService } from "./service.js";
import { targetsIn } from "./targets.js";

const PATH = "/chainguard.platform.iam.v2beta1.GroupsService/GetGroup";
const GOAL = 0.9;
/** Connections and streams on each: a few proxies that share theirs, and many clients with one call each. */
const SHAPES = [
  { connections: 8, streams: 8 },
  { connections: 32, streams: 1 },
];

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "100000" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "3" },
    service: { type: "string" },
  },
});
requireTools("h2load", "taskset");

const seeded = await seed(Number(values.rows));
// The load generator sends one request only, so there is one token and one group.
printConditions({ directory: seeded.directory, rows: seeded.tree.groups, tokens: 1 });
const [target] = targetsIn(seeded, IDENTITIES - 1, 10).slice(-1);
if (target === undefined) throw new Error("there is nothing to read");
const scratch = mkdtempSync(join(tmpdir(), "arbor-grpc-get-"));
const service = await startService(seeded, values.service);
const token = service.tokens[target.reader] ?? "";
try {
  const ours = Number(new URL(service.url).port);
  const group = await getGroup(ours);
  const constant = join(scratch, "group.json");
  writeFileSync(constant, JSON.stringify(group));
  const port = await freePort();
  const peer = await startServer([
    fileURLToPath(new URL("./peers/constant-grpc.mjs", import.meta.url)),
    String(port),
    constant,
  ]);
  const frame = writeFrame(target.uid);
  try {
    for (const { connections, streams } of SHAPES) {
      await checkBoth(ours, port, group);
      console.log(`\n${connections} connections x ${streams} streams`);
      const load = (to: number) => (seconds: number) => h2load(to, frame, connections, streams, seconds);
      const { ratio } = await compare(
        [
          { name: "arbor", server: service.server, load: load(ours) },
          { name: "grpc-js", server: peer, load: load(port) },
        ],
        { rounds: Number(values.rounds), seconds: Number(values.seconds), warmUpSeconds: 2 },
      );
      judge("ratio of rates", ratio, { atLeast: GOAL });
      await checkBoth(ours, port, group);
    }
  } finally {
    await peer.stop();
  }
} finally {
  await service.server.stop();
  rmSync(scratch, { recursive: true });
}

/** The group as a client of grpc-js sees it. */
function getGroup(port: number): Promise<object> {
  const includeDirs = ["../proto", "../node_modules/google-proto-files"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  const definition = loadSync("chainguard/platform/iam/v2beta1/groups.proto", { includeDirs, longs: String });
  const methods = definition["chainguard.platform.iam.v2beta1.GroupsService"] as grpc.ServiceDefinition;
  const { requestSerialize, responseDeserialize } = methods.GetGroup as grpc.MethodDefinition<object, object>;
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  return new Promise((resolve, reject) => {
    const request = { uid: target?.uid };
    client.makeUnaryRequest(PATH, requestSerialize, responseDeserialize, request, metadata, (error, answer) => {
      client.close();
      if (error || answer === undefined) reject(error);
      else resolve(answer);
    });
  });
}

// The load generator sees HTTP alone: whether calls succeed only a client can tell.
async function checkBoth(ours: number, peer: number, group: object): Promise<void> {
  for (const port of [ours, peer]) {
    const answer = await getGroup(port);
    if (!isDeepStrictEqual(answer, group)) throw new Error(`not the same group: ${JSON.stringify(answer)}`);
  }
}

function writeFrame(uid: string): string {
  const message = toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid }));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const file = join(scratch, "get-group.frame");
  writeFileSync(file, Buffer.concat([prefix, message]));
  return file;
}

async function h2load(
  port: number,
  frame: string,
  connections: number,
  streams: number,
  seconds: number,
): Promise<LoadResult> {
  const headers = ["content-type: application/grpc", "te: trailers", `authorization: Bearer ${token}`];
  const args = ["-t1", `-c${connections}`, `-m${streams}`, `-D${seconds}`, "-d", frame];
  const url = `http://127.0.0.1:${port}${PATH}`;
  const output = await runLoad("h2load", [...args, ...headers.flatMap((header) => ["-H", header]), url]);
  const number = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
  const requests = number(/(\d+) succeeded/);
  const requestsPerSecond = number(/finished in [\d.]+s, ([\d.]+) req/);
  // A call that fails has a status and no message.
  const bytes = number(/\((\d+)\) data/) / requests;
  const failed = number(/(\d+) failed/) + number(/(\d+) 4xx/) + number(/(\d+) 5xx/);
  if (failed !== 0 || !(bytes > 100) || !(requestsPerSecond > 0)) throw new Error(`h2load: not all is well\n${output}`);
  return { requests, requestsPerSecond };
}
