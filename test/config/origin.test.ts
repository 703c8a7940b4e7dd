// How the service is called by others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { resolveSettings, type Sources } from "../../src/config/config.js";
import { resolveOrigin } from "../../src/config/origin.js";

const origins: readonly {
  flags: Sources["flags"];
  listening?: { host: string; port: number };
  origin: ReturnType<typeof resolveOrigin>;
  reason: string;
}[] = [
  {
    flags: {},
    origin: {
      baseUrl: "http://127.0.0.1:8080",
      issuer: "http://127.0.0.1:8080",
      urls: ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"],
      audiences: ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"],
      errorDomain: "iam.127.0.0.1",
    },
    reason: "nothing set: the loopback address in all spellings",
  },
  {
    flags: { listen: "localhost:0" },
    listening: { host: "localhost", port: 4711 },
    origin: {
      baseUrl: "http://localhost:4711",
      issuer: "http://localhost:4711",
      urls: ["http://localhost:4711", "http://127.0.0.1:4711", "http://[::1]:4711"],
      audiences: ["http://localhost:4711", "http://127.0.0.1:4711", "http://[::1]:4711"],
      errorDomain: "iam.localhost",
    },
    reason: "the port that was found",
  },
  {
    flags: { listen: "[::1]:80", tlsCert: "c", tlsKey: "k" },
    origin: {
      baseUrl: "https://[::1]:80",
      issuer: "https://[::1]:80",
      urls: ["https://[::1]:80", "https://127.0.0.1:80", "https://localhost:80"],
      audiences: ["https://[::1]:80", "https://127.0.0.1:80", "https://localhost:80"],
      errorDomain: "iam.::1",
    },
    reason: "an IPv6 address and TLS",
  },
  {
    flags: { listen: "127.0.0.1:80", baseUrl: "https://api.example.org" },
    origin: {
      baseUrl: "https://api.example.org",
      issuer: "https://api.example.org",
      urls: ["https://api.example.org"],
      audiences: ["https://api.example.org"],
      errorDomain: "iam.api.example.org",
    },
    reason: "a base URL: it alone is the audience, whatever is listened on",
  },
  {
    flags: { baseUrl: "https://api.example.org:8443", issuer: "https://login.example.org", errorDomain: "example" },
    origin: {
      baseUrl: "https://api.example.org:8443",
      issuer: "https://login.example.org",
      urls: ["https://login.example.org", "https://api.example.org:8443"],
      audiences: ["https://api.example.org:8443"],
      errorDomain: "example",
    },
    reason: "everything set",
  },
  {
    flags: { baseUrl: "https://api.example.org", audiences: "registry.example.org,https://api.example.org" },
    origin: {
      baseUrl: "https://api.example.org",
      issuer: "https://api.example.org",
      urls: ["https://api.example.org"],
      audiences: ["https://api.example.org", "registry.example.org"],
      errorDomain: "iam.api.example.org",
    },
    reason: "further audiences, which are no URLs of the service",
  },
  {
    flags: { listen: "0.0.0.0:80", behindProxy: true },
    origin: {
      baseUrl: "http://0.0.0.0:80",
      issuer: "http://0.0.0.0:80",
      urls: ["http://0.0.0.0:80"],
      audiences: ["http://0.0.0.0:80"],
      errorDomain: "iam.0.0.0.0",
    },
    reason: "an address that is not loopback has one spelling",
  },
];

for (const { flags, listening, origin, reason } of origins) {
  test(`origin: ${reason}`, () => {
    const resolved = resolveSettings({ flags, env: {} });
    assert.deepEqual(resolveOrigin(resolved, listening ?? resolved.listen), origin);
  });
}
