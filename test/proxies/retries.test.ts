// What the proxies of deploy/proxies send to a second node when the first one ends without a response: GET alone. The nodes
// are servers that count requests and cut the connection of each.
import assert from "node:assert/strict";
import { createServer as createHttp1 } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import { request } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { after, before, describe, it } from "node:test";
import { type Certificate, makeCertificate, proxyNames, startProxy } from "./proxy.js";

let certificate: Certificate;
const servers: Server[] = [];
before(() => {
  certificate = makeCertificate();
});
after(() => {
  for (const server of servers) server.close();
});

/** Starts a node that is ready. */
async function startNode(version: "1.1" | "2", requests: string[]): Promise<number> {
  const server =
    version === "2"
      ? createHttp2((req, res) => {
          if (req.url === "/readyz") return void res.end("{}");
          requests.push(req.method);
          req.stream.session?.destroy();
        })
      : createHttp1((req, res) => {
          if (req.url === "/readyz") return void res.end("{}");
          requests.push(req.method ?? "");
          req.socket.destroy();
        });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

function send(port: number, method: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const target = { host: "127.0.0.1", servername: "localhost", port, path: "/a", method, agent: false };
    const headers = { host: `localhost:${port}`, "content-type": "application/json" };
    const req = request({ ...target, ca: certificate.cert, headers, timeout: 15_000 }, (res) => {
      res.resume();
      res.on("end", () => resolve(res.statusCode ?? 0));
    });
    req.on("timeout", () => req.destroy(new Error("no response within 15 s")));
    req.on("error", reject);
    req.end(method === "GET" ? undefined : "{}");
  });
}

for (const name of proxyNames) {
  describe(name, () => {
    for (const method of ["GET", "POST", "PATCH", "DELETE"]) {
      it(`${method} ${method === "GET" ? "is sent to another node" : "is sent once"}`, async () => {
        const requests: string[] = [];
        const version = name === "nginx" ? "1.1" : "2";
        const [target, second] = [await startNode(version, requests), await startNode(version, requests)];
        const proxy = await startProxy(name, { certificate, target, second });
        try {
          // HAProxy ends a connection of HTTP/1.1 without a response in place of an error.
          const status = await send(proxy.port, method).catch(() => 502);
          assert.ok(status >= 500, `${status}`);
          if (method === "GET") assert.ok(requests.length > 1, `${requests}`);
          else assert.deepEqual(requests, [method]);
        } finally {
          await proxy.stop();
        }
      });
    }
  });
}
