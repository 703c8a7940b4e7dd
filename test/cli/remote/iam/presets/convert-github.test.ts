// `arbor iam identities convert-github`: which identities it finds, what it asks GitHub, and what it adds.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { Identity_ClaimMatchSchema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { findRepositoryName } from "../../../../../src/cli/remote/iam/presets/convert-github.js";
import { restAs } from "../../../../contract/rest.js";
import { runCommand } from "../../../../support/command.js";
import { type Harness, startHarness } from "../../../../support/harness.js";
import { tempDir } from "../../../../support/temp-dir.js";
import { type FakePlatform, startFakePlatform } from "./fake-platform.js";

const MAIN = "ref:refs/heads/main";
const APP = { full_name: "octocat/app", id: 456789, owner: { id: 583231 } };
const ON_APP = [
  { path: ["repository_id"], negated: false, equals: { stringValue: "456789" } },
  { path: ["repository_owner_id"], negated: false, equals: { stringValue: "583231" } },
];
const ON_ACTOR = { path: ["actor"], negated: false, equals: { stringValue: "octocat" } };

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

const rest = (method: string, path: string, body?: object) => restAs(service.url, token, "")(method, path, body);
const issuer = () => `${platform.url}/_services/token`;

async function createGroup(name: string): Promise<string> {
  const { status, json } = await rest("POST", `/iam/v2beta1/groups/${root}`, { name });
  assert.equal(status, 200, JSON.stringify(json));
  return String((json as JsonObject).uid);
}

/** Creates an identity, whose issuer is GitHub unless another one is given. */
async function createIdentity(parent: string, name: string, match: object, conditions: object[] = []): Promise<string> {
  const identity = { name, claimMatch: { issuer: issuer(), ...match } };
  const { status, json } = await rest("POST", `/trust/v1/identities/${parent}`, { identity, conditions });
  assert.equal(status, 200, JSON.stringify(json));
  return String(((json as JsonObject).identity as JsonObject).uid);
}

async function readConditions(uid: string): Promise<unknown> {
  const { status, json } = await rest("GET", `/trust/v1/identities/${uid}/conditions`);
  assert.equal(status, 200);
  return (json as JsonObject).conditions ?? [];
}

interface Row {
  readonly uid: string;
  readonly name: string;
  readonly problem: string;
  readonly repositoryId?: string;
}

async function convert(group: string, ...flags: readonly string[]) {
  const args = ["--group", group, "--github-url", platform.url, ...flags, "-o", "json"];
  const { code, stdout, stderr } = await runCommand(["iam", "identities", "convert-github", ...args], {
    ARBOR_API: service.url,
    ARBOR_TOKEN: token,
  });
  const rows = stdout === "" ? [] : ((JSON.parse(stdout) as { identities: Row[] }).identities ?? []);
  return { code, stderr, rows, problems: Object.fromEntries(rows.map(({ name, problem }) => [name, problem])) };
}

