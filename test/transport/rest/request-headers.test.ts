// What headers of a request do: the id it is known by, the metadata of older
// clients, and the time it has.
import assert from "node:assert/strict";
import { BlockList } from "node:net";
import { after, before, test } from "node:test";
import { failure } from "../../support/feature/error-texts.js";
import type { FeatureHandler } from "../../support/feature/feature.js";
import { type FeatureServer, startDefault, startFeatureServer } from "../../support/feature/feature-server.js";

let server: FeatureServer;
// What GetThing does.
let getThing: FeatureHandler;

before(async () => {
  server = await startDefault((request, call) => getThing(request, call));
});
after(() => server.stop());

const MADE = /^[0-9a-f]{32}$/;
const ids: readonly { path: string; id?: string; echoed: string | RegExp; reason: string }[] = [
  { path: "/feature/v1/things/a", echoed: MADE, reason: "an answer without one" },
  { path: "/feature/v1/things/a", id: "A-1._z", echoed: "A-1._z", reason: "an answer with one" },
  { path: "/feature/v1/things/a", id: "a b", echoed: MADE, reason: "an answer with one that is not sane" },
  { path: "/feature/v1/things/a", id: "x".repeat(129), echoed: MADE, reason: "an answer with one that is too long" },
  { path: "/feature/v1/things/fails", echoed: MADE, reason: "an error of the handler" },
  { path: "/feature/v1/things/fails", id: "id-1", echoed: "id-1", reason: "an error of the handler, with one" },
  { path: "/feature/v1/things?nope=1", echoed: MADE, reason: "an error before the call" },
  { path: "/feature/v1/things?nope=1", id: "id-1", echoed: "id-1", reason: "an error before the call, with one" },
  { path: "/nowhere", id: "id-1", echoed: "id-1", reason: "no route" },
  { path: "/nowhere", id: "<script>", echoed: MADE, reason: "no route, with one that is not sane" },
];

for (const protocol of ["h1", "h2"] as const) {
  for (const { path, id, echoed, reason } of ids) {
    test(`${protocol}: x-request-id: ${reason}`, async () => {
      let seen: string | undefined;
      getThing = (request, call) => {
        seen = call.requestId;
        if ((request as unknown as { uid: string }).uid === "fails") throw new Error("x");
        return {};
      };
      const got = await server.send(protocol, { path, headers: id === undefined ? {} : { "x-request-id": id } });
      const given = got.headers["x-request-id"];
      if (echoed instanceof RegExp) assert.match(String(given), echoed);
      else assert.equal(given, echoed);
      // What the caller is told is what the log knows.
      if (seen !== undefined && given !== undefined) assert.equal(given, seen);
    });
  }

  test(`${protocol}: metadata with the prefix of older gateways is there under its own name`, async () => {
    const names = [
      "x-tenant",
      "x-both",
      "authorization",
      "cookie",
      "host",
      "te",
      "content-type",
      "grpc-timeout",
      "x-bin",
    ];
    let seen: Record<string, string | null> = {};
    let prefixed: string | null = "";
    let direct: string | undefined;
    getThing = (_request, call) => {
      seen = Object.fromEntries(names.map((name) => [name, call.requestHeader.get(name)]));
      prefixed = call.requestHeader.get("grpc-metadata-x-tenant");
      direct = call.inbound.header("x-tenant");
      return {};
    };
    const headers = {
      "Grpc-Metadata-X-Tenant": "t",
      "x-both": "own",
      "grpc-metadata-x-both": "alias",
      "grpc-metadata-authorization": "Bearer stolen",
      "grpc-metadata-cookie": "a=b",
      "grpc-metadata-host": "evil",
      "grpc-metadata-te": "trailers",
      "grpc-metadata-content-type": "text/html",
      "grpc-metadata-grpc-timeout": "1n",
      "grpc-metadata-": "no name",
      "grpc-metadata-x-bin": "AAE=",
    };
    const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    assert.equal((await server.send(protocol, { path: "/feature/v1/things/a", headers: lower })).status, 200);
    assert.deepEqual(
      { ...seen, host: null },
      {
        "x-tenant": "t",
        "x-both": "own",
        authorization: null,
        cookie: null,
        host: null,
        te: null,
        "content-type": null,
        "grpc-timeout": null,
        "x-bin": "AAE=",
      },
    );
    assert.notEqual(seen.host, "evil");
    assert.equal(prefixed, "t");
    assert.equal(direct, undefined);
  });
}

