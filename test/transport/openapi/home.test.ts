// The page at `/`, and `/version`.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { VERSION } from "../../../src/kernel/version.js";
import { mount } from "../../../src/pipeline/mount.js";
import type { MountHttpRule } from "../../../src/pipeline/mount-options.js";
import type { RouteGroup } from "../../../src/transport/http/health-routes.js";
import { createSite } from "../../../src/transport/openapi/site.js";
import { nameService } from "../../../src/transport/openapi/tags.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { LibraryService } from "../../support/library/library_pb.js";
import { readDocument } from "../../support/openapi/request.js";
import { PROJECT } from "../../support/project.js";
import { requestH1, requestH2 } from "../../support/requests.js";
import { tempDir } from "../../support/temp-dir.js";
import { beginHttp1 } from "../requests.js";

let harness: Harness;

before(async () => {
  harness = await startHarness();
});
after(() => harness.stop());

const get = (path: string, headers: Readonly<Record<string, string>> = {}) => fetch(harness.url + path, { headers });

const HTML = "text/html; charset=utf-8";
/** The site that the tests are compiled with: scripts/build-tests.mjs. */
const SITE = join(PROJECT, "build/site");
const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const rows: readonly {
  path: string;
  method?: string;
  accept?: string;
  status: number;
  type: string;
  reason: string;
}[] = [
  { path: "/", status: 200, type: HTML, accept: BROWSER, reason: "a browser" },
  { path: "/", status: 200, type: HTML, accept: "*/*", reason: "a program that takes anything" },
  { path: "/?x=y", status: 200, type: HTML, accept: "*/*", reason: "a query" },
  { path: "/", status: 200, type: "application/json", accept: "application/json", reason: "a program that wants JSON" },
  { path: "/", method: "HEAD", status: 200, type: HTML, accept: "*/*", reason: "no body" },
  { path: "/", method: "POST", status: 405, type: "application/json", reason: "there is nothing to change" },
  { path: "/version", status: 200, type: "application/json", reason: "the version" },
  { path: "/version", method: "DELETE", status: 405, type: "application/json", reason: "there is nothing to change" },
  { path: "/version/", status: 404, type: "application/json", reason: "another path" },
  { path: "/index.html", status: 404, type: "application/json", reason: "no page" },
  { path: "//", status: 404, type: "application/json", reason: "two slashes" },
  { path: "/docs/", status: 200, type: HTML, reason: "the documentation" },
  { path: "/docs/index.html", status: 200, type: HTML, reason: "the same by its file" },
  { path: "/docs/cli.html?x=y", status: 200, type: HTML, reason: "a page" },
  { path: "/docs/cli.html", method: "HEAD", status: 200, type: HTML, reason: "no body" },
  { path: "/docs/cli.html", method: "POST", status: 405, type: "application/json", reason: "nothing to change" },
  { path: "/docs/guide/cli.md", method: "POST", status: 405, type: "application/json", reason: "where it was" },
  { path: "/docs/adr/0003-group-commit.html", status: 200, type: HTML, reason: "a page that others link to" },
  { path: "/docs/settings.schema.json", status: 200, type: "application/json", reason: "a file beside the pages" },
  ...["none.html", "cli", "cli.md", "cli.html/", "/cli.html", "CLI.html", "adr", "adr/", "..%2fpackage.json"].map(
    (name) => ({
      ...{ path: `/docs/${name}`, status: 404, type: "application/json", reason: "no page" },
    }),
  ),
  ...["none.md", "cli", "cli.md/", "/cli.md", "adr/", "..%2fpackage.json", "/etc/passwd"].map((name) => ({
    ...{ path: `/docs/guide/${name}`, status: 404, type: "application/json", reason: "no page, and none before" },
  })),
  ...["../package.json", "../../package.json", "%2e%2e/package.json", "adr/../cli.html", "./cli.html"].map((name) => ({
    ...{ path: `/docs/${name}`, status: 400, type: "application/json", reason: "dots" },
  })),
  { path: "/docs/guides", status: 404, type: "application/json", reason: "another path" },
  ...["/nothing", "/nothing/", "/a/b/c.html", "/iam/v2/nothing", "/docs/none.html", "/docs/adr/none.html", "//"].map(
    (path) => ({
      ...{ path, accept: BROWSER, status: 404, type: HTML, reason: "a browser, and no page" },
    }),
  ),
  { path: "/nothing", method: "HEAD", accept: BROWSER, status: 404, type: HTML, reason: "a browser, no body" },
  { path: "/docs/none.html", method: "HEAD", accept: BROWSER, status: 404, type: HTML, reason: "a browser, no body" },
  { path: "/docs/404.html", status: 404, type: "application/json", reason: "it is no page of its own" },
  ...["application/json", "application/json, text/html;q=0.9", "text/html;q=0, */*", "text/*", "image/png"].map(
    (accept) => ({
      ...{
        path: "/nothing",
        accept,
        status: 404,
        type: "application/json",
        reason: `a program that accepts ${accept}`,
      },
    }),
  ),
  { path: "/nothing", method: "POST", accept: BROWSER, status: 404, type: "application/json", reason: "a form" },
  { path: "/iam/v2/groups", accept: BROWSER, status: 401, type: "application/json", reason: "a path of the API" },
  { path: "/docs/%2e%2e/x", accept: BROWSER, status: 400, type: "application/json", reason: "dots" },
  { path: `${"/a".repeat(18)}`, accept: BROWSER, status: 404, type: "application/json", reason: "too deep" },
];