describe("arbor iam identities convert-github", () => {
  it("lists what it would do and changes nothing with --dry-run, and else adds conditions to those that are there", async () => {
    platform.repositories.set("octocat/app", APP);
    const group = await createGroup("two-steps");
    const uid = await createIdentity(group, "plain", { subject: `repo:octocat/app:${MAIN}` }, [ON_ACTOR]);
    const listed = await convert(group, "--dry-run");
    assert.deepEqual([listed.code, listed.stderr], [0, ""]);
    const row = {
      uid,
      name: "plain",
      repository: "octocat/app",
      repositoryId: "456789",
      ownerId: "583231",
      problem: "",
    };
    assert.deepEqual(listed.rows, [row]);
    assert.deepEqual(await readConditions(uid), [ON_ACTOR]);

    const { code, stderr, rows } = await convert(group, "--yes");
    assert.deepEqual([code, stderr, rows], [0, "arbor: added conditions to 1 identity\n", [row]]);
    assert.deepEqual(await readConditions(uid), [ON_ACTOR, ...ON_APP]);
    // It has ids now.
    assert.deepEqual((await convert(group, "--yes")).rows, []);
  });

  it("finds those that name a repository and have no id, and asks GitHub once for each repository", async () => {
    platform.repositories.set("octocat/app", APP);
    platform.repositories.set("octocat/old", { ...APP, full_name: "octocat/new" });
    const group = await createGroup("which");
    const others: readonly [name: string, match: object, conditions?: object[]][] = [
      ["ids-in-subject", { subject: `repo:octocat@583231/app@456789:${MAIN}` }],
      ["ids-in-pattern", { subjectPattern: `repo:[^/@]+@583231/[^/@:]+@456789:${MAIN}` }],
      ["id-in-claims", { subject: `repo:octocat/app:${MAIN}`, claims: { repository_id: "456789" } }],
      ["id-in-conditions", { subject: `repo:octocat/app:${MAIN}` }, ON_APP.slice(0, 1)],
      ["another-issuer", { issuer: "https://gitlab.com", subject: `repo:octocat/app:${MAIN}` }],
      ["an-issuer-that-begins-so", { issuer: `${issuer()}s`, subject: `repo:octocat/app:${MAIN}` }],
    ];
    for (const [name, match, conditions] of others) await createIdentity(group, name, match, conditions);
    const expected: readonly [name: string, match: object, problem: string, conditions?: object[]][] = [
      ["text", { subject: `repo:octocat/app:${MAIN}` }, ""],
      ["pattern", { subjectPattern: "repo:octocat/app:ref:refs/heads/.+" }, ""],
      ["ids-that-may-be-missing", { subjectPattern: "repo:octocat(@583231)?/app(@456789)?:.+" }, ""],
      ["claim", { subjectPattern: ".+", claims: { repository: "octocat/app" } }, ""],
      ["enterprise", { issuer: `${issuer()}/acme`, subject: `repo:octocat/app:${MAIN}` }, ""],
      ["no-id", { subject: `repo:octocat/app:${MAIN}` }, "", [{ ...ON_APP[0], negated: true }]],
      ["organisation", { subjectPattern: "repo:octocat/.+" }, "its claim match names no single repository"],
      [
        "renamed",
        { subject: `repo:octocat/old:${MAIN}` },
        "the repository octocat/old is octocat/new now: give the name that it has now",
      ],
      [
        "private",
        { subject: `repo:octocat/private:${MAIN}` },
        `${platform.url} shows nobody without a login the repository octocat/private`,
      ],
    ];
    for (const [name, match, , conditions] of expected) await createIdentity(group, name, match, conditions);
    const { code, problems } = await convert(group, "--dry-run");
    assert.equal(code, 0);
    assert.deepEqual(problems, Object.fromEntries(expected.map(([name, , problem]) => [name, problem])));
    assert.deepEqual(platform.requests.map(({ path }) => path).sort(), [
      ...["/api/v3/repos/octocat/app", "/api/v3/repos/octocat/old", "/api/v3/repos/octocat/private"],
    ]);
  });

  for (const [form, text] of [
    ["an array", JSON.stringify([APP, { ...APP, full_name: "octocat/other" }])],
    ["an object a line", `${JSON.stringify(APP)}\n${JSON.stringify({ ...APP, full_name: "octocat/other" })}\n`],
  ] as const) {
    it(`takes ids from a file with ${form}, and then asks GitHub nothing`, async () => {
      const file = join(tempDir(), "repositories.json");
      writeFileSync(file, text);
      const group = await createGroup(`file ${form}`);
      const uid = await createIdentity(group, "private", { subject: `repo:Octocat/app:${MAIN}` });
      const { problems } = await convert(group, "--repositories-file", file, "--yes");
      assert.deepEqual([problems, platform.requests], [{ private: "" }, []]);
      assert.deepEqual(await readConditions(uid), ON_APP);
    });
  }

  it("refuses a file that is none, and a GitHub that accepts no more requests, and changes nothing", async () => {
    const group = await createGroup("refused");
    const uid = await createIdentity(group, "plain", { subject: `repo:octocat/app:${MAIN}` });
    for (const text of ["{", '"x"', "[1]", "[{}]", '[{"full_name":"a/b","id":"1","owner":{"id":1}}]']) {
      const file = join(tempDir(), "repositories.json");
      writeFileSync(file, text);
      const { code, stderr } = await convert(group, "--repositories-file", file, "--yes");
      assert.equal(code, 2, text);
      assert.match(stderr, /^arbor: --repositories-file: must have repositories/);
    }
    // The first is known, the second is asked for in vain.
    await createIdentity(group, "another", { subject: `repo:octocat/another:${MAIN}` });
    const file = join(tempDir(), "repositories.json");
    writeFileSync(file, JSON.stringify(APP));
    platform.respond = { status: 429 };
    const { code, stderr } = await convert(group, "--repositories-file", file, "--yes");
    assert.equal(code, 7);
    assert.match(stderr, /--repositories-file FILE/);
    assert.deepEqual(await readConditions(uid), []);
  });

  it("goes on after an identity that cannot be changed, and ends with its error", async () => {
    platform.repositories.set("octocat/app", APP);
    const group = await createGroup("full");
    const many = Array.from({ length: 31 }, (_, i) => ({ ...ON_ACTOR, path: [`claim-${i}`] }));
    const full = await createIdentity(group, "full", { subject: `repo:octocat/app:${MAIN}` }, many);
    const plain = await createIdentity(group, "plain", { subject: `repo:octocat/app:${MAIN}` });
    const { code, stderr } = await convert(group, "--yes");
    assert.equal(code, 2, stderr);
    assert.ok(stderr.startsWith(`arbor: identity full (${full}): `), stderr);
    assert.match(stderr, /conditions must be at most 32/);
    assert.deepEqual([((await readConditions(full)) as object[]).length, await readConditions(plain)], [31, ON_APP]);
  });
});

describe("the repository of a claim match", () => {
  for (const [pattern, name] of [
    ["repo:o/r:ref:refs/heads/main", "o/r"],
    ["^repo:o/r:.*$", "o/r"],
    ["repo:o/my\\.repo:environment:(a|b)", "o/my.repo"],
    ["repo:o/my.repo:.*", "o/my.repo"],
    ["repo:o\\/r\\-x:.*", "o/r-x"],
    ["repo:o/r(:.*)?", undefined],
    ["repo:o/r+:.*", undefined],
    ["repo:o/r.*:ref:.*", undefined],
    ["repo:o/rs?:.*", undefined],
    ["repo:o/(a|b):.*", undefined],
    ["repo:o/a:.*|repo:o/b:.*", undefined],
    ["repo:o/a[|]:.*", undefined],
    ["(?i)repo:o/r:.*", undefined],
    [".*", undefined],
  ] as const) {
    it(`in the pattern ${pattern} is ${name ?? "none"}`, () => {
      const sub = { case: "subjectPattern", value: pattern } as const;
      assert.equal(findRepositoryName(create(Identity_ClaimMatchSchema, { sub })), name);
    });
  }

  it("is none where subject and claim name different ones", () => {
    const sub = { case: "subject", value: "repo:o/r:ref:x" } as const;
    const find = (repository: string) =>
      findRepositoryName(create(Identity_ClaimMatchSchema, { sub, claims: { repository } }));
    assert.deepEqual([find("o/r"), find("o/s")], ["o/r", undefined]);
  });
});
