// The search of the documentation, without a browser: plain questions find their page, and how words are read.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { PROJECT } from "../support/project.js";

interface Part {
  readonly text: string;
  readonly isFound: boolean;
}

interface Result {
  readonly url: string;
  readonly page: string;
  readonly about: string;
  readonly terms: ReadonlySet<string>;
  readonly isWhole: boolean;
}

interface Answer {
  readonly results: readonly Result[];
  readonly corrections: readonly { readonly word: string; readonly right: string }[];
  readonly hints: readonly { readonly text: string; readonly url: string; readonly title: string }[];
}

interface Module {
  readonly Search: new (json: unknown) => { find(text: string): Answer };
  buildIndex(entries: readonly object[]): unknown;
  excerpt(text: string, terms: ReadonlySet<string>, isCut: boolean): readonly Part[];
}

const ASSETS = join(PROJECT, "build/site/assets");
const address = pathToFileURL(join(PROJECT, "site/search.mjs")).href;
const { Search, excerpt } = (await import(address)) as Module;
const { hints } = (await import(new URL("search-words.mjs", address).href)) as { hints: readonly { words: string }[] };
const [file = ""] = readdirSync(ASSETS).filter((name) => name.endsWith(".index.js"));
const search = new Search(
  JSON.parse(readFileSync(join(ASSETS, file), "utf8").replace(/^globalThis\.arborIndex = |;\n$/g, "")),
);

const pageOf = ({ url }: Result) => url.replace(/\.html.*$/, "");
const firstPages = (text: string) => search.find(text).results.slice(0, 3).map(pageOf);
const pages = new Set(
  readdirSync(join(PROJECT, "build/site"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".html"))
    .map((name) => name.replaceAll("\\", "/").slice(0, -".html".length)),
);

/** What newcomers ask, and the pages of which one must be among the first three. */
const questions: readonly (readonly [question: string, ...pages: readonly string[]])[] = [
  ["add a person to a team", "how-to/add-a-person", "scim"],
  ["why can't a person push", "how-to/why-denied", "access"],
  ["what changed yesterday", "how-to/what-changed", "audit"],
  ["offboard employee", "offboarding", "how-to/remove-a-person"],
  ["restrict to main branch", "how-to/github-actions", "workloads"],
  ["How do I remove a user from a group?", "how-to/remove-a-person", "offboarding"],
  ["who can read my images", "how-to/who-can-read", "registry"],
  ["restoring a backup", "how-to/nightly-backup", "backup"],
  ["upgrade to a new version", "upgrade"],
  ["my token was stolen", "token-leaked"],
  ["run behind nginx", "how-to/nginx", "production"],
  ["send a message to slack when something happens", "how-to/slack", "events"],
  ["docker login", "cli-auth"],
  ["gitlab pipeline", "workloads"],
  ["SSO with Google", "login", "how-to/login-google"],
  ["sync users from Okta", "scim", "how-to/login-okta"],
  ["which alerts should I set up", "production"],
  ["move to postgres", "copy", "how-to/postgresql"],
  ["someone left the company", "offboarding", "how-to/remove-a-person"],
  ["rotate the signing key", "how-to/rotate-keys", "operations"],
  ["429 too many requests", "errors", "observability", "how-to/quotas"],
  ["connect okta", "how-to/login-okta", "scim"],
  ["docker pull fails with denied", "registry", "how-to/who-can-read", "first-hour"],
  ["helm chart", "kubernetes"],
  ["pgbouncer", "operations", "how-to/postgresql", "settings"],
  ["make someone an admin", "how-to/add-a-person", "roles", "concepts", "first-hour"],
  ["I lost my owner login", "first-hour", "operations"],
  ["read only role", "roles", "how-to/add-a-person", "concepts"],
  ["verify the signature of a webhook", "events", "examples/receivers", "client"],
  ["terraform import", "how-to/terraform", "apply"],
  ["start a service and create an organisation", "first-hour"],
  ["list of all server settings", "settings"],
  ["configuration options", "settings"],
  ["reverse proxy", "how-to/nginx", "production"],
  ["read only user", "roles", "how-to/add-a-person", "how-to/who-can-read"],
  ["permission denied for my CI workload", "how-to/why-denied", "access", "workloads"],
  ["who may push images in a group", "how-to/why-denied", "how-to/who-can-read", "access"],
];

