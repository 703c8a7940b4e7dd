// What `arbor iam identities create` with the flags of a preset asks a platform, sends, prints and refuses.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import type { JsonObject } from "@bufbuild/protobuf";
import { findGitHub } from "../../../../../src/cli/remote/iam/presets/github.js";
import { restAs } from "../../../../contract/rest.js";
import { runCommand } from "../../../../support/command.js";
import { type Harness, startHarness } from "../../../../support/harness.js";
import { tempDir } from "../../../../support/temp-dir.js";
import { type FakePlatform, startFakePlatform } from "./fake-platform.js";

const IDS = ["--repository-id", "456789", "--owner-id", "583231"];
const SERVICE_ACCOUNT = ["--namespace", "ci", "--service-account", "builder"];

let service: Harness;
let platform: FakePlatform;
let root: string;
let token: string;
before(async () => {
  service = await startHarness();
  platform = await startFakePlatform();
  ({ group: root, token } = await service.organisation("acme.example"));
});
after(async () => {
  await service?.stop();
  await platform?.stop();
});
beforeEach(() => platform.reset());

const run = (...args: readonly string[]) =>
  runCommand(["iam", "identities", "create", "--parent", root, ...args], {
    ARBOR_API: service.url,
    ARBOR_TOKEN: token,
  });

async function create(...args: readonly string[]): Promise<JsonObject> {
  const { code, stdout, stderr } = await run(...args, "-o", "json");
  assert.deepEqual([code, stderr], [0, ""]);
  return JSON.parse(stdout) as JsonObject;
}

async function list(name: string): Promise<JsonObject[]> {
  const rest = restAs(service.url, token, "/iam/v2beta1/identities");
  const { status, json } = await rest("GET", `?name=${name}`);
  assert.equal(status, 200);
  return (json as { readonly identities?: JsonObject[] }).identities ?? [];
}

