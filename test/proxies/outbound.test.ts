// Outgoing requests through a real proxy, tinyproxy, and through one that is reached over TLS.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttp, type IncomingMessage, type Server } from "node:http";
import { createServer } from "node:https";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Listener, listen } from "../issuer/upstream/foreign-issuer.js";
import { execFile } from "../support/child-process.js";
import { freePort } from "../support/free-port.js";
import { scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { makeCertificate } from "./proxy.js";

const file = (name: string) => readFileSync(new URL(`../outbound/tls/${name}`, import.meta.url), "utf8");
const issuer = { key: file("test-key.pem"), cert: file("test-cert.pem") };
const local = makeCertificate();
const directory = tempDir();
const authorities = join(directory, "authorities.pem");
writeFileSync(authorities, issuer.cert + local.cert);

let target: Listener;
let asked: string[] = [];

before(async () => {
  target = await listen(createServer(issuer, ({ headers, url }, res) => res.end(`${headers.host}${url}`)));
});

after(() => target.close());

/** Opens tunnels to the target, whatever the host. */
function startTunnels(server: Server): Promise<Listener> {
  server.on("connect", ({ url = "" }: IncomingMessage, client: Socket) => {
    asked.push(url);
    const upstream = connect(target.port, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      client.pipe(upstream).pipe(client);
    });
    for (const socket of [client, upstream]) socket.on("error", () => {});
  });
  return listen(server);
}

async function fetchThrough(url: string, proxy: string): Promise<unknown> {
  const args = [...scriptArguments("test/outbound/guarded-client.ts"), url, proxy];
  const env = { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: authorities };
  return JSON.parse((await execFile(process.execPath, args, { env })).stdout);
}

const FAILED = "GuardedFetchError: the address could not be fetched";
const GOOD = { result: "200 issuer.test/keys", reasons: [] };

test("through tinyproxy", async () => {
  asked = [];
  // Its own name server does not know the host of the test, so another proxy connects it.
  const upstream = await startTunnels(createHttp());
  const port = await freePort();
  const config = join(directory, "tinyproxy.conf");
  writeFileSync(
    config,
    `Port ${port}\nListen 127.0.0.1\nMaxClients 10\nConnectPort 443\nUpstream http 127.0.0.1:${upstream.port} "issuer.test"\n`,
  );
  const child = spawn("tinyproxy", ["-d", "-c", config], { stdio: "ignore" });
  try {
    await once(child, "spawn");
    await waitForPort(port);
    const proxy = `http://127.0.0.1:${port}`;
    assert.deepEqual(await fetchThrough("https://issuer.test/keys", proxy), GOOD);
    assert.deepEqual(asked, ["issuer.test:443"]);
    const reason = "https://nowhere.invalid: the proxy opened no tunnel: it answered with status 500";
    assert.deepEqual(await fetchThrough("https://nowhere.invalid/", proxy), { result: FAILED, reasons: [reason] });
  } finally {
    const exited = once(child, "exit");
    child.kill();
    await exited;
    upstream.close();
  }
});

test("through a proxy that is reached over TLS", async () => {
  asked = [];
  const key = readFileSync(`${local.certFile}.key`);
  const proxy = await startTunnels(createServer({ key, cert: local.cert }));
  try {
    for (const host of ["localhost", "127.0.0.1"])
      assert.deepEqual(await fetchThrough("https://issuer.test/keys", `https://${host}:${proxy.port}`), GOOD);
    assert.deepEqual(asked, ["issuer.test:443", "issuer.test:443"]);
  } finally {
    proxy.close();
  }
});

async function waitForPort(port: number): Promise<void> {
  for (let i = 0; i < 100; i++) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("tinyproxy does not listen");
}
