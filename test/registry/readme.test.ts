// Readmes of repos: who changes them, and what they may hold.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { breakRule } from "../../src/kernel/errors.js";
import { isReadme } from "../../src/registry/repos/readme-rule.js";
import { invalid, permissionDenied } from "../contract/expectations.js";
import type { Somebody } from "../iam/iam-world.js";
import { measureProcessorMs } from "../support/stopwatch.js";
import { type RegistryWorld, startRegistryWorld } from "./registry-world.js";

let world: RegistryWorld;
let operator: Somebody;
let repo: string;
before(async () => {
  world = await startRegistryWorld();
  operator = await world.caller(["repo.update", "repo.list", "repo.internal.admin"]);
  repo = await world.repo({ name: "readme" });
});
after(() => world.stop());

const change = (body: object, query = "", by = operator) =>
  world.call("PATCH", `/repos/${repo}/readme${query}`, body, by);

describe("a readme", () => {
  it("is empty at first, and what it was changed to afterwards", async () => {
    assert.deepEqual((await world.call("GET", `/repos/${repo}/readme`)).json, { uid: repo, content: "" });
    for (const [query, content, body] of [
      ["", "# One\n\ttext\r\n", { content: "# One\n\ttext\r\n" }],
      ["?updateMask=content", "# Two", { content: "# Two" }],
      ["", "# Two", {}],
      ["?updateMask=*", "", {}],
    ] as const) {
      const { json, status, text } = await change(body, query);
      assert.equal(status, 200, text);
      assert.deepEqual(json, { uid: repo, content });
      assert.deepEqual((await world.call("GET", `/repos/${repo}/readme`)).json, json);
    }
    const { json } = await change({ content: "x" }, "?updateMask=nothing");
    assert.equal(json?.message, "Invalid argument: updateMask: updateMask: nothing is not a field of a repo readme");
  });

  it("is the operator's to change", async () => {
    const refused = permissionDenied(`repo.update and repo.internal.admin at ${repo}`);
    assert.deepEqual((await change({ content: "x" }, "", world.owner)).outcome, refused);
    assert.equal((await world.call("GET", `/repos/${repo}/readme`, undefined, world.foreignOwner)).status, 403);
  });

  it("of a copy is that of its source", async () => {
    const copy = await world.repo({ name: "copy", sync_config: { source: repo } });
    const { outcome } = await world.call("PATCH", `/repos/${copy}/readme`, { content: "own" }, operator);
    assert.deepEqual(outcome, invalid(["content", "content of a repo that is copied must be that of its source"]));
  });

  it("with a script is rejected", async () => {
    const { outcome } = await change({ content: "<script>alert(1)</script>" });
    assert.deepEqual(outcome, invalid(["content", "content must not contain unsafe HTML"]));
  });
});

describe("of readmes", () => {
  const harmless = [
    "# Title\n\n1 < 2 && 3 > 2, a -> b, x<5\n\n```sh\ndocker run <your-org>/image\n```",
    '<img src="https://example.com/a.png" alt="A logo" width="100" height="50%">',
    '<a href="/relative">x</a> <a href="#part">y</a> <a href="mailto:a@example.com">z</a>',
    '<code class="language-go">x</code><br/><!-- a comment --><details><summary>more</summary></details>',
    "<https://example.com/?a=b> <a@example.com>",
    "[x](https://example.com) ![y](a.png) data: and JavaScript are words",
  ];
  for (const text of harmless)
    it(`${JSON.stringify(text.slice(0, 40))} is harmless`, () => assert.equal(isReadme(text, "content"), undefined));

  const harmful = [
    "<script>",
    "<ScRiPt src=x>",
    "</script >",
    "<script",
    "<svg/onload=alert(1)>",
    "<x onclick=alert(1)>",
    '<img src="x" onerror="alert(1)">',
    "<img src=x onerror=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    '<a href="java&#115;cript:alert(1)">x</a>',
    "[x](javascript:alert(1))",
    "[x](JaVa\tScRiPt:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](&#x6A;avascript:alert(1))",
    "[x](&#0000106avascript:alert(1))",
    "[x][y]\n\n[y]: vbscript:x",
    "<javascript:alert(1)>",
    "![x](data:text/html;base64,AAAA)",
    "<iframe></iframe>",
    "<style>*{}</style>",
    '<p style="position:fixed">',
    "<form><button>",
    "<!DOCTYPE html>",
    "<?php ?>",
    "<!-- > <script> -->",
    "```\n<script>\n```",
  ];
  for (const text of harmful)
    it(`${JSON.stringify(text.slice(0, 40))} is rejected`, () =>
      assert.deepEqual(isReadme(text, "content"), breakRule("content", "must not contain unsafe HTML")));

  it("control characters and long texts are rejected", () => {
    assert.deepEqual(isReadme("a\0b", "content"), breakRule("content", "must not contain control characters"));
    assert.deepEqual(
      isReadme("a".repeat(256 * 1024 + 1), "content"),
      breakRule("content", "must be at most 262144 characters"),
    );
  });

  for (const part of ["<!--", "<", "<a", '<a alt="', '<a alt="" ', "&#", "<!-- --", "<a "]) {
    it(`a text of nothing but ${part} is judged at once`, () => {
      const text = part.repeat(Math.floor((256 * 1024) / part.length));
      const ms = measureProcessorMs(() => isReadme(text, "content"));
      assert.ok(ms < 1_000, `${ms} ms`);
    });
  }
});
