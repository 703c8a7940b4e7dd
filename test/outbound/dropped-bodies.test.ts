// Requests of whose response only the status counts: it is known when its line has arrived, whatever follows.
import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { test } from "node:test";
import { createGuardedFetch } from "../../src/outbound/guarded-fetch.js";
import { listen } from "../issuer/upstream/foreign-issuer.js";
import { waitUntil } from "../support/wait-until.js";

const OK = "HTTP/1.1 200 OK\r\n";
const answers: readonly (readonly [name: string, status: number, answer: (socket: Socket) => void])[] = [
  ["a body without an end", 200, (socket) => repeat(socket, `${OK}Transfer-Encoding: chunked\r\n\r\n`, "1\r\nx\r\n")],
  ["a long body without an end", 201, (socket) => repeat(socket, "HTTP/1.1 201 Created\r\n\r\n", "x".repeat(65_536))],
  ["a body that does not come", 202, (socket) => socket.write("HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\n")],
  ["half a body", 200, (socket) => socket.end(`${OK}Content-Length: 9\r\n\r\nx`)],
  ["fields of 200 KB", 204, (socket) => socket.write(`HTTP/1.1 204 No Content\r\nX: ${"x".repeat(200_000)}\r\n\r\n`)],
  ["fields without an end", 200, (socket) => repeat(socket, OK, `X: ${"y".repeat(1_000)}\r\n`)],
  ["fields that do not come", 200, (socket) => socket.write(`${OK}X-Slow: `)],
  ["fields that nobody can read", 200, (socket) => socket.write(`${OK}\0\r\n\r\n`)],
  ["a reset connection", 200, (socket) => socket.write(OK, () => socket.resetAndDestroy())],
  [
    "a body after interim responses",
    299,
    (socket) => repeat(socket, "HTTP/1.1 103 E\r\nA: b\r\n\r\nHTTP/1.1 299 \r\n", "x"),
  ],
  ["a failure with fields that nobody can read", 503, (socket) => socket.write("HTTP/1.1 503 No\r\n\0\r\n\r\n")],
  [
    "a redirect with a body without an end",
    302,
    (socket) => repeat(socket, "HTTP/1.1 302 F\r\n\r\n", "x".repeat(65_536)),
  ],
];

function repeat(socket: Socket, head: string, piece: string): void {
  socket.write(head);
  const block = piece.repeat(Math.ceil(65_536 / piece.length));
  const more = () => {
    while (!socket.destroyed && socket.write(block));
  };
  socket.on("drain", more);
  more();
}

for (const [name, status, answer] of answers) {
  test(`${status} with ${name} is ${status}, and the connection ends`, async () => {
    const sockets: Socket[] = [];
    const server = await listen(
      createServer((socket) => {
        sockets.push(socket);
        socket.once("data", () => answer(socket));
      }),
    );
    const reasons: string[] = [];
    const options = { trustedOrigins: [server.origin], onFailure: (reason: string) => reasons.push(reason) };
    try {
      const response = await createGuardedFetch(options)(server.origin, {
        method: "POST",
        body: "{}",
        dropsBody: true,
      });
      assert.deepEqual([response.status, reasons], [status, []]);
      await waitUntil(() => sockets.every(({ destroyed }) => destroyed));
      assert.equal(sockets.length, 1);
    } finally {
      server.close();
    }
  });
}

const failures: readonly (readonly [name: string, answer: string, reason: string])[] = [
  ["interim responses alone", "HTTP/1.1 103 E\r\n\r\n", "ECONNRESET"],
  ["half a status line", "HTTP/1.1 20", "ECONNRESET"],
  ["another protocol", "SSH-2.0-OpenSSH_9.2 HTTP/1.1 200 OK\r\n", "HPE_INVALID_CONSTANT"],
  ["a status in a field", "HTTP/1.1 103 E\r\nX: HTTP/1.1 200 OK\r\n\r\n", "ECONNRESET"],
  ["a status in the status line", "HTTP/1.1 103 HTTP/1.1 200 OK\r\n\r\n", "ECONNRESET"],
];
for (const [name, answer, reason] of failures) {
  test(`${name} are no success`, async () => {
    const server = await listen(createServer((socket) => socket.once("data", () => socket.end(answer))));
    const reasons: string[] = [];
    const options = { trustedOrigins: [server.origin], onFailure: (one: string) => reasons.push(one) };
    try {
      await assert.rejects(createGuardedFetch(options)(server.origin, { dropsBody: true }));
      assert.deepEqual(reasons, [`${server.origin}: ${reason}`]);
    } finally {
      server.close();
    }
  });
}
