// What no outgoing request may connect to: URLs, and names as an attacker's name servers would have them.
import type { LookupAddress } from "node:dns";

export const address = (...list: string[]): LookupAddress[] =>
  list.map((one) => ({ address: one, family: one.includes(":") ? 6 : 4 }));

/** Names as an attacker's name servers would have them. */
export const names: Readonly<Record<string, LookupAddress[]>> = {
  "private.test": address("10.0.0.1"),
  "loopback.test": address("127.0.0.1"),
  "mixed.test": address("1.1.1.1", "10.0.0.1"),
  "mixed6.test": address("2606:4700::1111", "::1"),
  "mapped.test": address("::ffff:127.0.0.1"),
  // What a DNS64 makes of the IPv4 addresses of the name server.
  "dns64.test": address("64:ff9b::a00:1"),
  "dns64-metadata.test": address("64:ff9b::a9fe:a9fe"),
  "local-nat64.test": address("64:ff9b:1::101:101"),
  "isatap.test": address("2a00:1450:4001:80b:0:5efe:a00:1"),
  "nonsense.test": address("not an address"),
  "nowhere.test": [],
  "metadata.google.internal": address("169.254.169.254"),
  localhost: address("127.0.0.1", "::1"),
};

export const NOT_PUBLIC = "the host has an address that is not public";
const CHARACTERS = "the address has characters that URLs do not have";
const NOT_HTTPS = "the address is not https";
const CREDENTIALS = "the address has a user name or password";
export const refused: readonly { urls: readonly string[]; reason: string; looksUp?: boolean }[] = [
  {
    reason: NOT_PUBLIC,
    urls: [
      ...["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0.0.0.0", "0", "10.0.0.1", "169.254.169.254"],
      ...["100.64.0.1", "192.0.0.192", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "%31%32%37.0.0.1"],
      ...[
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
      ],
      ...["[fc00::1]", "[ff02::1]", "[2001::1]", "[::127.0.0.1]"],
    ].map((host) => `https://${host}/keys`),
  },
  {
    reason: NOT_PUBLIC,
    looksUp: true,
    urls: [
      ...["private", "loopback", "mixed", "mixed6", "mapped", "nonsense"],
      ...["dns64", "dns64-metadata", "local-nat64", "isatap"],
    ].map((name) => `https://${name}.test/`),
  },
  {
    reason: NOT_PUBLIC,
    looksUp: true,
    urls: ["https://metadata.google.internal/x", "https://localhost/", "https://LOCALHOST/"],
  },
  { reason: "the host has no address", looksUp: true, urls: ["https://nowhere.test/"] },
  {
    reason: "the host ends with a dot",
    urls: ["https://localhost./", "https://loopback.test./", "https://127.0.0.1../"],
  },
  {
    reason: NOT_HTTPS,
    urls: [
      "http://loopback.test/",
      "http://127.0.0.1/",
      "ftp://loopback.test/",
      "file:///etc/passwd",
      "data:text/plain,x",
    ],
  },
  { reason: NOT_HTTPS, urls: ["javascript:0", "ws://loopback.test/", "https+unix://%2Frun/"] },
  { reason: "the port is not 443", urls: [22, 80, 6379, 5432, 8443].map((port) => `https://loopback.test:${port}/`) },
  {
    reason: CREDENTIALS,
    urls: ["https://user@loopback.test/", "https://u:p@loopback.test/", "https://good.test@loopback.test/"],
  },
  { reason: "the address has a fragment", urls: ["https://loopback.test/#x", "https://loopback.test/a?b#c"] },
  {
    reason: CHARACTERS,
    urls: [
      ...["\r\nHost: x", "\n", "\0", "\t", " ", "\u007f", "\\x", "é", "\u2028"].map(
        (text) => `https://loopback.test/${text}`,
      ),
      ...[
        "https://lооpback.test/",
        "https://\uff11\uff12\uff17.0.0.1/",
        "https://127\u30020.0.1/",
        " https://loopback.test/",
        "",
      ],
    ],
  },
  {
    reason: "it cannot be parsed",
    urls: ["loopback.test", "//loopback.test/", "https://", "https://[fe80::1%25lo]/", "https://a:99999/"],
  },
  { reason: "the address is too long", urls: [`https://loopback.test/${"x".repeat(2048)}`] },
];
