// The page at `/`, and `/version`.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { VERSION } from "../../../src/kernel/version.js";
import { mount } from "../../../src/pipeline/mount.js";
import type { MountHttpRule } from "../../../src/pipeline/mount-options.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { LibraryService } from "../../support/library/library_pb.js";
import { requestH1, requestH2 } from "../../support/requests.js";

let harness: Harness;

before(async () => {
  harness = await startHarness();
});
after(() => harness.stop());

const get = (path: string, headers: Readonly<Record<string, string>> = {}) => fetch(harness.url + path, { headers });

const HTML = "text/html; charset=utf-8";
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
  for (const path of ["/docs", "/openapi.json", "/healthz", "/readyz", "/version"])
    assert.ok(hrefs.includes(path), path);
  for (const href of hrefs) assert.equal((await get(href)).status, 200, href);
  const list = (await (await get("/", { accept: "application/json" })).json()) as Record<string, string>;
  assert.deepEqual(Object.values(list), hrefs);
  assert.equal(list.apiReference, "/docs");
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
    } finally {
      await mounted.stop();
    }
  });
}
