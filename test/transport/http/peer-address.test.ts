// The address of a caller behind proxies: in every form that proxies write it, and whatever the caller writes before it.
import assert from "node:assert/strict";
import { BlockList, connect } from "node:net";
import { describe, test } from "node:test";
import { addressKey, unmapAddress } from "../../../src/kernel/ip-address.js";
import { createLogger } from "../../../src/telemetry/logger.js";
import { findPeerAddress, type TrustedProxies } from "../../../src/transport/http/peer-address.js";
import { measureLeastProcessorMs } from "../../support/stopwatch.js";
import { rawTcp, startServer } from "../harness.js";

function trust(header: TrustedProxies["header"]): TrustedProxies {
  const addresses = new BlockList();
  addresses.addSubnet("10.0.0.0", 8);
  addresses.addAddress("127.0.0.1");
  addresses.addSubnet("2001:db8:aa::", 48, "ipv6");
  return { addresses, header };
}

const PROXY = "10.0.0.1";

interface Row {
  readonly field: string | undefined;
  readonly address: string;
  readonly reason: string;
}

const lists: readonly Row[] = [
  { field: undefined, address: PROXY, reason: "no field" },
  { field: "", address: PROXY, reason: "an empty field" },
  { field: " ", address: PROXY, reason: "a blank field" },
  { field: "192.0.2.1", address: "192.0.2.1", reason: "an address" },
  { field: "192.0.2.1:5678", address: "192.0.2.1", reason: "with a port" },
  { field: "192.0.2.1:", address: "192.0.2.1", reason: "with a port that is empty" },
  { field: "2001:db8::1", address: "2001:db8::1", reason: "IPv6" },
  { field: "[2001:db8::1]", address: "2001:db8::1", reason: "IPv6 in brackets" },
  { field: "[2001:db8::1]:443", address: "2001:db8::1", reason: "IPv6 with a port" },
  { field: "::ffff:192.0.2.1", address: "192.0.2.1", reason: "mapped" },
  { field: "[::ffff:c000:201]:443", address: "192.0.2.1", reason: "mapped, in hexadecimal, with a port" },
  { field: "198.51.100.9:1, 192.0.2.1:2", address: "192.0.2.1", reason: "the last of two" },
  { field: "192.0.2.1:1, 10.1.1.1:2", address: "192.0.2.1", reason: "in front of a proxy with a port" },
  { field: "192.0.2.1,[2001:db8:aa::5]:9,10.1.1.1", address: "192.0.2.1", reason: "in front of proxies of both kinds" },
  { field: "[2001:db8::1]:443, ::ffff:10.1.1.1", address: "2001:db8::1", reason: "in front of a mapped proxy" },
  { field: "10.1.1.2:1, 10.1.1.1:2", address: "10.1.1.2", reason: "nobody but proxies" },
  { field: ", 10.1.1.1", address: "10.1.1.1", reason: "an empty entry" },
  { field: "unknown", address: "unknown", reason: "a name" },
  { field: "[192.0.2.1]:1", address: "[192.0.2.1]:1", reason: "IPv4 in brackets" },
  { field: "192.0.2.1:1:2", address: "192.0.2.1:1:2", reason: "two ports" },
  { field: "192.0.2.256:1", address: "192.0.2.256:1", reason: "no address" },
  { field: "[2001:db8::1", address: "[2001:db8::1", reason: "an open bracket" },
  { field: "x".repeat(100), address: "x".repeat(64), reason: "a long name" },
];

const elements: readonly Row[] = [
  { field: undefined, address: PROXY, reason: "no field" },
  { field: "", address: PROXY, reason: "an empty field" },
  { field: "for=192.0.2.1", address: "192.0.2.1", reason: "an address" },
  { field: "For=192.0.2.1;Proto=https;by=10.0.0.1", address: "192.0.2.1", reason: "among other parameters" },
  { field: "proto=https ; for=192.0.2.1", address: "192.0.2.1", reason: "after another parameter" },
  { field: 'for="192.0.2.1:5678"', address: "192.0.2.1", reason: "with a port" },
  { field: "for=192.0.2.1:5678", address: "192.0.2.1", reason: "with a port, unquoted" },
  { field: 'for="[2001:db8::1]"', address: "2001:db8::1", reason: "IPv6" },
  { field: 'for="[2001:db8::1]:443"', address: "2001:db8::1", reason: "IPv6 with a port" },
  { field: 'for="[2001:db8::1]:_obscure"', address: "2001:db8::1", reason: "IPv6 with a hidden port" },
  { field: 'for="19\\2.0.2.1"', address: "192.0.2.1", reason: "with an escape" },
  { field: 'for="192.0.2.1:1", for="10.1.1.1:2";proto=http', address: "192.0.2.1", reason: "in front of a proxy" },
  { field: "for=_hidden", address: "_hidden", reason: "a hidden name" },
  { field: "for=unknown, for=10.1.1.1", address: "unknown", reason: "an unknown caller" },
  { field: "proto=https", address: PROXY, reason: "no name" },
  { field: "for=192.0.2.1;for=192.0.2.2", address: PROXY, reason: "two names" },
  { field: 'host="a,b";for=192.0.2.1', address: "192.0.2.1", reason: "a comma in quotes" },
  { field: 'for=192.0.2.1;host=";for=198.51.100.9"', address: "192.0.2.1", reason: "a name in quotes" },
  // What a caller may send before the element that the proxy appends.
  { field: 'for="198.51.100.9, for=192.0.2.1', address: "192.0.2.1", reason: "a quote that is not closed" },
  { field: 'x="\\, for=192.0.2.1;proto=http', address: "192.0.2.1", reason: "a backslash and a quote" },
  { field: 'for=198.51.100.9;a="\\", for=192.0.2.1', address: "192.0.2.1", reason: "a quote that is escaped" },
  { field: "nonsense, ;;=, for=192.0.2.1", address: "192.0.2.1", reason: "nonsense" },
  { field: "for=198.51.100.9, for=192.0.2.1", address: "192.0.2.1", reason: "a forged element" },
  { field: 'for=192.0.2.1;host="a\\",for=198.51.100.9"', address: "192.0.2.1", reason: "a host with an escaped quote" },
  { field: 'for=192.0.2.1, for="10.1.1.1', address: PROXY, reason: "a malformed last element names nobody" },
];

