// Two nodes on one PostgreSQL database behind each proxy of deploy/proxies, restarted and killed while readers that do not
// retry go on, and writers that retry. Needs TEST_ARBOR_DATABASE_URL: npm run test:restarts.
import assert from "node:assert/strict";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { create, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { type Service, startService } from "../e2e/process.js";
import { type Api, grpcApi, restApi } from "../faults/api.js";
import { Recorder } from "../faults/recorder.js";
import { retrying } from "../faults/retries.js";
import { startWriters } from "../faults/writers.js";
import { newDatabase, withClient } from "../pg/databases.js";
import { runCommand } from "../support/command.js";
import { freePort } from "../support/free-port.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { type Certificate, makeCertificate, proxyNames, type RunningProxy, startProxy } from "./proxy.js";

/** Readers of each proxy, and the pause of a reader between two reads. */
const READERS = 16;
const PAUSE_MS = 20;
/** The time between the end of a restart and the next one. */
const BETWEEN_MS = 4_000;

let certificate: Certificate;
let settings: Readonly<Record<string, string>>;
let group: string;
let token: string;
before(async () => {
  certificate = makeCertificate();
  const databaseUrl = await newDatabase();
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  // The nodes have different ports, and tokens must be valid at both.
  const baseUrl = "https://arbor.example.com";
  settings = { "database-url": databaseUrl, "master-key-file": masterKeyFile, "base-url": baseUrl };
  const made = await runCommand(["bootstrap", "--org", "restarted", "--json", ...flagsOf(settings)]);
  assert.equal(made.code, 0, made.stderr);
  ({ group, token } = JSON.parse(made.stdout));
});

function flagsOf(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);
}

/** Two nodes and the ports that they keep. */
class Nodes {
  readonly ports: [number, number];
  readonly #services: Service[] = [];
  readonly #delay: string;

  private constructor(ports: [number, number], delay: string) {
    this.ports = ports;
    this.#delay = delay;
  }

