// Request lines, headers and framings of HTTP/1 by a grammar whose every part has wrong
// productions beside the right ones, and bytes changed at random after that.
import { METHODS } from "node:http";
import type { Random } from "../../support/openapi/random.js";
import { mutateBytes } from "./bytes.js";
import type { Kind, Peer } from "./campaign.js";
import { sendHttp1 } from "./http1-connection.js";

/** The most requests of a connection. */
const BATCH = 24;

/** By then the service waits for more of a request than there is, in milliseconds. */
const QUIET_MS = 800;

/** The kind. */
export const http1Kind: Kind = {
  async send(random, peer) {
    const inputs: Buffer[] = [];
    const most = 1 + random.int(BATCH);
    let keeps = true;
    // What will end the connection comes last, so that little is sent for nothing.
    while (keeps && inputs.length < most) {
      const made = oddRequest(random, peer);
      inputs.push(made.bytes);
      keeps = made.keeps;
    }
    const isCut = random.chance(0.1);
    return sendHttp1(peer, inputs, {
      quietMs: QUIET_MS,
      pieces: isCut ? cut(Buffer.concat(inputs), random) : random.chance(0.1) ? "together" : "last-alone",
      onStatus(status) {
        peer.count(String(status));
        if (status === 500 || status === 502) peer.fault(`status ${status}`);
      },
    });
  },
};

/** What a request needs to know of the service. */
export type OddPeer = Pick<Peer, "batch"> & { readonly target: Pick<Peer["target"], "organisation" | "token"> };

/** A request, and whether the connection should outlive it. */
export interface Made {
  readonly bytes: Buffer;
  readonly keeps: boolean;
}

/** Builds a request whose parts may each be wrong. */
export function oddRequest(random: Random, peer: OddPeer): Made {
  if (random.chance(0.01)) return { bytes: Buffer.from(random.pick(PRELUDES), "latin1"), keeps: false };
  // Most requests are odd in ways that a connection survives; the others may be wrong in every part.
  const keeps = random.chance(0.85);
  const wrong = (often: number) => !keeps && random.chance(often);
  const choose = ({ kept, ending }: Choices) => random.pick(keeps || random.chance(0.3) ? kept : ending);

  const method = random.chance(0.1) ? choose(ODD_METHODS) : random.pick(GOOD_METHODS);
  const space = wrong(0.05) ? random.pick(WRONG_SPACES) : " ";
  const target = random.chance(0.3) ? choose(oddTargets(random)) : goodTarget(random, peer);
  const version = wrong(0.4) ? random.pick(WRONG_VERSIONS) : "HTTP/1.1";
  const newline = wrong(0.08) ? random.pick(WRONG_NEWLINES) : "\r\n";
  const lines = [`${method}${space}${target}${space}${version}`];
  if (!random.chance(0.03)) lines.push("Host: 127.0.0.1");
  // What is deleted cannot be requested any more.
  if (method !== "DELETE" && random.chance(0.3)) lines.push(`Authorization: Bearer ${peer.target.token}`);
  if (random.chance(0.3)) lines.push(`X-Request-Id: b${peer.batch}`);
  for (let more = random.int(4); more > 0; more--) lines.push(choose(HEADERS));
  if (random.chance(0.01)) lines.push(choose(createOversized(random)));
  let body = "";
  if (random.chance(0.35)) {
    lines.push(`Content-Type: ${random.pick(TYPES)}`);
    const framing = keeps ? frameBody(random) : misframeBody(random);
    lines.push(...framing.lines);
    body = framing.body;
  }
  // The order of fields must not matter, and their ends may.
  if (random.chance(0.2)) lines.push(lines.splice(1 + random.int(lines.length), 1)[0] ?? "X: y");
  const bytes = Buffer.from(`${lines.join(newline)}${newline}${newline}${body}`, "latin1");
  return { bytes: wrong(0.3) ? mutateBytes(bytes, random) : bytes, keeps };
}

/** What a connection outlives, and what it should not. */
interface Choices {
  readonly kept: readonly string[];
  readonly ending: readonly string[];
}

