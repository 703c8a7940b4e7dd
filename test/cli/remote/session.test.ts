// Which service the commands call, as whom, and what its refusals look like.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.js";
import { type CliWorld, startCliWorld } from "./iam/cli-world.js";
import { type FakeService, startFakeService } from "./iam/fake-service.js";

const list = ["groups", "list", "-o", "jsonl"];

let world: CliWorld;
before(async () => {
  world = await startCliWorld();
});
after(() => world?.stop());

describe("the service", () => {
  it("is that of --api, then of ARBOR_API", async () => {
    const nowhere = "http://127.0.0.1:1";
    assert.equal((await world.iamWith({ ARBOR_API: nowhere }, ...list, "--api", world.service.url)).code, 0);
    const { code, stderr } = await world.iam(...list, "--api", nowhere);
    assert.equal(code, 8);
    assert.match(stderr, /^arbor: [^[\n]*ECONNREFUSED 127\.0\.0\.1:1\n$/);
  });

  const refused: readonly (readonly [env: Record<string, string>, args: readonly string[], said: string])[] = [
    [{}, ["--api", "nowhere"], "--api: --api must be an absolute URL"],
    [{}, ["--api", "ftp://a.example"], "--api: --api must be an http or https URL"],
    [{}, ["--api", "https://u:p@a.example"], "--api: --api must not contain credentials"],
    [
      { ARBOR_API: "http://a.example" },
      [],
      "ARBOR_API: ARBOR_API must be https: a token is never sent in cleartext to a.example",
    ],
    [{ ARBOR_TOKEN: "not a token" }, [], "ARBOR_TOKEN: the token is not a valid bearer token"],
  ];
  for (const [env, args, message] of refused) {
    it(`is refused: ${message}`, async () => {
      const result = await world.iamWith(env, ...list, ...args);
      assert.deepEqual(result, { code: 2, stdout: "", stderr: `arbor: Invalid argument: ${message}\n` });
    });
  }
});

describe("the token", () => {
  it("is that of ARBOR_TOKEN, then of --token-file", async () => {
    const other = await world.service.identity({}, world.root);
    const good = world.file(`${world.token}\n`);
    const none = world.file(other.token);
    assert.notEqual((await world.iamWith({ ARBOR_TOKEN: "" }, ...list, "--token-file", good)).stdout, "");
    assert.equal((await world.iamWith({ ARBOR_TOKEN: "" }, ...list, "--token-file", none)).stdout, "");
    assert.notEqual((await world.iam(...list, "--token-file", none)).stdout, "");
  });

  it("that is not there is an error of its own", async () => {
    const result = await world.iamWith({ ARBOR_TOKEN: "" }, ...list, "--token-file", "/nowhere");
    assert.deepEqual(result, { code: 3, stdout: "", stderr: "arbor: no token in the file /nowhere\n" });
  });

  it("that is missing altogether is explained", async () => {
    const { code, stderr } = await world.iamWith({ ARBOR_TOKEN: "" }, ...list);
    assert.equal(code, 3);
    assert.match(stderr, /^arbor: Unauthenticated: .+\n {2}no credentials were given: run `arbor auth login`, or /);
  });

  it("that is refused is no reason to speak of none", async () => {
    const { code, stderr } = await world.iamWith({ ARBOR_TOKEN: "a.b.c" }, ...list);
    assert.deepEqual([code, stderr.trimEnd().split("\n").length], [3, 1]);
    assert.doesNotMatch(stderr, /a\.b\.c/);
  });
});

describe("a refusal", () => {
  it("names each field that broke a rule on a line of its own", async () => {
    const args = ["create", "--parent", world.root, "--name", "X", "--description", "a\tb"];
    const { code, stderr } = await world.iam("groups", ...args);
    assert.equal(code, 2);
    const [name, description] = [
      "name: name must match ^[a-z0-9 ._-]{1,}$",
      "description: description must not contain control characters",
    ];
    assert.equal(stderr, `arbor: Invalid argument: ${name}; ${description}\n  ${name}\n  ${description}\n`);
  });

  it("names what stands in the way", async () => {
    await world.json("groups", "create", "--parent", world.root, "--name", "child");
    const { code, stderr } = await world.iam("groups", "delete", world.root, "--yes");
    assert.equal(code, 6);
    assert.match(
      stderr,
      /^arbor: Precondition failed: cannot delete group with child groups\n {2}RESOURCE_NOT_EMPTY: /,
    );
  });

  describe("of a kind", () => {
    let service: FakeService;
    let code = Code.Unknown;
    before(async () => {
      service = await startFakeService((router) => {
        router.service(GroupsService, {
          getGroup() {
            const fieldViolations = [{ field: "a\u001b[31m", description: "b\u0007" }];
            throw new ConnectError("no\u001b[2J", code, undefined, [
              { desc: BadRequestSchema, value: { fieldViolations } },
            ]);
          },
        });
      });
    });
    after(() => service?.stop());

    for (const [kind, exitCode] of [
      [Code.InvalidArgument, 2],
      [Code.Unauthenticated, 3],
      [Code.PermissionDenied, 4],
      [Code.NotFound, 5],
      [Code.AlreadyExists, 6],
      [Code.FailedPrecondition, 6],
      [Code.Aborted, 6],
      [Code.ResourceExhausted, 7],
      [Code.Internal, 1],
      [Code.Unimplemented, 1],
    ] as const) {
      it(`${Code[kind]} ends with ${exitCode} and cannot act on the terminal`, async () => {
        code = kind;
        const result = await world.iamWith({ ARBOR_API: service.url }, "groups", "get", "u");
        const stderr = "arbor: no\\u001b[2J\n  a\\u001b[31m: b\\u0007\n";
        assert.deepEqual(result, { code: exitCode, stdout: "", stderr });
      });
    }
  });
});
