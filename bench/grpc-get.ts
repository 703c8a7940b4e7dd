// gRPC: unary GetGroup, with token, authorization and read, against grpc-js
// answering with the same group from memory.
//
//   node --import tsx bench/grpc-get.ts [--rows 100000] [--rounds 5] [--seconds 3] [--service dist/main.js]
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual, parseArgs } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { printConditions } from "./conditions.js";
import { GET_GROUP, loadGrpc, writeGetGroup } from "./h2load.js";
import { freePort, requireTools, startServer } from "./processes.js";
import { compare, judge } from "./rounds.js";
import { IDENTITIES, seed } from "./seed.js";
import { startService } from "./service.js";
import { targetsIn } from "./targets.js";

const GOAL = 0.9;
/** Connections and streams on each: a few shared connections of proxies, and many clients with one call each. */
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
  const frame = writeGetGroup(scratch, target.uid);
  try {
    for (const shape of SHAPES) {
      await checkBoth(ours, port, group);
      console.log(`\n${shape.connections} connections x ${shape.streams} streams`);
      const load = (to: number) => (seconds: number) =>
        loadGrpc(`http://127.0.0.1:${to}`, token, frame, shape, seconds);
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
    client.makeUnaryRequest(GET_GROUP, requestSerialize, responseDeserialize, request, metadata, (error, response) => {
      client.close();
      if (error || response === undefined) reject(error);
      else resolve(response);
    });
  });
}

// The load generator checks HTTP only, so a gRPC client checks that calls succeed.
async function checkBoth(ours: number, peer: number, group: object): Promise<void> {
  for (const port of [ours, peer]) {
    const response = await getGroup(port);
    if (!isDeepStrictEqual(response, group)) throw new Error(`not the same group: ${JSON.stringify(response)}`);
  }
}