const GOOD_METHODS = ["GET", "GET", "GET", "POST", "POST", "PATCH", "DELETE", "PUT", "OPTIONS", "HEAD"];
const ODD_METHODS: Choices = {
  kept: METHODS.filter((method) => method !== "CONNECT" && method !== "PRI"),
  ending: ["CONNECT", "PRI", "get", "GETT", "", "G ET", "G\tET", "FOO", "X".repeat(70), "\u00ff", "\x00GET", "\r\nGET"],
};
const WRONG_SPACES = ["  ", "\t", "", "\u00a0", " \t", "\x0b"];
const WRONG_VERSIONS = [
  ...["HTTP/2.0", "HTTP/2.0", "HTTP/2.0", "HTTP/1.0", "HTTP/1.0", "HTTP/0.9", "HTTP/2", "HTTP/3.0", "HTTP/2.1"],
  ...["HTTP/1.2", "HTTP/1.9", "HTTP/9.9", "HTTP/1", "HTTP/11", "HTTP/1.10", "HTTP/01.1", "HTTP/1,1", "HTTP/-1.1"],
  ...["http/1.1", "HTTPS/1.1", "HTTP", "", "HTTP/1.1 HTTP/1.1", "HTTP/1.1\x00", "RTSP/1.0", "ICE/1.0"],
];
const WRONG_NEWLINES = ["\n", "\r", "\n\r", "\r\n ", "\r\n\t", "\r\r\n", "\x00\r\n", "\x0c\r\n"];
/** What does not begin as a request does. */
const PRELUDES = [
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
  "PRI * HTTP/2.0\r\n",
  "PRI * HTTP/1.1\r\nHost: a\r\n\r\n",
  "P",
  "\r\n\r\n\r\n",
  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
  "SSH-2.0-OpenSSH\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  "\x00".repeat(100),
  "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
];
const PATHS = [
  "/",
  "/healthz",
  "/readyz",
  "/docs",
  "/token",
  "/oauth",
  "/oauth/token",
  "/console/session",
  "/oauth/callback?code=a&state=b",
  "/.well-known/openid-configuration",
  "/orgcheck?verified-org=acme.example",
  "/sts/exchange?aud=a",
  "/iam/v2beta1/groups",
  "/iam/v1/groups",
  "/iam/v2beta1/roles?page_size=1",
  "/chainguard.platform.iam.v2beta1.GroupsService/ListGroups",
  "/grpc.health.v1.Health/Check",
  "/grpc.health.v1.Health/Watch",
  "/registry/notifications",
];
const TYPES = [
  "application/json",
  "application/proto",
  "application/x-www-form-urlencoded",
  "application/grpc",
  "application/grpc-web+proto",
  "application/grpc-web-text",
  "application/connect+json",
  "text/plain",
  "",
];

function goodTarget(random: Random, { target }: OddPeer): string {
  // A megabyte, which is the same each time.
  if (random.chance(0.001)) return "/openapi.json";
  return random.chance(0.3) ? `/iam/v2beta1/groups/${target.organisation}` : random.pick(PATHS);
}

function oddTargets(random: Random): Choices {
  const path = random.pick(PATHS);
  return {
    kept: [
      `http://127.0.0.1${path}`,
      `HTTP://a:99999${path}`,
      "http://",
      "http://?a",
      `https://user@host${path}`,
      "*",
      `${path}#fragment`,
      `${path}%00`,
      `${path}%`,
      `${path}/%2e%2e/%2e`,
      `/..${path}`,
      `/${path}`,
      `${path}?${"a=b&".repeat(random.int(200))}`,
      `${path}?a=%zz&%ff=1&=`,
      `${path}{uid}|^\``,
      `/${"a".repeat(random.pick([100, 4_090, 4_200, 9_000]))}`,
      `/${"%41".repeat(random.int(1_500))}`,
      "/__proto__/constructor?__proto__=1",
    ],
    ending: [
      "?",
      `${path}\u00ff`,
      "127.0.0.1:80",
      "a",
      "",
      "//",
      "\\",
      `${path} x`,
      `${path}\x00`,
      `${path}\t`,
      "[::1]:80",
      `\x7f${path}`,
    ],
  };
}

