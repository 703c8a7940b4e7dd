// The web console: its page, its assets, and who may load them.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { createConsole } from "../../src/transport/openapi/console.js";
import { type Harness, startHarness } from "../support/harness.js";
import { PROJECT } from "../support/project.js";
import { type Received, requestH1, requestH2, type Sent } from "../support/requests.js";
import { tempDir } from "../support/temp-dir.js";
import { beginHttp1 } from "./requests.js";

/** The console that the tests are compiled with: scripts/build-tests.mjs. */
const BUILT = join(PROJECT, "build/console");
const HTML = "text/html; charset=utf-8";
const ORIGIN = "https://app.example.org";

let harness: Harness;

before(async () => {
  harness = await startHarness({ corsOrigins: ORIGIN });
});
after(() => harness.stop());

const requests = [["h1", requestH1] as const, ["h2", requestH2] as const];
const ask = (sent: Sent, request = requestH1, url = harness.url) => {
  const headers = request === requestH1 ? { host: new URL(url).host, ...sent.headers } : sent.headers;
  return request(Number(new URL(url).port), { ...sent, headers: headers ?? {} });
};
const assets = readdirSync(join(BUILT, "assets")).filter((name) => /\.(?:css|js|svg)$/.test(name));

describe("the page", () => {
  for (const [protocol, request] of requests) {
    for (const path of [
      "/console",
      "/console/",
      "/console/groups/a%2Fb?filter=x",
      "/console/callback?code=c&state=s",
    ]) {
      test(`${protocol}: is at ${path}`, async () => {
        const answer = await ask({ path }, request);
        assert.deepEqual([answer.status, answer.headers["content-type"]], [200, HTML]);
        assert.equal(answer.text, readFileSync(join(BUILT, "index.html"), "utf8"));
        const head = await ask({ method: "HEAD", path }, request);
        assert.deepEqual([head.status, head.text, head.headers.etag], [200, "", answer.headers.etag]);
        assert.equal(head.headers["content-length"], answer.headers["content-length"]);
      });
    }
  }

  test("is for GET and HEAD alone", async () => {
    for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      const answer = await ask({ method, path: "/console/groups" });
      assert.deepEqual([answer.status, answer.headers.allow], [405, "GET, HEAD"], method);
    }
  });

  test("is checked at each visit", async () => {
    const { headers } = await ask({ path: "/console" });
    assert.equal(headers["cache-control"], "no-cache");
    const again = await ask({ path: "/console/other", headers: { "if-none-match": String(headers.etag) } });
    assert.deepEqual([again.status, again.text], [304, ""]);
  });

  test("admits scripts and styles of its own alone, and has none in it", async () => {
    const { headers, text } = await ask({ path: "/console" });
    const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'";
    const rest = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    assert.equal(
      headers["content-security-policy"],
      `${policy}; require-trusted-types-for 'script'; trusted-types 'none'; ${rest}`,
    );
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.equal(headers["referrer-policy"], "same-origin");
    assert.equal(headers["cross-origin-opener-policy"], "same-origin");
    assert.equal(headers["cross-origin-resource-policy"], "same-origin");
    assert.match(String(headers["permissions-policy"]), /camera=\(\)/);
    assert.doesNotMatch(text, /<script(?![^>]* src=)|<style|\son[a-z]+=|\sstyle=/);
  });

  test("leads to assets that are there", async () => {
    const { text } = await ask({ path: "/console" });
    const paths = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = ""]) => path);
    assert.ok(paths.length >= 3, text);
    for (const path of paths) assert.equal((await ask({ path })).status, 200, path);
  });
});