for (const { path, method = "GET", accept = "*/*", status, type, reason } of rows) {
  for (const [protocol, request] of [["h1", requestH1] as const, ["h2", requestH2] as const]) {
    test(`${protocol}: ${method} ${path}: ${reason}`, async () => {
      const answer = await request(Number(new URL(harness.url).port), { method, path, headers: { accept } });
      assert.deepEqual([answer.status, answer.headers["content-type"]], [status, type], answer.text);
      assert.equal(answer.headers["x-content-type-options"], "nosniff");
      if (status === 405) assert.equal(answer.headers.allow, "GET, HEAD");
      if (path === "/" && status === 200) assert.match(answer.headers.vary ?? "", /^accept(, accept-encoding)?$/);
      assert.equal(answer.text === "", method === "HEAD");
    });
  }
}

test("the page for addresses that do not exist leads to the pages that do, from any depth", async () => {
  for (const path of ["/nothing", "/a/b/nothing", "/docs/nothing", "/docs/adr/nothing", "/docs/a/b/c/"]) {
    const response = await get(path, { accept: BROWSER });
    const text = await response.text();
    const links = [...text.matchAll(/\s(?:href|src)="([^"#]*)"/g)].map(([, target = ""]) => target);
    assert.ok(links.length > 50, path);
    const [, root] = /data-root="([^"]*)"/.exec(text) ?? [];
    assert.equal(
      new URL(root ?? "", harness.url + path).pathname,
      "/docs/",
      "the search finds its index and its pages",
    );
    for (const target of new Set(links.map((link) => new URL(link, harness.url + path).pathname)))
      assert.equal((await get(target)).status, 200, `${path}: ${target}`);
  }
});

test("the page for addresses that do not exist is for browsers, is not kept, and has the policy of the others", async () => {
  const { headers } = await get("/nothing", { accept: BROWSER, "if-none-match": "*" });
  assert.deepEqual([headers.get("vary"), headers.get("cache-control")], ["accept", "no-store"]);
  const page = await get("/docs/cli.html");
  assert.equal(headers.get("content-security-policy"), page.headers.get("content-security-policy"));
  assert.equal(headers.get("referrer-policy"), "no-referrer");
  const port = Number(new URL(harness.url).port);
  const [got, head] = await Promise.all(
    ["GET", "HEAD"].map((method) => requestH1(port, { method, path: "/nothing", headers: { accept: BROWSER } })),
  );
  const { date: _, "x-request-id": __, ...described } = got?.headers ?? {};
  const { date: ___, "x-request-id": ____, ...same } = head?.headers ?? {};
  assert.deepEqual(same, described);
});