const HEADERS: Choices = {
  kept: [
    "Accept: application/json",
    "Accept: ,;q=1,*/*;q=x",
    "Accept-Encoding: gzip, br;q=0.5, *;q=0",
    "X-Forwarded-For: 1.2.3.4, ,127.0.0.1",
    "X-Forwarded-For:",
    "X-Forwarded-Proto: https",
    "Forwarded: for=_x",
    "Origin: null",
    "Origin: https://evil.example",
    "Access-Control-Request-Method: PATCH",
    "Cookie: a=b; c; =; __Host-login=x",
    "Connection: keep-alive",
    "Connection: , ,",
    "Connection: HTTP2-Settings",
    "Keep-Alive: timeout=999999",
    "Expect: something",
    "TE: trailers, gzip;q=2",
    "Trailer: Content-Length, Host",
    "Range: bytes=-1-2",
    "If-None-Match: *",
    "If-Modified-Since: yesterday",
    "Authorization: Basic Og==",
    "Authorization: Bearer",
    "Authorization: Bearer a.b.c",
    "Authorization:",
    "Connect-Protocol-Version: 2",
    "Connect-Timeout-Ms: 99999999999",
    "Connect-Timeout-Ms: -1",
    "Grpc-Timeout: 1n",
    "Grpc-Encoding: br",
    "Grpc-Timeout: 99999999H",
    "X-HTTP-Method-Override: DELETE",
    "constructor: x",
    "__proto__: x",
    "X-Grpc-Web: 1",
    "X-Empty:",
    "X-Tab:\ta\t",
    "X-Latin: \u00e9\u00ff",
    "x-bin: AA%%",
    "Max-Forwards: 0",
    "Via: 1.0 a",
  ],
  ending: [
    "Host: b",
    "Host:",
    "Host: a b",
    "Host: [::1",
    "Host : a",
    "Connection: close",
    "Connection: Upgrade",
    "Connection: close, keep-alive",
    "Upgrade: h2c",
    "Upgrade: websocket",
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    "Proxy-Connection: close",
    "X Y: a",
    "no colon",
    ": no name",
    " folded: a",
    "X-Fold: a\r\n b",
    "X-Fold: a\r\n\tb",
    "X-Null: a\x00b",
    "X-Bare: a\rb",
    "X-Bare: a\nb",
    "X-Control: a\x01\x7f",
    "\x00",
    ":authority: a",
    "X-\u00ff: a",
    "Expect: 100-continue",
    "Expect: 100-continue\r\nContent-Length: 99999999",
    "Content-Length: 5",
    "Content-Length: 0",
    "Transfer-Encoding: chunked",
    "HTTP/1.1 200 OK",
    "GET / HTTP/1.1",
  ],
};

function createOversized(random: Random): Choices {
  return {
    kept: [`X-Large: ${"a".repeat(random.pick([1_000, 8_000]))}`],
    ending: [
      `X-Large: ${"a".repeat(random.pick([15_000, 16_500, 40_000]))}`,
      Array.from({ length: random.pick([100, 1_000, 3_000]) }, (_, i) => `a${i}: b`).join("\r\n"),
      `${"n".repeat(20_000)}: a`,
    ],
  };
}

interface Framing {
  readonly lines: readonly string[];
  readonly body: string;
}

const BODIES = ["{}", "", '{"name":"a"}', "a=b&c=%ff", "\x00\x00\x00\x00\x00", "AAAAAAA=", "x".repeat(3_000)];

function frameBody(random: Random): Framing {
  const body = random.pick(BODIES);
  if (random.chance(0.5)) return { lines: [`Content-Length: ${body.length}`], body };
  return { lines: ["Transfer-Encoding: chunked"], body: chunks(body, random) };
}

