// Which sinks are contacted, with which trust, and that sinks which hang take nothing from others.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import type { LookupAddress } from "node:dns";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { createServer as createTcpServer, Socket } from "node:net";
import { after, before, test } from "node:test";
import { createEventSender } from "../../src/app/areas/events.js";
import { resolveSettings } from "../../src/config/config.js";
import type { CloudEvent } from "../../src/events/cloud-event.js";
import { randomIds } from "../../src/kernel/ids.js";
import { createGuardedFetch } from "../../src/outbound/guarded-fetch.js";
import { listen } from "../issuer/upstream/foreign-issuer.js";
import { address, names, refused } from "../outbound/refused-urls.js";
import { startStopwatch } from "../support/stopwatch.js";
import { TLS_FILES } from "../support/tls-files.js";
import { waitUntil } from "../support/wait-until.js";
import { RECEIVER_CA, type Receiver, startReceiver } from "./receiver.js";

const GROUP = "a".repeat(40);
const event: CloudEvent = {
  ...{ id: "00000000-0000-0000-0000-000000000000", type: "t", source: "s", subject: "", time: "2026-01-01T00:00:00Z" },
  ...{ group: GROUP, actor: "", bodyType: "", identityProvider: "", data: '{"body":{}}' },
};
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

let receiver: Receiver;
let sockets = 0;
const { connect } = Socket.prototype;
before(async () => {
  receiver = await startReceiver();
  Socket.prototype.connect = function (this: Socket, ...args: Parameters<typeof connect>) {
    sockets++;
    return connect.apply(this, args);
  } as typeof connect;
});
after(() => {
  Socket.prototype.connect = connect;
  receiver.close();
});

function createTestSender(
  flags: Readonly<Record<string, string>> = {},
  resolved: Readonly<Record<string, LookupAddress[]>> = names,
) {
  const reasons: string[] = [];
  const { send } = createEventSender({
    settings: resolveSettings({ flags: { data: "/nowhere", sinkCa: RECEIVER_CA, ...flags }, env: {} }),
    ids: randomIds,
    onProblem: (reason) => reasons.push(reason),
    origin: { issuer: "https://issuer.example", baseUrl: "https://api.example" },
    storage: {
      clock: Date.now,
      keys: { getSigningKey: () => ({ kid: "k", key: privateKey }), refresh: async () => {} } as never,
    },
    tracing: undefined,
    resolve: (hostname) => Promise.resolve(resolved[hostname] ?? []),
  });
  return {
    send: (sink: string, groupUid = GROUP) =>
      send({ uid: `${groupUid}/0123456789abcdef`, groupUid, sink }, async () => event),
    reasons,
  };
}

const trusts: readonly (readonly [name: string, flags: () => Record<string, string>])[] = [
  ["without trust", () => ({})],
  ["with another trusted network", () => ({ trustedSinks: "172.31.0.0/16" })],
  ["where issuers are trusted", () => ({ trustedIssuers: new URL(receiver.url).origin })],
];
for (const [name, flags] of trusts) {
  test(`no connection is opened to what no request may reach, ${name}`, async () => {
    sockets = 0;
    const { send } = createTestSender(flags());
    for (const url of [...refused.flatMap(({ urls }) => urls), receiver.url]) {
      const { kind, status, error } = await send(url);
      assert.deepEqual([kind, status, error], ["failed", 0, "it could not be reached"], url);
    }
    assert.equal(sockets, 0);
  });
}

test("control: what --trusted-sinks names is contacted, by its origin or its network", async () => {
  const { port } = new URL(receiver.url);
  const local = { "hooks.internal": address("127.0.0.1"), localhost: address("127.0.0.1") };
  const cases: readonly (readonly [trustedSinks: string, sink: string, isReached: boolean])[] = [
    [new URL(receiver.url).origin, receiver.url, true],
    ["127.0.0.1", receiver.url, true],
    ["10.0.0.0/8,127.0.0.0/8", receiver.url, true],
    ["127.0.0.0/8", `https://localhost:${port}/`, true],
    [`https://localhost:${port}`, `https://localhost:${port}/`, true],
    [`https://localhost:${port}`, receiver.url, false],
    ["fd00::/8", receiver.url, false],
    // The certificate is of another name.
    ["127.0.0.0/8", `https://hooks.internal:${port}/`, false],
  ];
  for (const [trustedSinks, sink, isReached] of cases) {
    const { send } = createTestSender({ trustedSinks }, local);
    assert.equal((await send(sink)).status, isReached ? 200 : 0, `${trustedSinks} ${sink}`);
  }
});