describe("a plain question finds its page among the first three", () => {
  for (const [question, ...expected] of questions) {
    test(question, () => {
      for (const page of expected) assert.ok(pages.has(page), page);
      const found = firstPages(question);
      assert.ok(
        expected.some((page) => found.includes(page)),
        `${expected}, not among ${found}`,
      );
    });
  }

  test("of which this is the control: another page is not among them", () => {
    assert.ok(!firstPages("restoring a backup").includes("login"));
  });
});

test("endings, and words that say nothing, change nothing", () => {
  const expected = firstPages("remove user group");
  for (const text of ["removing users groups", "how do I remove the user from a group?", "REMOVED User’s Group"])
    assert.deepEqual(firstPages(text), expected, text);
  assert.notDeepEqual(firstPages("restore backup"), expected);
});

test("a word for the same thing finds the same page", () => {
  assert.equal(firstPages("glossary")[0], "concepts");
  assert.ok(firstPages("stolen credential").includes("token-leaked"));
  assert.ok(firstPages("k8s pod token").includes("workloads"));
});

test("what has all the words comes first, and then what has the most of them", () => {
  const { results } = search.find("restore backup qqqqzzzz");
  assert.equal(results[0]?.isWhole, true, "a word that no page has counts for nothing");
  const partial = search.find("glossary backup restore");
  assert.equal(partial.results[0]?.isWhole, false);
  assert.match(pageOf(partial.results[0] as Result), /backup/);
});

test("a word that is misspelt is read as the nearest, and says so", () => {
  for (const [word, right, page] of [
    ["subscripton", "subscription", "resources/subscriptions"],
    ["kuberntes", "kubernetes", "workloads"],
    ["backpu", "backup", "backup"],
  ] as const) {
    const { corrections, results } = search.find(word);
    assert.deepEqual(corrections, [{ word, right }]);
    assert.ok(results.slice(0, 3).map(pageOf).includes(page), word);
  }
  assert.deepEqual(search.find("subscription").corrections, []);
  assert.deepEqual(search.find("qqqqzzzz"), { results: [], corrections: [], hints: [] });
});

test("names of methods, settings and variables are found, also by their parts", () => {
  const first = (text: string) => search.find(text).results[0]?.url;
  assert.equal(first("BatchCreateRoleBindings"), "resources/role-bindings.html#batchcreaterolebindings");
  assert.equal(first("batchcreaterolebindings"), "resources/role-bindings.html#batchcreaterolebindings");
  assert.equal(first("--behind-proxy"), "settings.html#--behind-proxy");
  assert.equal(first("ARBOR_BEHIND_PROXY"), "settings.html#--behind-proxy");
});

test("what Arbor does not have is said, with a page that says what there is instead", () => {
  for (const { words } of hints) {
    for (const word of words.split(", ")) {
      const { hints: shown } = search.find(`how do I use ${word}?`);
      assert.equal(shown.length, 1, word);
      assert.ok(pages.has(shown[0]?.url.replace(/\.html.*$/, "") ?? ""), word);
    }
  }
  assert.deepEqual(search.find("login").hints, []);
});

test("tasks come before decisions and former versions", () => {
  for (const text of ["group", "identity", "role binding", "list", "token"]) {
    for (const page of firstPages(text)) assert.doesNotMatch(page, /^adr\/|^decisions$|^migration$|^v1$/, text);
  }
  assert.match(firstPages("decision group commit").join(), /adr\/0003-group-commit/, "but they are found");
});

test("the text around the words is shown, with the words marked", () => {
  const text = `${"Something else. ".repeat(40)}You restore a backup with one command. ${"And more of it. ".repeat(40)}`;
  const parts = excerpt(text, new Set(["restor", "backup"]), true);
  assert.deepEqual(
    parts.filter(({ isFound }) => isFound).map((part) => part.text),
    ["restore", "backup"],
  );
  const shown = parts.map((part) => part.text).join("");
  assert.match(shown, /^… .*You restore a backup with one command\. .* …$/);
  assert.ok(shown.length < 200, String(shown.length));
  assert.equal(
    excerpt("A short one", new Set(), true)
      .map((part) => part.text)
      .join(""),
    "A short one",
  );
  const [first] = search.find("restore backup").results;
  assert.ok(excerpt(first?.about ?? "", first?.terms ?? new Set(), true).some(({ isFound }) => isFound));
});