function misframeBody(random: Random): Framing {
  const body = random.pick(BODIES);
  const size = body.length;
  const chunked = chunks(body, random);
  const [lines, wrong] = random.pick<readonly [readonly string[], string]>([
    [[`Content-Length: ${size + 1 + random.int(50)}`], body],
    [[`Content-Length: ${Math.max(0, size - 1)}`], body],
    [[`Content-Length: ${size}`, `Content-Length: ${size}`], body],
    [[`Content-Length: ${size}`, `Content-Length: ${size + 1}`], body],
    [[`Content-Length: ${size}, ${size}`], body],
    ...[
      "-1",
      "+1",
      "1e1",
      "0x10",
      "",
      "99999999999999999999",
      "4294967296",
      "18446744073709551616",
      " 1 2",
      "1;",
      "٣",
    ].map((length): readonly [readonly string[], string] => [[`Content-Length: ${length}`], body]),
    [[`Content-Length: ${size}`, "Transfer-Encoding: chunked"], chunked],
    [["Transfer-Encoding: chunked", `Content-Length: ${size}`], body],
    ...[
      "gzip, chunked",
      "chunked, chunked",
      "chunked, identity",
      "identity",
      "Chunked",
      "chunked;a=b",
      "xchunked",
      "\x0bchunked",
      ", chunked",
      "gzip",
      "",
    ].map((coding): readonly [readonly string[], string] => [[`Transfer-Encoding: ${coding}`], chunked]),
    [["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], chunked],
    [["Transfer-Encoding : chunked"], chunked],
    [["Transfer-Encoding: chunked"], wrongChunks(body, random)],
    [["Transfer-Encoding: chunked"], wrongChunks(body, random)],
    [["Transfer-Encoding: chunked"], wrongChunks(body, random)],
    [[], body],
  ]);
  return { lines, body: wrong };
}

function chunks(body: string, random: Random): string {
  const at = random.int(body.length + 1);
  const parts = [body.slice(0, at), body.slice(at)].filter((part) => part !== "");
  const extension = random.chance(0.2) ? random.pick([";a=b", ';a="b;c"', ";a", "; a = b"]) : "";
  const trailer = random.chance(0.2) ? random.pick(["X-Trailer: a\r\n", "Content-Length: 5\r\n", "Host: b\r\n"]) : "";
  return `${parts.map((part) => `${part.length.toString(16)}${extension}\r\n${part}\r\n`).join("")}0\r\n${trailer}\r\n`;
}

function wrongChunks(body: string, random: Random): string {
  const size = body.length.toString(16);
  return random.pick([
    `${size}\n${body}\n0\n\n`,
    `0x${size}\r\n${body}\r\n0\r\n\r\n`,
    `-1\r\n${body}\r\n0\r\n\r\n`,
    `${size} \r\n${body}\r\n0\r\n\r\n`,
    `${size}\r\n${body}0\r\n\r\n`,
    `${size}\r\n${body}\r\n`,
    `${size}\r\n${body}\r\n0\r\n`,
    `fffffffffffffffff\r\n${body}\r\n0\r\n\r\n`,
    `ffffffff\r\n${body}\r\n`,
    `${"0".repeat(5_000)}${size}\r\n${body}\r\n0\r\n\r\n`,
    `${size};${"a".repeat(20_000)}\r\n${body}\r\n0\r\n\r\n`,
    `${size};a\x00b\r\n${body}\r\n0\r\n\r\n`,
    `\r\n${body}\r\n0\r\n\r\n`,
    `g\r\n${body}\r\n0\r\n\r\n`,
    `${size}\r\n${body}\r\n0\r\nno colon\r\n\r\n`,
    `${size}\r\n${body}\r\n0\r\n${"X: y\r\n".repeat(4_000)}\r\n`,
    `${size}\r\n${body}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n`,
  ]);
}

// Anywhere, also in the middle of a line or of a number.
function cut(bytes: Buffer, random: Random): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random.int(random.pick([3, 200, 2_000]));
    // A bound, since each piece takes a tick of the event loop.
    pieces.push(bytes.subarray(at, pieces.length < 30 ? end : bytes.length));
    at = pieces.length <= 30 ? end : bytes.length;
  }
  return pieces;
}