describe("the address of a caller", () => {
  for (const [header, rows] of [
    ["X-Forwarded-For", lists],
    ["Forwarded", elements],
  ] as const) {
    const proxies = trust(header);
    const name = header.toLowerCase();
    const other = header === "Forwarded" ? "x-forwarded-for" : "forwarded";
    for (const { field, address, reason } of rows) {
      test(`${header}: ${field?.slice(0, 60)} is ${address.slice(0, 20)}: ${reason}`, () => {
        const headers = field === undefined ? {} : { [name]: field };
        assert.equal(findPeerAddress(PROXY, headers, proxies), address);
        assert.equal(findPeerAddress(`::ffff:${PROXY}`, headers, proxies), address, "from a mapped address");
        const both = { ...headers, [other]: "for=203.0.113.7, 203.0.113.7" };
        assert.equal(findPeerAddress(PROXY, both, proxies), address, "the other field is ignored");
        assert.equal(findPeerAddress("203.0.113.1", headers, proxies), "203.0.113.1", "from a stranger");
        assert.equal(findPeerAddress(PROXY, headers, undefined), PROXY, "without trusted proxies");
      });
    }

    test(`${header}: a field as long as there can be takes milliseconds at most`, () => {
      for (const text of [",", '"', "\\", '\\"', "10.1.1.1,", 'for="10.1.1.1",', " ", "for=a;"]) {
        const headers = { [name]: text.repeat(16_384 / text.length) };
        const ms = measureLeastProcessorMs(() => findPeerAddress(PROXY, headers, proxies));
        assert.ok(ms < 20, `${ms} ms: ${text}`);
      }
    });
  }

  for (const [given, plain] of [
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:c000:0201", "192.0.2.1"],
    ["0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"],
    ["::ffff:0:192.0.2.1", "::ffff:0:192.0.2.1"],
    ["::192.0.2.1", "::192.0.2.1"],
    ["64:ff9b::192.0.2.1", "64:ff9b::192.0.2.1"],
    ["2001:db8::ffff:c000:201", "2001:db8::ffff:c000:201"],
    ["192.0.2.1", "192.0.2.1"],
    ["", ""],
    ["unknown", "unknown"],
  ] as const) {
    test(`${given} is ${plain}`, () => {
      assert.equal(unmapAddress(given), plain);
      assert.equal(addressKey(given), addressKey(plain));
    });
  }
});

describe("log lines of a service that listens on [::]", () => {
  test("name callers over IPv4 by their IPv4 address, and those over IPv6 by theirs", async () => {
    const lines: { readonly msg: string; readonly path?: string; readonly remoteAddress?: string }[] = [];
    const logger = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
    const server = await startServer({
      listen: { host: "::", port: 0 },
      ...{ logger, accessLog: "all", limits: { connectionsPerAddress: 1 } },
    });
    const get = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
    const held = connect(server.port, "127.0.0.1", () => held.write(get));
    await new Promise((resolve) => held.once("data", resolve));
    // Malformed, and one connection more than there may be.
    await rawTcp(server.port, "GET /no HTTP/1.1\r\nHost: a b\r\n\r\n");
    held.destroy();
    await new Promise((resolve) => held.once("close", resolve));
    const sixth = connect(server.port, "::1", () => sixth.write(get.replace("/x", "/six")));
    await new Promise((resolve) => sixth.once("data", resolve));
    sixth.destroy();
    await server.stop(1_000);
    const seen = lines.filter(({ remoteAddress }) => remoteAddress !== undefined);
    assert.ok(seen.some(({ msg }) => msg === "connections of an address were rejected"));
    assert.deepEqual(
      [...new Set(seen.map(({ path, remoteAddress }) => `${path === "/six"} ${remoteAddress}`))].sort(),
      ["false 127.0.0.1", "true ::1"],
    );
  });
});
