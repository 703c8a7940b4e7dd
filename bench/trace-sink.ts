// A collector that drops what it gets, as a process of its own, on the processor of the load generators. Its first line
// is its address; after a signal it writes how many spans it got.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

let spans = 0;
const server = createServer((req, res) => {
  const chunks: Buffer[] = [];
  req.on("data", (chunk: Buffer) => chunks.push(chunk));
  req.on("end", () => {
    spans += Buffer.concat(chunks).toString().split('"spanId"').length - 1;
    res.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
process.once("SIGTERM", () => process.stdout.write(`${spans}\n`, () => process.exit(0)));
