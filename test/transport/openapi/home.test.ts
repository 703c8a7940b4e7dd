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
import { createGuide } from "../../../src/transport/openapi/guide.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { LibraryService } from "../../support/library/library_pb.js";
import { PROJECT } from "../../support/project.js";
import { requestH1, requestH2 } from "../../support/requests.js";
import { tempDir } from "../../support/temp-dir.js";

let harness: Harness;

before(async () => {
  harness = await startHarness();
});
after(() => harness.stop());

const get = (path: string, headers: Readonly<Record<string, string>> = {}) => fetch(harness.url + path, { headers });

const HTML = "text/html; charset=utf-8";
const TEXT = "text/plain; charset=utf-8";
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
  { path: "/docs/guide/", status: 200, type: HTML, reason: "the list of the documentation" },
  { path: "/docs/guide", status: 200, type: HTML, reason: "the same without a slash" },
  { path: "/docs/guide/cli.md?x=y", status: 200, type: TEXT, reason: "a page" },
  { path: "/docs/guide/cli.md", method: "HEAD", status: 200, type: TEXT, reason: "no body" },
  { path: "/docs/guide/cli.md", method: "POST", status: 405, type: "application/json", reason: "nothing to change" },
  { path: "/docs/guide/adr/0003-group-commit.md", status: 200, type: TEXT, reason: "a page that others link to" },
  {
    path: "/docs/guide/settings.schema.json",
    status: 200,
    type: "application/json",
    reason: "a file beside the pages",
  },
  ...["none.md", "cli", "cli.md/", "/cli.md", "CLI.md", "adr", "adr/", "..%2fpackage.json", "/etc/passwd"].map(
    (name) => ({
      ...{ path: `/docs/guide/${name}`, status: 404, type: "application/json", reason: "no page" },
    }),
  ),
  ...["../package.json", "../../package.json", "%2e%2e/package.json", "adr/../cli.md", "./cli.md"].map((name) => ({
    ...{ path: `/docs/guide/${name}`, status: 400, type: "application/json", reason: "dots" },
  })),
  { path: "/docs/guides", status: 404, type: "application/json", reason: "another path" },
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
  const hrefs = [...page.matchAll(/href="([^"]*)"/g)].map(([, href = ""]) => href);
  for (const path of ["/docs", "/docs/guide/", "/openapi.json", "/healthz", "/readyz", "/version"])
    assert.ok(hrefs.includes(path), path);
  for (const href of hrefs) assert.equal((await get(href)).status, 200, href);
  const list = (await (await get("/", { accept: "application/json" })).json()) as Record<string, string>;
  assert.deepEqual(Object.values(list), hrefs);
  assert.equal(list.apiReference, "/docs");
});

const listPages = (folder: string) => readdirSync(join(PROJECT, folder)).filter((name) => name.endsWith(".md"));

test("the documentation is listed by its titles, and every page is the file", async () => {
  const response = await get("/docs/guide/");
  assert.equal(
    response.headers.get("content-security-policy"),
    (await get("/")).headers.get("content-security-policy"),
  );
  const links = [...(await response.text()).matchAll(/<a href="([^"]*)">([^<]*)<\/a>/g)];
  const names = [...listPages("docs"), ...listPages("docs/adr").map((name) => `adr/${name}`)];
  assert.ok(names.length > 40);
  assert.deepEqual(
    links.map(([, href]) => href),
    names.map((name) => `/docs/guide/${name}`),
  );
  for (const [, href = "", title = ""] of links) {
    const page = await get(href);
    const text = await page.text();
    assert.equal(text, readFileSync(join(PROJECT, href.replace("/docs/guide", "docs")), "utf8"), href);
    const [first = ""] = text.split("\n", 1);
    assert.equal(`# ${title.replaceAll("&lt;", "<").replaceAll("&gt;", ">")}`, first.replaceAll("`", ""));
    const again = await get(href, { "if-none-match": page.headers.get("etag") ?? "" });
    assert.deepEqual([again.status, page.headers.get("cache-control")], [304, "no-cache"]);
  }
});

test("links between the pages lead to pages", async () => {
  const found = new Set<string>();
  for (const name of [...listPages("docs"), ...listPages("docs/adr").map((name) => `adr/${name}`)]) {
    const page = new URL(`/docs/guide/${name}`, harness.url);
    for (const [, link = ""] of readFileSync(join(PROJECT, "docs", name), "utf8").matchAll(/\]\(([^)\s]+)\)/g)) {
      const { origin, pathname } = new URL(link, page);
      if (origin === page.origin && pathname.startsWith("/docs/guide/")) found.add(pathname);
    }
  }
  assert.ok(found.size > 30, String(found.size));
  for (const path of found) assert.equal((await get(path)).status, 200, path);
});

test("the pages are read when somebody asks for them", async () => {
  const folder = pathToFileURL(`${join(tempDir(), "docs")}/`);
  const guide = createGuide(folder);
  const server = createServer((req, res) => {
    if (!guide.handle(req.method ?? "", req.url ?? "", res)) res.writeHead(404).end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  try {
    mkdirSync(folder);
    writeFileSync(new URL("a.md", folder), "# About `<a>` & b\n");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/docs/guide/`;
    assert.match(await (await fetch(url)).text(), /<a href="\/docs\/guide\/a\.md">About &lt;a&gt; &amp; b<\/a>/);
    assert.equal(await (await fetch(`${url}a.md`)).text(), "# About `<a>` & b\n");
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("without its folder the documentation is not there", () => {
  const guide = createGuide(new URL("none/", import.meta.url));
  for (const path of ["/docs/guide/", "/docs/guide/cli.md"]) {
    assert.equal(guide.handle("GET", path, undefined as never), false);
  }
});

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
      assert.match(await (await fetch(`${mounted.url}/docs/guide/`)).text(), /<h1>Documentation/);
    } finally {
      await mounted.stop();
    }
  });
}