test("a certificate that nobody trusted has signed is refused, and said so", async () => {
  const { send } = createTestSender({ trustedSinks: "127.0.0.0/8", sinkCa: "" });
  assert.deepEqual(await send(receiver.url), { kind: "failed", status: 0, error: "the certificate is not valid" });
});

for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
  test(`a sink that wants a client certificate is told apart, over ${version}`, async () => {
    const read = (name: string) => readFileSync(new URL(name, TLS_FILES));
    const tls = { key: read("key.pem"), cert: read("cert.pem"), minVersion: version, maxVersion: version };
    const server = await listen(createServer({ ...tls, requestCert: true }, (_request, response) => response.end()));
    const sink = `https://127.0.0.1:${server.port}`;
    const { send, reasons } = createTestSender({ trustedSinks: "127.0.0.0/8" });
    const error = "a client certificate is required, and none is sent";
    assert.deepEqual(await send(sink), { kind: "failed", status: 0, error });
    assert.deepEqual(reasons, [`a sink did not accept an event: ${sink}: the server wants a client certificate`]);
    server.close();
  });
}

test("a failure of the handshake before the sink has a certificate is no question for one", async () => {
  const alert = Buffer.from([21, 3, 3, 0, 2, 2, 40]);
  const server = await listen(createTcpServer((socket) => socket.once("data", () => socket.end(alert))));
  const { send } = createTestSender({ trustedSinks: "127.0.0.0/8" });
  const error = "it could not be reached";
  assert.deepEqual(await send(`https://127.0.0.1:${server.port}`), { kind: "failed", status: 0, error });
  server.close();
});

test("organisations that are slow at an origin leave slots there for others", async () => {
  let held = 0;
  const shared = await startReceiver(({ path }) => {
    if (path === "/fast") return 200;
    held++;
    return () => {};
  });
  const { send } = createTestSender({ trustedSinks: "127.0.0.0/8" });
  const origin = new URL(shared.url).origin;
  const stuck = Array.from({ length: 300 }, (_, i) => send(`${origin}/slow`, String(i % 10).repeat(40)));
  // Ten organisations have 5 or 6 each of 64, where one alone would have 8.
  await waitUntil(() => held >= 50);
  assert.equal((await send(`${origin}/fast`, "b".repeat(40))).status, 200);
  assert.ok(held < 64, `${held} of 64 are held`);
  shared.close();
  await Promise.all(stuck.slice(0, held));
});

test("sinks that hang take slots from no other sink, organisation or kind of request", async () => {
  const hanging = await startReceiver(() => () => {});
  const { send } = createTestSender({ trustedSinks: "127.0.0.0/8" });
  const stuck = Array.from({ length: 40 }, () => send(hanging.url));
  await new Promise((resolve) => setTimeout(resolve, 200));
  // Eight to one sink at a time.
  assert.ok(hanging.connections() <= 8, `${hanging.connections()} connections`);
  const elapsedMs = startStopwatch();
  // The same organisation, another one, and a request of the kind that logins make.
  assert.equal((await send(receiver.url)).status, 200);
  assert.equal((await send(receiver.url, "b".repeat(40))).status, 200);
  const login = createGuardedFetch({ trustedOrigins: [], resolve: () => Promise.resolve([]) });
  await assert.rejects(login("https://issuer.example/", { organisation: GROUP }), { isBusy: false });
  assert.ok(elapsedMs() < 2_000);
  hanging.close();
  await Promise.all(stuck);
});
