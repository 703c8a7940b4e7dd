// TLS, with a real server and a client process of its own, since the authorities that are trusted are
// read when a process starts.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import { createServer, type ServerOptions } from "node:https";
import type { Server } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { listen, serve } from "../issuer/upstream/foreign-issuer.js";
import { execFile } from "../support/child-process.js";
import { scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const file = (name: string) => readFileSync(new URL(`./tls/${name}`, import.meta.url), "utf8");
const valid = { key: file("test-key.pem"), cert: file("test-cert.pem") };
const expired = { key: file("test-key.pem"), cert: file("test-expired-cert.pem") };
const authorities = join(tempDir(), "authorities.pem");
writeFileSync(authorities, valid.cert + expired.cert);

/** Fetches from `host` at 127.0.0.1 in a new process with these variables. */
async function fetchAs(
  url: string,
  env: Readonly<Record<string, string>>,
): Promise<{ result: string; reasons: string[] }> {
  const { stdout } = await execFile(process.execPath, [...scriptArguments("test/outbound/guarded-client.ts"), url], {
    env: { PATH: process.env.PATH, ...env },
  });
  return JSON.parse(stdout);
}

const trusting = { NODE_EXTRA_CA_CERTS: authorities };
const careless = { NODE_TLS_REJECT_UNAUTHORIZED: "0", NODE_NO_WARNINGS: "1" };
const old: ServerOptions = { ...valid, minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" };
const refused: readonly {
  name: string;
  host?: string;
  server: ServerOptions;
  env?: Record<string, string>;
  reason: string;
}[] = [
  { name: "a certificate that no authority signed", server: valid, env: {}, reason: "DEPTH_ZERO_SELF_SIGNED_CERT" },
  { name: "the same where checks are turned off", server: valid, env: careless, reason: "DEPTH_ZERO_SELF_SIGNED_CERT" },
  {
    name: "the certificate of another host",
    host: "other.test",
    server: valid,
    reason: "ERR_TLS_CERT_ALTNAME_INVALID",
  },
  { name: "an expired certificate", server: expired, reason: "CERT_HAS_EXPIRED" },
  { name: "TLS 1.1", server: old, reason: "EPROTO" },
];

for (const { name, host = "issuer.test", server, env = trusting, reason } of refused) {
  test(`${name} is rejected before a request is sent`, async () => {
    let requests = 0;
    const listener = await listen(createServer(server, (_req, res) => res.end(String(requests++))));
    try {
      const url = `https://${host}:${listener.port}/`;
      const { result, reasons } = await fetchAs(url, env);
      assert.equal(result, "GuardedFetchError: the address could not be fetched");
      assert.deepEqual(reasons, [`https://${host}:${listener.port}: ${reason}`]);
      assert.deepEqual([requests, listener.connections], [0, 1]);
    } finally {
      listener.close();
    }
  });
}

test("control: the old server speaks TLS 1.1", async () => {
  const listener = await listen(createServer(old));
  try {
    const options = { minVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0", rejectUnauthorized: false } as const;
    const socket = connect({ host: "127.0.0.1", port: listener.port, ...options });
    await once(socket, "secureConnect");
    assert.equal(socket.getProtocol(), "TLSv1.1");
  } finally {
    listener.close();
  }
});

test("a certificate of a trusted authority will do, over HTTP/1.1 even where HTTP/2 is offered", async () => {
  const certificates: unknown[] = [];
  const server = createSecureServer({ ...valid, allowHTTP1: true }, (req, res) => {
    const { alpnProtocol, servername } = req.socket as unknown as Record<string, unknown>;
    certificates.push(req.httpVersion, alpnProtocol, servername, req.headers.host, req.headers.connection);
    res.end("hello");
  });
  const proxy = await serve((_req, res) => res.end("proxied"));
  const listener = await listen(server as Server);
  try {
    const env = { ...trusting, HTTPS_PROXY: proxy.origin, NODE_USE_ENV_PROXY: "1" };
    const { result, reasons } = await fetchAs(`https://issuer.test:${listener.port}/`, env);
    assert.deepEqual([result, reasons], ["200 hello", []]);
    assert.deepEqual(certificates, ["1.1", "http/1.1", "issuer.test", `issuer.test:${listener.port}`, "close"]);
    assert.equal(proxy.connections, 0);
  } finally {
    listener.close();
    proxy.close();
  }
});