test("the version is all that /version says", async () => {
  const response = await get("/version");
  assert.deepEqual(await response.json(), { version: VERSION });
  assert.equal(response.headers.get("cache-control"), "no-cache");
});

test("the page has no script, and its policy admits its own style alone", async () => {
  const response = await get("/", { accept: BROWSER });
  const page = await response.text();
  const [, style = ""] = /<style>(.*)<\/style>/s.exec(page) ?? [];
  assert.ok(style.length > 0);
  assert.doesNotMatch(page, /<script|\son[a-z]+=|\sstyle=|src=|https?:/);
  const policy = Object.fromEntries(
    (response.headers.get("content-security-policy") ?? "").split("; ").map((rule) => {
      const [name = "", ...values] = rule.split(" ");
      return [name, values.join(" ")];
    }),
  );
  assert.deepEqual(policy, {
    "default-src": "'none'",
    "style-src": `'sha256-${createHash("sha256").update(style).digest("base64")}'`,
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
  });
});

test("every link leads somewhere, and the JSON has the same", async () => {
  const page = await (await get("/", { accept: BROWSER })).text();
  const hrefs = [...page.matchAll(/href="([^"]*)"/g)].map(([, href = ""]) => `/${href}`);
  for (const path of ["/docs/", "/docs/api", "/openapi.json", "/healthz", "/readyz", "/version"])
    assert.ok(hrefs.includes(path), path);
  for (const href of hrefs) assert.equal((await get(href)).status, 200, href);
  const list = (await (await get("/", { accept: "application/json" })).json()) as Record<string, string>;
  assert.deepEqual(Object.values(list), hrefs);
  assert.equal(list.apiReference, "/docs/api");
});

for (const [path, location] of [
  ["/docs", "docs/"],
  ["/docs?x=y", "docs/"],
  ["/docs/guide", "./"],
  ["/docs/guide/", "../"],
  ["/docs/guide/cli.md", "../cli.html"],
  ["/docs/guide/adr/0003-group-commit.md", "../../adr/0003-group-commit.html"],
  ["/docs/guide/settings.schema.json", "../settings.schema.json"],
] as const) {
  test(`${path} leads to ${location}, and that is there`, async () => {
    const response = await fetch(harness.url + path, { redirect: "manual" });
    assert.deepEqual([response.status, response.headers.get("location")], [308, location]);
    assert.equal(response.headers.get("cache-control"), "no-cache");
    assert.equal((await get(path)).status, 200);
  });
}

test("every page that was a file is a page now", async () => {
  const listPages = (folder: string) => readdirSync(join(PROJECT, folder)).filter((name) => name.endsWith(".md"));
  const names = [...listPages("docs"), ...listPages("docs/adr").map((name) => `adr/${name}`)];
  assert.ok(names.length > 40);
  for (const name of names) {
    const page = await get(`/docs/guide/${name}`);
    assert.equal(page.status, 200, name);
    const [first = ""] = readFileSync(join(PROJECT, "docs", name), "utf8").split("\n", 1);
    const [, title = ""] = /<h1[^>]*>(.*?)<\/h1>/s.exec(await page.text()) ?? [];
    const text = title
      .replace(/<[^>]*>/g, "")
      .replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">")
      .replaceAll("&amp;", "&");
    assert.equal(`# ${text}`, first.replaceAll("`", ""), name);
  }
});

test("a page is checked at each visit, and what it loads is kept", async () => {
  const page = await get("/docs/cli.html");
  const etag = page.headers.get("etag") ?? "";
  assert.equal(page.headers.get("cache-control"), "no-cache");
  assert.equal((await get("/docs/cli.html", { "if-none-match": etag })).status, 304);
  const loaded = [...(await page.text()).matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, path]) => path);
  assert.equal(loaded.length, 4);
  for (const path of loaded) {
    const { status, headers } = await get(`/docs/${path}`);
    assert.deepEqual([status, headers.get("cache-control")], [200, "public, max-age=31536000, immutable"], path);
  }
});

