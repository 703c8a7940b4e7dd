// The commands of the documentation that are marked `sh run`, as they stand, in the order of their page: in a shell, with a
// server of an organisation `acme.example` and the token of its owner. Two pages have tests of their own: docs/first-hour.md
// (test/browser/first-hour.test.ts), because people and a registry take part, and docs/stubs.md (test/examples/stubs.test.ts),
// because programs of other languages do.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { PROJECT } from "../support/project.js";
import { createDocsWorld, succeed } from "./docs-world.js";

/** The pages whose blocks a test of their own runs. */
const ELSEWHERE = ["docs/first-hour.md", "docs/stubs.md"];

/** What a page says is there already. */
const setups: Readonly<Record<string, string>> = {
  "docs/access.md": `arbor iam groups create --parent acme.example --name platform
    arbor iam identities create --parent acme.example/platform --name ci \\
      --issuer https://token.actions.githubusercontent.com \\
      --subject repo:octocat@583231/my-repo@456789:ref:refs/heads/main
    arbor iam role-bindings create --parent acme.example/platform --identity ci --role registry.pull`,
  "docs/offboarding.md":
    "arbor iam group-invites create --parent acme.example --role viewer --email bob@acme.example --ttl 7d",
  "docs/token-leaked.md": `arbor iam groups create --parent acme.example --name platform
    arbor iam identities create --parent acme.example/platform --name ci \\
      --issuer https://token.actions.githubusercontent.com --subject repo:octocat@583231/my-repo@456789:ref:refs/heads/main`,
  "docs/workloads.md": "arbor iam groups create --parent acme.example --name platform",
};

const pages = ["README.md", ...readdirSync(join(PROJECT, "docs")).map((name) => `docs/${name}`)].filter((page) =>
  page.endsWith(".md"),
);

/** The blocks of a page that are marked, without the name of the language. */
function marksOf(page: string): { readonly mark: string; readonly commands: string }[] {
  const text = readFileSync(join(PROJECT, page), "utf8");
  return [...text.matchAll(/^```sh (\S+)\n(.*?)^```$/gms)].map(([, mark = "", commands = ""]) => ({ mark, commands }));
}

describe("the commands of the documentation", () => {
  it("are marked on some pages, and every mark is one that a test runs", () => {
    const marked = pages.filter((page) => marksOf(page).length > 0);
    for (const page of ["README.md", "docs/concepts.md", "docs/cli.md", "docs/backup.md"])
      assert.ok(marked.includes(page), page);
    for (const page of marked) {
      if (ELSEWHERE.includes(page)) continue;
      assert.deepEqual(new Set(marksOf(page).map(({ mark }) => mark)), new Set(["run"]), page);
    }
  });

  for (const page of pages.filter((one) => !ELSEWHERE.includes(one) && marksOf(one).length > 0)) {
    it(`of ${page} do what it says`, async () => {
      const blocks = marksOf(page).map(({ commands }) => commands);
      const world = await createDocsWorld();
      // The first block of README.md creates the organisation, before there is a server.
      if (page === "README.md") await succeed(world.run(blocks.shift() ?? ""));
      else await world.bootstrap();
      const server = await world.serve();
      try {
        await succeed(world.run([setups[page] ?? "", ...blocks].join("\n")));
      } finally {
        server.child.kill("SIGTERM");
        await server.ended;
      }
    });
  }

  it("fail if they are wrong, of which this is the control", async () => {
    const world = await createDocsWorld();
    for (const commands of ["arbor iam grups list", "curl http://127.0.0.1:9/"]) {
      assert.notEqual((await world.run(commands).ended).code, 0, commands);
    }
  });
});