describe("assets", () => {
  test("are kept for ever, and have the type of their names", async () => {
    assert.ok(assets.length >= 3, assets.join());
    const expected = { js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };
    for (const name of assets) {
      const { status, headers, bytes } = await ask({ path: `/console/assets/${name}` });
      assert.equal(status, 200, name);
      assert.equal(headers["content-type"], expected[name.slice(name.lastIndexOf(".") + 1) as keyof typeof expected]);
      assert.equal(headers["cache-control"], "public, max-age=31536000, immutable");
      assert.equal(headers["cross-origin-resource-policy"], "same-origin");
      assert.equal(headers["x-content-type-options"], "nosniff");
      assert.deepEqual(bytes, readFileSync(join(BUILT, "assets", name)));
    }
  });

  test("that do not exist are not answered with the page", async () => {
    for (const name of ["none-ABCDEFGH.js", "", "none", `${assets[0]}/`, "..%2findex.html", `${assets[0]}.br`]) {
      const answer = await ask({ path: `/console/assets/${name}` });
      assert.deepEqual([answer.status, answer.headers["content-type"]], [404, "application/json"], name);
    }
  });
});

describe("compressed forms", () => {
  const decoders = { br: brotliDecompressSync, gzip: gunzipSync };
  const large = assets.filter((name) => readFileSync(join(BUILT, "assets", name)).length > 4096);

  for (const coding of ["br", "gzip"] as const) {
    test(`${coding}: are those of the build, with an ETag of their own`, async () => {
      assert.ok(large.length > 0);
      for (const name of large) {
        const path = `/console/assets/${name}`;
        const plain = await ask({ path });
        const coded = await ask({ path, headers: { "accept-encoding": coding } });
        assert.deepEqual([coded.headers["content-encoding"], coded.headers.vary], [coding, "accept-encoding"], name);
        assert.notEqual(coded.headers.etag, plain.headers.etag);
        assert.deepEqual(decoders[coding](coded.bytes), plain.bytes);
        const built = readFileSync(join(BUILT, "assets", `${name}.${coding === "br" ? "br" : "gz"}`));
        assert.deepEqual(coded.bytes, built);
      }
    });
  }

  test("are read from disk, never made anew; without one the file is sent", async () => {
    await serveFiles(
      { "assets/a.css": LARGE, "assets/a.css.br": "made before", "assets/b.css": LARGE },
      async (get) => {
        assert.equal((await get("/console/assets/a.css", { "accept-encoding": "br" })).text, "made before");
        for (const [path, coding] of [["a.css", "gzip"] as const, ["b.css", "br"] as const]) {
          const { text, headers } = await get(`/console/assets/${path}`, { "accept-encoding": coding });
          assert.deepEqual([text, headers["content-encoding"]], [LARGE, undefined]);
        }
      },
    );
  });
});

describe("another spelling of the host", () => {
  for (const [protocol, request] of requests) {
    test(`${protocol}: is redirected to the base URL, with path and query`, async () => {
      const { port } = new URL(harness.url);
      const path = "/console/groups/a%2Fb?filter=x&y=//z";
      for (const host of [`localhost:${port}`, "127.0.0.1", `localhost.:${port}`, "attacker.example"]) {
        const headers = protocol === "h1" ? { host } : { ":authority": host };
        const answer = await ask({ path, headers }, request);
        assert.deepEqual([answer.status, answer.headers.location], [307, harness.url + path], host);
        assert.equal(answer.headers["cache-control"], "no-store");
        // What proxies say is not used.
        const forwarded = { ...headers, "x-forwarded-host": new URL(harness.url).host };
        assert.equal((await ask({ path, headers: forwarded }, request)).status, 307);
      }
    });
  }

  test("is that of a proxy if the redirect led back to it, which gets the page", async () => {
    const first = await ask({ path: "/console", headers: { host: "arbor.internal" } });
    const [cookie = ""] = first.headers["set-cookie"] ?? [];
    assert.match(cookie, /; Path=\/console; Max-Age=60; HttpOnly; SameSite=Lax$/);
    const headers = { host: "arbor.internal", cookie: cookie.split(";")[0] ?? "" };
    assert.equal((await ask({ path: "/console", headers })).status, 200);
    assert.equal((await ask({ path: "/console", headers: { ...headers, cookie: "other=1" } })).status, 307);
  });

  test("is the same without its default port, and in other letters", async () => {
    const files = { "assets/a.css": LARGE, "index.html": "the page" };
    await serveFiles(
      files,
      async (get) => {
        for (const host of ["iam.example.com", "iam.example.com:443", "IAM.Example.com"])
          assert.equal((await get("/console", { host })).text, "the page", host);
        for (const host of ["iam.example.com:80", "iam.example.com:8443", "www.iam.example.com"])
          assert.equal((await get("/console", { host })).headers.location, "https://iam.example.com/console", host);
      },
      "https://iam.example.com",
    );
  });

  test("gets assets, and responses to other methods", async () => {
    const headers = { host: "localhost" };
    assert.equal((await ask({ path: `/console/assets/${assets[0]}`, headers })).status, 200);
    assert.equal((await ask({ method: "POST", path: "/console", headers })).status, 405);
  });
});