test("pictures are served as what they are", async () => {
  const paths = [...(await (await get("/docs/console.html")).text()).matchAll(/<img src="([^"]+)"/g)];
  assert.ok(paths.length > 0);
  for (const [, path = ""] of paths) {
    const { status, headers } = await get(`/docs/${path}`);
    assert.deepEqual([status, headers.get("content-type")], [200, "image/webp"], path);
  }
});

test("no page has a script or a style in it, and its policy admits neither", async () => {
  const pages = readdirSync(SITE, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".html"));
  assert.ok(pages.length > 60, String(pages.length));
  for (const name of pages) {
    const text = readFileSync(join(SITE, name), "utf8");
    assert.doesNotMatch(
      text.replace(/<pre.*?<\/pre>|<code.*?<\/code>/gs, ""),
      /<script>|<style|\son[a-z]+=|\sstyle=/,
      name,
    );
  }
  const policy = (await get("/docs/cli.html")).headers.get("content-security-policy");
  assert.equal(
    policy,
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; " +
      "frame-ancestors 'none'",
  );
});

test("every operation is on the page of its resource", async () => {
  const { tags, paths } = await readDocument(harness.url);
  const shown = new Map(tags.map((tag) => [tag.name, nameService(tag.name).resource]));
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  assert.ok(operations.length > 200);
  for (const { tags: [tag = ""] = [], operationId } of operations) {
    const page = `resources/${(shown.get(tag) ?? "").toLowerCase().replaceAll(" ", "-")}.html`;
    const method = operationId.replace(/_\d+$/, "").split("_").at(-1);
    assert.match(
      readFileSync(join(SITE, page), "utf8"),
      new RegExp(`<h[23] id="[^"]*">${method}</h`),
      `${page} ${method}`,
    );
  }
});

test("the files are read when somebody asks for them", async () => {
  const folder = pathToFileURL(`${join(tempDir(), "site")}/`);
  const site = createSite(folder);
  await serveSite(site, async (url) => {
    mkdirSync(folder);
    writeFileSync(new URL("index.html", folder), "first");
    writeFileSync(new URL("main.ts", folder), "no file of a site");
    assert.equal(await (await fetch(url)).text(), "first");
    writeFileSync(new URL("index.html", folder), "second");
    assert.equal(await (await fetch(url)).text(), "first");
    assert.equal((await fetch(`${url}main.ts`)).status, 404);
  });
});

test("without its files the documentation says how to build it", async () => {
  await serveSite(createSite(new URL("none/", import.meta.url)), async (url) => {
    assert.match(await (await fetch(url)).text(), /npm run build/);
    assert.equal((await fetch(`${url}cli.html`)).status, 404);
  });
});

async function serveSite(site: RouteGroup, look: (url: string) => Promise<void>): Promise<void> {
  const server = createServer((req, res) => {
    if (!site.handle(beginHttp1(req, res), req.url ?? "")) res.writeHead(404).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  try {
    await look(`http://127.0.0.1:${(server.address() as AddressInfo).port}/docs/`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const taken: readonly { readonly reason: string; readonly rule: MountHttpRule; readonly path: string }[] = [
  { reason: "of its own", rule: { get: "/" }, path: "/" },
  { reason: "and everything else", rule: { get: "/**" }, path: "/" },
];

for (const { reason, rule, path } of taken) {
  test(`a mounted service with a rule for / ${reason} answers it`, async () => {
    const getBook = () => ({ name: "mounted" });
    const service = mount(LibraryService, { getBook } as never, {
      access: "public",
      http: { getBook: rule, createBook: null },
    });
    const mounted = await startHarness({}, { mounts: [service] });
    try {
      const response = await fetch(mounted.url + path);
      const text = await response.text();
      assert.match(text, /"mounted"/, `${response.status} ${text}`);
      assert.equal((await fetch(`${mounted.url}/version`)).status, 200);
      assert.match(await (await fetch(`${mounted.url}/docs/`)).text(), /<h1>Documentation/);
    } finally {
      await mounted.stop();
    }
  });
}
