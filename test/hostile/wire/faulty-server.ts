// A small server with a planted fault for the kind of input that is named on the command line: each is
// a mistake that handlers make easily, and each ends the process. A fuzzer that does not find the fault
// planted for it could not find others.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2, type Http2Session, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createPort } from "node:net";
import { defaultLimits } from "../../../src/transport/http/limits/limits.js";
import { detectProtocol } from "../../../src/transport/http/protocol-detection.js";
import { groupsDocument } from "../../support/openapi/documents.js";

const planted = process.argv[2];
const DOCUMENT = JSON.stringify(groupsDocument());

const http1 = createServer({ requireHostHeader: false }, (req, res) => {
  // A request of HTTP/1.0 need not name its host.
  if (planted === "http1" && req.httpVersion === "1.0") (req.headers.host as string).trim();
  // A query need not be well escaped.
  if (planted === "query") decodeURIComponent(req.url ?? "");
  if (req.url === "/openapi.json") res.end(DOCUMENT);
  else if (req.url === "/healthz") res.end();
  else answer(req, res);
});

function answer(req: IncomingMessage, res: ServerResponse): void {
  const chunks: Buffer[] = [];
  req.on("data", (chunk: Buffer) => chunks.push(chunk));
  req.on("error", () => {});
  req.on("end", () => {
    // A body need not be JSON.
    if (planted === "json" && chunks.length > 0) JSON.parse(Buffer.concat(chunks).toString());
    res.end();
  });
}

const http2 = createHttp2();
http2.on("stream", (stream, headers, flags) => {
  stream.on("error", () => {});
  if (stream.destroyed || stream.closed) return;
  // A stream that was reset has no session any more.
  if (planted === "http2") stream.on("aborted", () => setImmediate(() => (stream.session as Http2Session).socket));
  stream.respond({ ":status": 200 });
  if (headers["content-type"]?.startsWith("application/grpc") && (flags & 1) === 0) readEnvelope(stream);
  else stream.end();
});
http2.on("sessionError", () => {});

function readEnvelope(stream: ServerHttp2Stream): void {
  stream.once("data", (chunk: Buffer) => {
    // A message need not be as long as its prefix says.
    if (planted === "envelopes" && chunk.length >= 5) chunk.readUInt8(4 + chunk.readUInt32BE(1));
    stream.end();
  });
}

const port = createPort((socket) => {
  detectProtocol(socket, defaultLimits, {
    http1(one) {
      http1.emit("connection", one);
      one.resume();
    },
    http2: (one) => http2.emit("connection", one),
  });
});
port.listen(0, "127.0.0.1", () => {
  console.log(`arbor listening on http://127.0.0.1:${(port.address() as AddressInfo).port}`);
});