  static async start(delay: string): Promise<Nodes> {
    const nodes = new Nodes([await freePort(), await freePort()], delay);
    await Promise.all([nodes.#run(0), nodes.#run(1)]);
    return nodes;
  }

  async #run(index: 0 | 1): Promise<void> {
    const values = {
      ...settings,
      listen: `127.0.0.1:${this.ports[index]}`,
      "trusted-proxies": "127.0.0.1",
      "metrics-listen": "off",
      "access-log": "off",
      "drain-delay": this.#delay,
      // The readers and the proxies share the processors with the nodes.
    };
    this.#services[index] = await startService(tempDir(), "--behind-proxy", ...flagsOf(values));
  }

  async end(index: 0 | 1, signal: NodeJS.Signals): Promise<void> {
    this.#services[index]?.signal(signal);
    await this.#services[index]?.ended;
  }

  async restart(index: 0 | 1, signal: NodeJS.Signals): Promise<void> {
    await this.end(index, signal);
    await this.#run(index);
  }

  async stop(): Promise<void> {
    await Promise.all([this.end(0, "SIGKILL"), this.end(1, "SIGKILL")]);
  }
}

interface Reads {
  readonly succeeded: number;
  /** What failed, with the time since the begin. */
  readonly failures: readonly string[];
}

/** One read; rejects when it fails. */
type Read = () => Promise<void>;

/** Reads a group over REST, by a client that keeps its connections and does not retry. */
function readRest({ port }: RunningProxy): Read {
  const agent = new Agent({ keepAlive: true, ca: certificate.cert });
  const target = { host: "127.0.0.1", servername: "localhost", port, path: `/iam/v2beta1/groups/${group}` };
  const headers = { host: `localhost:${port}`, authorization: `Bearer ${token}` };
  return () =>
    new Promise<void>((resolve, reject) => {
      const req = request({ ...target, agent, headers, timeout: 10_000 }, (res) => {
        let text = "";
        res.on("data", (chunk) => (text += chunk));
        res.on("error", reject);
        res.on("end", () => {
          if (res.statusCode === 200 && text.includes('"restarted"')) resolve();
          else reject(new Error(`${res.statusCode} ${text}`));
        });
      });
      req.on("timeout", () => req.destroy(new Error("no response within 10 s")));
      req.on("error", reject);
      req.end();
    });
}

/** Reads it over gRPC, where a read is a POST, which proxies do not repeat. A client may have a policy of retries. */
function readGrpc({ port }: RunningProxy, policy?: object): Read {
  const { parent, name, input, output } = GroupsService.method.getGroup;
  const credentials = grpc.credentials.createSsl(certificate.cert);
  const retries = policy === undefined ? 0 : 1;
  const client = new grpc.Client(`localhost:${port}`, credentials, {
    "grpc.enable_retries": retries,
    ...(policy !== undefined && { "grpc.service_config": JSON.stringify(policy) }),
  });
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  return () =>
    new Promise<void>((resolve, reject) => {
      client.makeUnaryRequest(
        `/${parent.typeName}/${name}`,
        (message: MessageShape<typeof input>) => Buffer.from(toBinary(input, message)),
        (bytes: Buffer) => fromBinary(output, bytes),
        create(input, { uid: group }),
        metadata,
        { deadline: Date.now() + 10_000 },
        (error, found) => (found?.name === "restarted" ? resolve() : reject(error)),
      );
    });
}

const RETRY_UNAVAILABLE = {
  methodConfig: [
    {
      name: [{}],
      retryPolicy: {
        ...{ maxAttempts: 5, initialBackoff: "0.1s", maxBackoff: "1s", backoffMultiplier: 2 },
        retryableStatusCodes: ["UNAVAILABLE"],
      },
    },
  ],
};

/** Reads all the time, by readers at the same time, until the function that is returned is called. */
function startReading(read: Read): () => Promise<Reads> {
  const startMs = performance.now();
  let isOver = false;
  let succeeded = 0;
  const failures: string[] = [];
  const readers = Array.from({ length: READERS }, async () => {
    while (!isOver) {
      try {
        await read();
        succeeded++;
      } catch (error) {
        failures.push(`${((performance.now() - startMs) / 1_000).toFixed(2)} s: ${(error as Error).message}`);
      }
      await sleep(PAUSE_MS);
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(readers);
    return { succeeded, failures };
  };
}

async function isServed(reads: readonly Read[]): Promise<boolean> {
  const results = await Promise.allSettled(reads.map((read) => read()));
  return results.every(({ status }) => status === "fulfilled");
}

/** A node and what ends it. */
type Step = readonly [index: 0 | 1, signal: NodeJS.Signals];

/** Ends nodes and starts them again, one after the other, while all readers go on. */
async function disturb(
  nodes: Nodes,
  reads: readonly Read[],
  steps: readonly Step[],
  betweenMs: number,
): Promise<Reads[]> {
  await waitUntil(() => isServed(reads));
  const stops = reads.map(startReading);
  await sleep(1_000);
  for (const [index, signal] of steps) {
    await nodes.restart(index, signal);
    await sleep(betweenMs);
  }
  return Promise.all(stops.map((stop) => stop()));
}

const RESTARTS: readonly Step[] = [
  [0, "SIGTERM"],
  [1, "SIGTERM"],
];

describe("two nodes", () => {
  let nodes: Nodes;
  let proxies: readonly RunningProxy[];
  before(async () => {
    nodes = await Nodes.start("5s");
    const [target, second] = nodes.ports;
    proxies = await Promise.all(proxyNames.map((name) => startProxy(name, { certificate, target, second })));
  });
  after(async () => {
    await Promise.all((proxies ?? []).map((proxy) => proxy.stop()));
    await nodes?.stop();
  });

  it("that are restarted and killed fail no GET behind any proxy", async (t) => {
    const all = await disturb(nodes, proxies.map(readRest), [...RESTARTS, [0, "SIGKILL"]], BETWEEN_MS);
    for (const [i, { succeeded, failures }] of all.entries()) {
      t.diagnostic(`${proxyNames[i]}: ${succeeded} reads succeeded, ${failures.length} failed`);
      assert.deepEqual(failures, [], proxies[i]?.output());
      assert.ok(succeeded > 300, `${succeeded}`);
    }
  });

  it("that are restarted fail no call of clients that retry, lose no write and do none twice", async (t) => {
    const recorder = new Recorder();
    const counts = { retries: 0, found: 0 };
    const writers = startCalls(proxies, recorder, (create, url) =>
      create === restApi
        ? retrying([restApi(url, token, { ca: certificate.cert })], counts)
        : grpcApi(url, token, { ca: certificate.cert, retriesWrites: true }),
    );
    const readers = proxies.map((proxy) => readGrpc(proxy, RETRY_UNAVAILABLE));
    const all = await disturb(nodes, readers, RESTARTS, BETWEEN_MS);
    await writers.stop();
    const { failed, wrong } = writers;
    const { lost, problems } = await recorder.compare((sql) =>
      withClient(settings["database-url"] ?? "", async (client) => (await client.query(sql)).rows),
    );
    for (const [i, { succeeded, failures }] of all.entries()) {
      t.diagnostic(`${proxyNames[i]}: ${succeeded} reads by gRPC succeeded, ${failures.length} failed`);
      assert.deepEqual(failures, [], proxyNames[i]);
      assert.ok(succeeded > 100, `${succeeded}`);
    }
    t.diagnostic(`${recorder.acknowledged} writes acknowledged, ${counts.retries} retries, ${lost.length} lost`);
    assert.deepEqual({ failed, wrong, lost, problems }, { failed: [], wrong: [], lost: [], problems: [] });
    assert.ok(recorder.acknowledged > 100, `${recorder.acknowledged}`);
  });

  it("that cannot be reached behind nginx are UNAVAILABLE, in the form that clients of gRPC repeat", async () => {
    const [target, second] = [await freePort(), await freePort()];
    const proxy = await startProxy("nginx", { certificate, target, second });
    try {
      await assert.rejects(readGrpc(proxy, RETRY_UNAVAILABLE)(), (error) => {
        // grpc-js does not say how often it tried, but repeats nothing whose response begins before its status.
        assert.match(String(error), /14 UNAVAILABLE: the service cannot be reached/);
        return true;
      });
    } finally {
      await proxy.stop();
    }
  });

  it("that are restarted fail no call of gRPC behind any proxy", async (t) => {
    const readers = proxies.map((proxy) => readGrpc(proxy));
    const all = await disturb(nodes, readers, [...RESTARTS, ...RESTARTS], BETWEEN_MS);
    for (const [i, { succeeded, failures }] of all.entries()) {
      t.diagnostic(`${proxyNames[i]}: ${succeeded} calls succeeded, ${failures.length} failed`);
      assert.deepEqual(failures, [], proxies[i]?.output());
      assert.ok(succeeded > 100, `${succeeded}`);
    }
  });
});

/** Two writers behind each proxy, over REST and gRPC. What one writes is read through the next. */
function startCalls(
  proxies: readonly RunningProxy[],
  recorder: Recorder,
  createClient: (create: typeof restApi | typeof grpcApi, url: string) => Api,
) {
  const apis = proxies.flatMap(({ url }) => [createClient(restApi, url), createClient(grpcApi, url)]);
  const writers = startWriters({ recorder, apis, group, role: builtinRoleUid("viewer"), pauseMs: PAUSE_MS });
  return {
    ...writers,
    async stop() {
      await writers.stop();
      for (const api of apis) api.close();
    },
  };
}

/** What takes the retries out of each file. */
const WITHOUT_RETRIES = {
  nginx: (text: string) => text.replace(/_next_upstream error timeout;/g, "_next_upstream off;"),
  haproxy: (text: string) =>
    text
      .replace("retries 3", "retries 0")
      .replace(/^ {2}(retry-on .*|http-request disable-l7-retry .*|option redispatch 1)$/gm, ""),
};

describe("controls", () => {
  it("without a drain and without retries writes fail behind every proxy", async (t) => {
    const nodes = await Nodes.start("0s");
    const [target, second] = nodes.ports;
    const proxies = await Promise.all(proxyNames.map((name) => startProxy(name, { certificate, target, second })));
    const writers = startCalls(proxies, new Recorder(), (create, url) => create(url, token, { ca: certificate.cert }));
    try {
      // A node may be killed just when no call is in flight behind it.
      for (let kills = 0; kills < 6 && writers.failed.length === 0; kills++) {
        await sleep(1_000);
        await nodes.restart(kills % 2 === 0 ? 0 : 1, "SIGKILL");
      }
      await writers.stop();
      t.diagnostic(`${writers.failed.length} calls failed: ${writers.failed.slice(0, 3).join("; ")}`);
      assert.ok(writers.failed.length > 0);
    } finally {
      await writers.stop();
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await nodes.stop();
    }
  });

  for (const name of ["nginx", "haproxy"] as const) {
    it(`without a drain delay and retries reads fail behind ${name}`, async (t) => {
      const nodes = await Nodes.start("0s");
      const [target, second] = nodes.ports;
      const proxy = await startProxy(name, { certificate, target, second, change: WITHOUT_RETRIES[name] });
      try {
        const [{ succeeded, failures }] = (await disturb(
          nodes,
          [readRest(proxy)],
          [
            [0, "SIGTERM"],
            [1, "SIGKILL"],
          ],
          500,
        )) as [Reads];
        t.diagnostic(`${succeeded} reads succeeded, ${failures.length} failed: ${failures.slice(0, 3).join("; ")}`);
        assert.ok(failures.length > 0 && succeeded > 0);
      } finally {
        await proxy.stop();
        await nodes.stop();
      }
    });
  }
});