const forwarded: readonly { trusted: readonly [string, number][]; header: string | undefined; address: string }[] = [
  { trusted: [], header: "192.0.2.1", address: "127.0.0.1" },
  { trusted: [["10.0.0.0", 8]], header: "192.0.2.1", address: "127.0.0.1" },
  { trusted: [["127.0.0.1", 32]], header: "198.51.100.9, 192.0.2.1", address: "192.0.2.1" },
  { trusted: [["127.0.0.0", 8]], header: undefined, address: "127.0.0.1" },
  { trusted: [["127.0.0.0", 8]], header: " ", address: "127.0.0.1" },
  {
    trusted: [
      ["127.0.0.0", 8],
      ["10.0.0.0", 8],
    ],
    header: "10.9.9.9, 192.0.2.1, 10.1.1.1,10.1.1.2",
    address: "192.0.2.1",
  },
  { trusted: [["0.0.0.0", 0]], header: "198.51.100.9, 192.0.2.1", address: "198.51.100.9" },
  { trusted: [["127.0.0.1", 32]], header: "unknown", address: "unknown" },
];

for (const { trusted, header, address } of forwarded) {
  for (const protocol of ["h1", "h2"] as const) {
    test(`${protocol}: proxies ${trusted.join()}, forwarded for ${header}: ${address}`, async () => {
      let seen: string | undefined;
      const getLabels: FeatureHandler = (_request, call) => {
        seen = call.inbound.remoteAddress;
        return {};
      };
      const proxies = new BlockList();
      for (const [network, prefix] of trusted) proxies.addSubnet(network, prefix);
      const proxy = { addresses: proxies, header: "X-Forwarded-For" } as const;
      const other = await startFeatureServer({ GetLabels: getLabels }, { proxies: proxy });
      const headers = header === undefined ? {} : { "x-forwarded-for": header };
      try {
        await other.send(protocol, { path: "/feature/v1/labels/a", headers });
      } finally {
        await other.stop();
      }
      assert.equal(seen, address);
    });
  }
}

const GRPC = "Invalid argument: grpc-timeout: must be up to 8 digits and one of H, M, S, m, u, n";
const SERVER = "Invalid argument: x-server-timeout: must be a number of seconds, such as 2.5";
const LATE = "Deadline exceeded: the call took longer than allowed";

const allowances: readonly { headers: Record<string, string>; ms: number }[] = [
  { headers: {}, ms: 30_000 },
  { headers: { "grpc-timeout": "2S" }, ms: 2_000 },
  { headers: { "x-server-timeout": "2" }, ms: 2_000 },
  { headers: { "x-server-timeout": "2.5" }, ms: 2_500 },
  { headers: { "x-server-timeout": "0.25" }, ms: 250 },
  { headers: { "x-server-timeout": "3600" }, ms: 30_000 },
  { headers: { "x-server-timeout": "2", "grpc-timeout": "1S" }, ms: 1_000 },
  { headers: { "x-server-timeout": "1", "grpc-timeout": "2S" }, ms: 1_000 },
];

for (const { headers, ms } of allowances) {
  test(`${JSON.stringify(headers)} allows ${ms} ms`, async () => {
    let allowed = 0;
    getThing = (_request, call) => {
      allowed = call.deadlineMs - call.startMs;
      return {};
    };
    await server.send("h1", { path: "/feature/v1/things/a", headers });
    // What the call has waited for its turn is taken off.
    assert.ok(allowed <= ms && allowed > ms / 2, `${allowed}`);
  });
}

const rejected: readonly { headers: Record<string, string>; status: number; text: string }[] = [
  ...["", "-1", "+1", "1e3", "0x1", "1s", ".5", "1,5", "Infinity", "NaN", "1 2", "1234567890", "0.0000000001"].map(
    (value) => ({
      headers: { "x-server-timeout": value },
      status: 400,
      text: failure(3, "INVALID_ARGUMENT", SERVER),
    }),
  ),
  { headers: { "grpc-timeout": "2s" }, status: 400, text: failure(3, "INVALID_ARGUMENT", GRPC) },
  {
    headers: { "grpc-timeout": "2s", "x-server-timeout": "1" },
    status: 400,
    text: failure(3, "INVALID_ARGUMENT", GRPC),
  },
  { headers: { "x-server-timeout": "0" }, status: 504, text: failure(4, "DEADLINE_EXCEEDED", LATE) },
  { headers: { "x-server-timeout": "0.0" }, status: 504, text: failure(4, "DEADLINE_EXCEEDED", LATE) },
  { headers: { "grpc-timeout": "0S" }, status: 504, text: failure(4, "DEADLINE_EXCEEDED", LATE) },
];

for (const { headers, status, text } of rejected) {
  test(`${JSON.stringify(headers)} is rejected with ${status}`, async () => {
    const { length } = server.calls;
    const got = await server.send("h1", { path: "/feature/v1/things/a", headers });
    assert.deepEqual([got.status, got.text], [status, text]);
    assert.equal(server.calls.length, length);
  });
}