test("no response below /console has fields of CORS", async () => {
  const isOfCors = ([name]: readonly [string, unknown]) => name.startsWith("access-control-");
  const fieldsOf = ({ headers }: Received) => Object.entries(headers).filter(isOfCors);
  const preflight = { "access-control-request-method": "POST", "access-control-request-headers": "arbor-console-key" };
  const paths = [
    "/console",
    "/console/",
    "/console/session",
    `/console/assets/${assets[0]}`,
    "/console/assets/none.js",
  ];
  for (const path of paths) {
    for (const method of ["GET", "POST", "OPTIONS"]) {
      const answer = await ask({ method, path, headers: { origin: ORIGIN, ...(method === "OPTIONS" && preflight) } });
      assert.deepEqual(fieldsOf(answer), [], `${method} ${path}`);
    }
  }
  // The control: other paths have them, also those that only begin alike.
  for (const path of ["/iam/v2/groups", "/consoles"])
    assert.notDeepEqual(fieldsOf(await ask({ path, headers: { origin: ORIGIN } })), [], path);
});

test("the home page leads to it", async () => {
  assert.match((await ask({ path: "/" })).text, /<a href="console">Console<\/a>/);
});

test("--no-console answers 404 to all of it, and the home page does not name it", async () => {
  const without = await startHarness({ console: false });
  try {
    for (const path of [
      "/console",
      "/console/",
      "/console/groups",
      "/console/session",
      `/console/assets/${assets[0]}`,
    ]) {
      for (const method of ["GET", "POST"])
        assert.equal((await ask({ method, path }, requestH1, without.url)).status, 404, `${method} ${path}`);
    }
    assert.doesNotMatch((await ask({ path: "/" }, requestH1, without.url)).text, /console/i);
  } finally {
    await without.stop();
  }
});

test("without its files the page says how to build it", async () => {
  await serveFiles({}, async (get) => {
    assert.match((await get("/console/groups")).text, /npm run build/);
    assert.equal((await get("/console/assets/a.css")).status, 404);
  });
});

/** More than what is sent without compression. */
const LARGE = "/* a style */".repeat(200);

type Get = (path: string, headers?: Readonly<Record<string, string>>) => Promise<Received>;

/** Serves a console of these files, by name. */
async function serveFiles(
  files: Readonly<Record<string, string>>,
  look: (get: Get) => Promise<void>,
  baseUrl = "http://127.0.0.1",
): Promise<void> {
  const folder = tempDir();
  mkdirSync(join(folder, "assets"));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  const console = createConsole({ baseUrl, folder: pathToFileURL(`${folder}/`) });
  const server = createServer((req, res) => {
    if (!console.handle(beginHttp1(req, res), (req.url ?? "").split("?")[0] ?? "")) res.writeHead(404).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const { host } = new URL(baseUrl);
  try {
    await look((path, headers) => requestH1(port, { path, headers: { host, ...headers } }));
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
