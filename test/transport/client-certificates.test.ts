// The service asks for no client certificate, which would make browsers ask people for one.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer as createProxy } from "node:net";
import { test } from "node:test";
import { connect as connectTls, createServer } from "node:tls";
import { startServer, TLS } from "./harness.js";

const HANDSHAKE_RECORD = 22;
const [SERVER_HELLO, CERTIFICATE, CERTIFICATE_REQUEST, SERVER_HELLO_DONE] = [2, 11, 13, 14];

/** The types of the messages that a server sends in its first flight, which TLS 1.2 does not encrypt. */
async function readFirstFlight(port: number): Promise<number[]> {
  const received: Buffer[] = [];
  const proxy = createProxy((socket) => {
    const upstream = connect(port, "127.0.0.1");
    for (const one of [socket, upstream]) one.on("error", () => {});
    upstream.on("data", (chunk: Buffer) => received.push(chunk));
    socket.pipe(upstream).pipe(socket);
  });
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  const { port: proxyPort } = proxy.address() as AddressInfo;
  const options = { host: "127.0.0.1", rejectUnauthorized: false, maxVersion: "TLSv1.2" } as const;
  const socket = connectTls({ ...options, port: proxyPort });
  try {
    await once(socket, "secureConnect");
  } finally {
    socket.destroy();
    proxy.close();
  }
  return listMessages(Buffer.concat(received));
}

// RFC 5246, sections 6.2.1 and 7.4: messages in records, each with its type and its length.
function listMessages(bytes: Buffer): number[] {
  const payloads: Buffer[] = [];
  for (let at = 0; bytes[at] === HANDSHAKE_RECORD; at += 5 + bytes.readUInt16BE(at + 3)) {
    payloads.push(bytes.subarray(at + 5, at + 5 + bytes.readUInt16BE(at + 3)));
  }
  const messages = Buffer.concat(payloads);
  const types: number[] = [];
  for (
    let at = 0;
    at < messages.length && types.at(-1) !== SERVER_HELLO_DONE;
    at += 4 + messages.readUIntBE(at + 1, 3)
  ) {
    types.push(messages.readUInt8(at));
  }
  return types;
}

function assertFlight(types: readonly number[]): void {
  for (const type of [SERVER_HELLO, CERTIFICATE, SERVER_HELLO_DONE]) assert.ok(types.includes(type), types.join());
}

test("no client certificate is asked for", async () => {
  const server = await startServer({ tls: TLS });
  try {
    const types = await readFirstFlight(server.port);
    assertFlight(types);
    assert.ok(!types.includes(CERTIFICATE_REQUEST), types.join());
  } finally {
    await server.stop();
  }
});

test("control: a server that asks is found", async () => {
  const server = createServer({ ...TLS, requestCert: true, rejectUnauthorized: false });
  await once(server.listen(0, "127.0.0.1"), "listening");
  try {
    const types = await readFirstFlight((server.address() as AddressInfo).port);
    assertFlight(types);
    assert.ok(types.includes(CERTIFICATE_REQUEST), types.join());
  } finally {
    server.close();
  }
});