describe("the ids of a repository", () => {
  const onPlatform = () => ["--github-url", platform.url, "--github-repo"];

  it("are those that GitHub responds with, and the name is the one that it has there", async () => {
    platform.repositories.set("octocat/my-repo", { id: 456789, owner: { id: 583231 }, full_name: "Octocat/My-Repo" });
    const { name, claimMatch, conditions } = await create(...onPlatform(), "octocat/my-repo", "--ref", "main");
    assert.equal(name, "octocat-my-repo");
    assert.deepEqual(claimMatch, {
      issuer: `${platform.url}/_services/token`,
      subjectPattern: "repo:(Octocat/My-Repo|Octocat@583231/My-Repo@456789):(ref:refs/heads/main|environment:.+)",
    });
    assert.deepEqual(conditions, [
      { path: ["repository_id"], negated: false, equals: { stringValue: "456789" } },
      { path: ["repository_owner_id"], negated: false, equals: { stringValue: "583231" } },
      { path: ["repository"], negated: false, equals: { stringValue: "Octocat/My-Repo" } },
      {
        path: ["event_name"],
        negated: true,
        oneOf: { values: [{ stringValue: "pull_request" }, { stringValue: "pull_request_target" }] },
      },
      { path: ["ref"], negated: false, equals: { stringValue: "refs/heads/main" } },
    ]);
    const [request] = platform.requests;
    assert.equal(request?.path, "/api/v3/repos/octocat/my-repo");
    assert.match(String(request?.headers["user-agent"]), /^arbor\//);
    assert.equal(request?.headers.authorization, undefined);
  });

  it("are those of the flags, and then GitHub is asked nothing", async () => {
    const { conditions } = await create("--github-repo", "octocat/my-repo", "--name", "ci", ...IDS);
    assert.deepEqual((conditions as JsonObject[])[0], {
      path: ["repository_id"],
      negated: false,
      equals: { stringValue: "456789" },
    });
    assert.deepEqual(platform.requests, []);
  });

  for (const [what, respond, code, message] of [
    [
      "is private or missing",
      { status: 404 },
      5,
      /shows nobody without a login the repository o\/r\n {2}--repository-id/,
    ],
    ["was renamed", { status: 301, headers: { location: "/repositories/1" } }, 5, /has moved/],
    ["has another name", { json: { id: 1, owner: { id: 2 }, full_name: "o/new" } }, 5, /is o\/new now/],
    ["is asked for too often", { status: 403, headers: { "x-ratelimit-remaining": "0" } }, 7, /no more requests/],
    ["is asked for too often, in short", { status: 429 }, 7, /no more requests/],
    ["fails", { status: 500 }, 8, /responded with the status 500/],
    ["is no JSON", { text: "<html>" }, 8, /has no id of/],
    ["has no owner", { json: { id: 1, full_name: "o/r" } }, 8, /has no id of the owner/],
    ["has an id that is no number", { json: { id: "1", owner: { id: 2 }, full_name: "o/r" } }, 8, /has no id of/],
    ["is too large", { text: " ".repeat(2 * 1024 * 1024) }, 8, /sends more than 1048576 bytes/],
    ["is cut off", { hangUp: true }, 8, /cannot be asked for the id of the repository o\/r: it closed the connection/],
  ] as const) {
    it(`cannot be read of one that ${what}, and no identity is created`, async () => {
      platform.respond = respond;
      const result = await run(...onPlatform(), "o/r", "--name", "unread");
      assert.equal(result.code, code, result.stderr);
      assert.match(result.stderr, message);
      assert.equal(result.stdout, "");
      assert.deepEqual(await list("unread"), []);
      assert.equal(platform.requests.length, 1);
    });
  }
});

describe("the id of a project", () => {
  it("is that which GitLab responds with, and the path is the one that it has there", async () => {
    platform.repositories.set("acme%2Ftools%2Fapp", { id: 20, path_with_namespace: "acme/Tools/app" });
    const made = await create("--gitlab-url", platform.url, "--gitlab-project", "acme/tools/app", "--ref", "main");
    assert.equal(made.name, "acme-tools-app");
    assert.deepEqual((made.claimMatch as JsonObject).subject, "project_path:acme/Tools/app:ref_type:branch:ref:main");
    assert.deepEqual((made.conditions as JsonObject[])[0], {
      path: ["project_id"],
      negated: false,
      equals: { stringValue: "20" },
    });
    assert.deepEqual(
      platform.requests.map(({ path }) => path),
      ["/api/v4/projects/acme%2Ftools%2Fapp"],
    );
  });

  it("cannot be read of a private one", async () => {
    const { code, stderr } = await run("--gitlab-url", platform.url, "--gitlab-project", "acme/app");
    assert.equal(code, 5);
    assert.match(stderr, /\n {2}--project-id gives its id/);
  });
});

describe("the addresses of GitHub", () => {
  for (const [url, api, issuer] of [
    ["https://github.com", "https://api.github.com", "https://token.actions.githubusercontent.com"],
    ["https://github.com/", "https://api.github.com", "https://token.actions.githubusercontent.com"],
    ["https://octocorp.ghe.com", "https://api.octocorp.ghe.com", "https://token.actions.octocorp.ghe.com"],
    ["https://ghe.example", "https://ghe.example/api/v3", "https://ghe.example/_services/token"],
    ["https://evilghe.com", "https://evilghe.com/api/v3", "https://evilghe.com/_services/token"],
  ] as const) {
    it(`of ${url}`, () => {
      const found = findGitHub(new URL(url));
      assert.deepEqual([found.api, found.issuer], [api, issuer]);
    });
  }
});

describe("an identity of a preset", () => {
  it("is printed with its conditions, and in one sentence what it accepts", async () => {
    const args = ["--github-repo", "octocat/my-repo", "--ref", "main", "--environment", "production"];
    const { code, stdout, stderr } = await run(...args, "--workflow", "deploy.yml", "--name", "printed", ...IDS);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^condition +repository_id equals "456789"$/m);
    const sentence = [
      "jobs of GitHub Actions in the repository octocat/my-repo (id 456789, owner 583231) of https://github.com",
      "on the branch main, in the environment production, from the workflow .github/workflows/deploy.yml",
      "except events of pull requests",
    ].join(", ");
    assert.equal(/^accepts +(.+)$/m.exec(stdout)?.[1], sentence);
  });

  it("may have static keys, as those of a cluster without discovery", async () => {
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const file = join(tempDir(), "cluster.jwks");
    writeFileSync(file, JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k" }] }));
    const keys = ["--static-keys-issuer-keys-file", file];
    const cluster = ["--kubernetes-issuer", "https://kubernetes.default.svc.cluster.local", ...SERVICE_ACCOUNT];
    const { staticKeys, conditions } = await create(...cluster, ...keys);
    const { issuer, subject } = staticKeys as JsonObject;
    assert.deepEqual(
      [issuer, subject, (conditions as JsonObject[]).length],
      ["https://kubernetes.default.svc.cluster.local", "system:serviceaccount:ci:builder", 2],
    );
    const { code, stderr } = await run("--github-repo", "o/r", ...IDS, ...keys);
    assert.equal(code, 2);
    assert.match(stderr, /--github-repo: cannot be combined with static keys, whose subjects are no patterns/);
  });

  it("keeps an audience and further claims", async () => {
    const more = ["--audience", "aud", "--claim", "actor=octocat", "--name", "with-more", ...IDS];
    const { claimMatch } = await create("--github-repo", "o/r", ...more);
    const { audience, claims } = claimMatch as JsonObject;
    assert.deepEqual([audience, claims], ["aud", { actor: "octocat" }]);
    // The control of the tests that find no identity.
    assert.equal((await list("with-more")).length, 1);
  });

  it("warns of another one of the name", async () => {
    await create("--github-repo", "o/again", ...IDS);
    const { code, stderr } = await run("--github-repo", "o/again", ...IDS);
    assert.equal(code, 0);
    assert.match(stderr, /^arbor: warning: another identity here has the same name: /);
  });
});

describe("flags that do not say what to accept are refused:", () => {
  const repo = ["--github-repo", "o/r", ...IDS];
  const cluster = ["--kubernetes-issuer", "https://oidc.example", ...SERVICE_ACCOUNT];
  for (const [args, message] of [
    [["--ref", "main"], "--ref: needs --github-repo or --gitlab-project or --buildkite-pipeline"],
    [["--namespace", "ci"], "--namespace: needs --kubernetes-issuer"],
    [[...repo, "--gitlab-project", "a/b"], "--gitlab-project: cannot be combined with --github-repo"],
    [[...repo, "--namespace", "ci"], "--namespace: cannot be combined with --github-repo"],
    [["--kubernetes-issuer", "https://a.example", "--namespace", "ci"], "--service-account: is required with"],
    [[...repo, "--issuer", "https://a.example"], "--github-repo: cannot be combined with --issuer"],
    [[...repo, "--subject-pattern", ".+"], "--github-repo: cannot be combined with --subject-pattern"],
    [[...repo, "--aws-account", "123456789012"], "--github-repo: cannot be combined with another relationship"],
    [[...cluster, "--static-keys-subject", "x"], "--kubernetes-issuer: cannot be combined with --static-keys-subject"],
    [["--github-repo", "o/r", "--repository-id", "1"], "--owner-id: give both ids, or neither"],
    // An empty one, as of a variable that is not set, would accept more.
    ...["--ref", "--environment", "--workflow"].map((flag) => [[...repo, flag, ""], `${flag}: is empty`] as const),
    [["--github-repo", ""], "--github-repo: is empty"],
    [[...cluster, "--service-account-id", ""], "--service-account-id: is empty"],
    ...["o", "o/r/s", "o/", "o/*", "o/r@1", "o:x/r", "https://github.com/o/r"].map(
      (name) => [["--github-repo", name, ...IDS], "--github-repo: must be an owner and a repository"] as const,
    ),
    ...["0", "1e3", "x", "-1", "12345678901234567890"].map(
      (id) => [["--github-repo", "o/r", "--owner-id", "1", "--repository-id", id], "--repository-id: must be"] as const,
    ),
    ...["refs/pull/1/merge", "refs/heads/", "a b", "a:b", "refs/x"].map(
      (ref) => [[...repo, "--ref", ref], "--ref: must be a branch such as main"] as const,
    ),
    ...["deploy", "x/deploy.yml", "deploy.yml@main"].map(
      (file) => [[...repo, "--workflow", file], "--workflow: must be the file of a workflow"] as const,
    ),
    ...["http://ghe.example", "ghe.example", "https://u@ghe.example", "https://ghe.example?x", "file:///x"].map(
      (url) => [[...repo, "--github-url", url], "--github-url: must be an https URL"] as const,
    ),
    [["--gitlab-project", "app", "--project-id", "1"], "--gitlab-project: must be the path of a project"],
    [["--kubernetes-issuer", "cluster", ...SERVICE_ACCOUNT], "--kubernetes-issuer: must be the URL"],
    [["--kubernetes-issuer", "https://a.example", "--namespace", "a:b", "--service-account", "c"], "--namespace: must"],
    [["--buildkite-pipeline", "acme"], "--buildkite-pipeline: must be the slugs"],
    [["--buildkite-pipeline", "acme/app", "--pipeline-id", "7"], "--pipeline-id: must be a UUID"],
  ] as const) {
    it(args.join(" "), async () => {
      const { code, stdout, stderr } = await run("--name", "refused", ...args);
      assert.deepEqual([code, stdout], [2, ""], stderr);
      assert.ok(stderr.startsWith(`arbor: ${message}`), stderr);
      assert.deepEqual(await list("refused"), []);
    });
  }
});
