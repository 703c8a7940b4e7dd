// Four kilobytes that unpack to four megabytes of messages that are dear to
// decode: over every protocol, on methods and routes, without credentials and
// with.
import { gzipSync } from "node:zlib";
import { type Attack, Counts, pick, repeat } from "../support/attack.js";
import { frame, openGrpc } from "../support/grpc.js";
import { post } from "../support/http.js";

const MIB = 1024 * 1024;
const SERVICE = "/chainguard.platform.iam.v2beta1.GroupsService";
// Empty submessages of a field that the message does not have, so that each is kept: 2 bytes make an object.
const BOMB = gzipSync(Buffer.alloc(4 * MIB - 64, Buffer.from([0xa2, 0x06, 0x00])), { level: 9 });
const JSON_BOMB = gzipSync(`{"name":"x","description":[${"[],".repeat(MIB)}[]]}`, { level: 9 });
const FORM_BOMB = gzipSync(`grant_type=x${"&a=b".repeat(MIB / 4)}`, { level: 9 });
const TIMEOUT_MS = 10_000;
/** The responses that tell a bomb it was not opened. */
const REFUSED: readonly number[] = [400, 401, 403, 404, 413, 415, 429, 503];

interface Bomb {
  readonly name: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const gzip = { "content-encoding": "gzip" };
const connect = (type: string) => ({ "content-type": type, "connect-protocol-version": "1" });
const BOMBS: readonly Bomb[] = [
  { name: "Connect", path: `${SERVICE}/ListGroups`, headers: { ...connect("application/proto"), ...gzip }, body: BOMB },
  {
    name: "Connect JSON",
    path: `${SERVICE}/CreateGroup`,
    headers: { ...connect("application/json"), ...gzip },
    body: JSON_BOMB,
  },
  {
    name: "Connect, a method open to everybody",
    path: "/grpc.health.v1.Health/Check",
    headers: { ...connect("application/proto"), ...gzip },
    body: BOMB,
  },
  {
    name: "Connect, the token exchange",
    path: "/chainguard.platform.oidc.SecurityTokenService/Exchange",
    headers: { ...connect("application/proto"), ...gzip },
    body: BOMB,
  },
  {
    name: "Connect stream",
    path: "/grpc.health.v1.Health/Watch",
    headers: { ...connect("application/connect+proto"), "connect-content-encoding": "gzip" },
    body: frame(BOMB, 1),
  },
  {
    name: "gRPC-Web",
    path: `${SERVICE}/ListGroups`,
    headers: { "content-type": "application/grpc-web+proto", "grpc-encoding": "gzip" },
    body: frame(BOMB, 1),
  },
  {
    name: "REST",
    path: "/iam/v2beta1/groups/GROUP",
    headers: { "content-type": "application/json", ...gzip },
    body: JSON_BOMB,
  },
  {
    name: "a web route",
    path: "/oauth/token",
    headers: { "content-type": "application/x-www-form-urlencoded", ...gzip },
    body: FORM_BOMB,
  },
];

export const attack: Attack = {
  async run({ url, addresses, token, group }, stop) {
    const counts = new Counts();
    const connections = addresses.map((address) => openGrpc(url, address));
    const send = async ({ name, path, headers, body }: Bomb, bearer: string | undefined, address: string) => {
      const status = await post(url, path.replace("GROUP", group), address, body, {
        ...headers,
        ...(bearer && { authorization: `Bearer ${bearer}` }),
      });
      if (stop.aborted) return;
      counts.add(`HTTP ${status}`);
      // gRPC-Web and streams tell their errors within a response of 200.
      const within = status === 200 && /gRPC-Web|stream/.test(name);
      if (!within && !REFUSED.includes(status)) counts.problem(`${name}: HTTP ${status}`);
    };
    await repeat({ ms: 150, width: 3, limit: 2_000, stop }, async (n) => {
      const bearer = Math.floor(n / BOMBS.length) % 2 === 1 ? token : undefined;
      const i = n % (BOMBS.length + 1);
      const bomb = BOMBS[i];
      if (bomb !== undefined) return send(bomb, bearer, pick(addresses, n));
      const { status } = await pick(connections, n).call({
        path: `${SERVICE}/ListGroups`,
        token: bearer,
        message: new Uint8Array(),
        headers: { "grpc-encoding": "gzip" },
        timeoutMs: TIMEOUT_MS,
        framed: frame(BOMB, 1),
      });
      if (stop.aborted) return;
      counts.add(`gRPC ${status}`);
      if (status === "0") counts.problem("gRPC: a bomb is answered OK");
    });
    for (const connection of connections) connection.close();
    return counts;
  },
};
