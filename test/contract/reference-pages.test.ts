// The pages of the API by resource: that each method says how to call it, and leads to its operation on the page of the API.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { type Harness, startHarness } from "../support/harness.js";
import { operationsOf } from "../support/openapi/document.js";
import { readDocument } from "../support/openapi/request.js";
import { PROJECT } from "../support/project.js";

const FOLDER = join(PROJECT, "build/site/resources");
const pages = new Map(readdirSync(FOLDER).map((name) => [name, readFileSync(join(FOLDER, name), "utf8")]));

let harness: Harness;
before(async () => {
  harness = await startHarness();
});
after(() => harness.stop());

it("every operation has a link to where it can be tried, below the name of its resource", async () => {
  const document = await readDocument(harness.url);
  const shown = new Map(document.tags.map((tag) => [tag.name, tag["x-displayName"]]));
  const expected = operationsOf(document)
    // A further spelling has a number, and version 2 and its beta are on the same page.
    .filter(({ operationId }) => !/_\d+$|^v2beta1_/.test(operationId))
    .map(({ operationId, tags: [tag = ""] = [] }) => `${encodeURIComponent(shown.get(tag) ?? "")}/${operationId}`);
  const links = [...pages.values()].flatMap((page) => [...page.matchAll(/api#\/([^"]*)"/g)].map(([, link]) => link));
  assert.ok(links.length > 150, String(links.length));
  const missing = expected.filter((one) => !links.includes(one));
  assert.deepEqual(missing, []);
});

it("every method has a request, and a response unless it is empty", () => {
  const page = pages.get("groups.html") ?? "";
  const methods = page.split(/(?=<h2 )/).filter((part) => part.includes("Try it"));
  assert.ok(methods.length >= 7);
  for (const part of methods) {
    assert.match(part, /<pre[^>]*><code[^>]*>(?:<[^>]*>)*curl/);
    assert.equal(/The response:/.test(part), !/^<h2 [^>]*>DeleteGroup/.test(part), part.slice(0, 40));
  }
  assert.match(page.replace(/<[^>]*>/g, ""), /arbor iam groups create/);
  assert.match(page, /In version 1: <a href="#create">Create<\/a>/);
});
