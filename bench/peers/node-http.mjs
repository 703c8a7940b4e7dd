// The limit of REST on Node: node:http reading every request and answering with the same
// bytes. Arguments: port, file with the body.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const [port, file] = process.argv.slice(2);
const body = readFileSync(file, "utf8");
const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };

createServer((req, res) => {
  const answer = () => {
    res.writeHead(200, headers);
    res.end(body);
  };
  if (req.method === "GET") answer();
  else req.resume().on("end", answer);
}).listen(Number(port), "127.0.0.1", () => console.log("listening"));
