// Which service the commands call, as whom, and what its refusals look like.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.js";
import { revokeTokens } from "../../../src/iam/operator/operate.js";
import { randomIds } from "../../../src/kernel/ids.js";
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
    assert.match(
      stderr,
      /^arbor: http:\/\/127\.0\.0\.1:1 cannot be reached: nothing listens there \(ECONNREFUSED\)\n {2}is .*\n$/,
    );
  });

  const refused: readonly (readonly [env: Record<string, string>, args: readonly string[], said: string])[] = [
    [{}, ["--api", "nowhere"], "--api: must be an absolute URL"],
    [{}, ["--api", "ftp://a.example"], "--api: must be an http or https URL"],
    [{}, ["--api", "https://u:p@a.example"], "--api: must not contain credentials"],
    [
      { ARBOR_API: "http://a.example" },
      [],
      "ARBOR_API: must be https: a token is never sent in cleartext to a.example",
    ],
    [{ ARBOR_TOKEN: "not a token" }, [], "ARBOR_TOKEN: the token is not a valid bearer token"],
  ];
  for (const [env, args, message] of refused) {
    it(`is refused: ${message}`, async () => {
      const result = await world.iamWith(env, ...list, ...args);
      assert.deepEqual(result, {
        code: 2,
        stdout: "",
        stderr: `arbor: ${message}; see arbor iam groups list --help\n`,
      });
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

  const login = () => `arbor auth login --api ${world.service.url}`;

  it("that is not there is an error of its own", async () => {
    const result = await world.iamWith({ ARBOR_TOKEN: "" }, ...list, "--token-file", "/nowhere");
    const stderr = "arbor: --token-file: cannot read /nowhere: no such file; see arbor iam groups list --help\n";
    assert.deepEqual(result, { code: 2, stdout: "", stderr });
    const path = world.file(" ");
    const empty = await world.iamWith({ ARBOR_TOKEN: "" }, ...list, "--token-file", path);
    const remedy = `  write a new token to ${path}, or without --token-file run: ${login()}\n`;
    assert.deepEqual(empty, { code: 3, stdout: "", stderr: `arbor: no token in the file ${path}\n${remedy}` });
  });

  const invalid = "arbor: Unauthenticated: authorization: a valid bearer token is required\n";

  it("that is missing altogether is explained", async () => {
    const result = await world.iamWith({ ARBOR_TOKEN: "" }, ...list);
    const stderr = `arbor: not logged in to ${world.service.url}\n  run: ${login()}; or set ARBOR_TOKEN to an API token\n`;
    assert.deepEqual(result, { code: 3, stdout: "", stderr });
  });

  it("that is refused is told with its source", async () => {
    const variable = await world.iamWith({ ARBOR_TOKEN: "a.b.c" }, ...list);
    const remedy = `  set ARBOR_TOKEN to a new token, or unset it and run: ${login()}\n`;
    const fault = "does not hold a JWT, which is three parts with dots between them: is it the whole token, ";
    const what = (place: string) => `  ${place} ${fault}and nothing but the token?\n`;
    assert.deepEqual(variable, { code: 3, stdout: "", stderr: `${invalid}${what("ARBOR_TOKEN")}${remedy}` });
    const path = world.file("a.b.c");
    const file = await world.iamWith({ ARBOR_TOKEN: "" }, ...list, "--token-file", path);
    const other = `  write a new token to ${path}, or without --token-file run: ${login()}\n`;
    assert.deepEqual(file, { code: 3, stdout: "", stderr: `${invalid}${what(path)}${other}` });
    const refuse = async (more: object) => {
      const claims = { sub: "x", iss: world.service.url, exp: 9e9, aud: world.service.url, ...more };
      const parts = [{ alg: "none" }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
      return world.iamWith({ ARBOR_TOKEN: `${parts.join(".")}.c2ln` }, ...list);
    };
    const foreign = (await refuse({ iss: "https://ci.example", aud: "y" })).stderr;
    const exchange = "exchange it with: arbor auth login --identity UID --identity-token FILE";
    const issuer = `  ARBOR_TOKEN has a token of the issuer "https://ci.example", not of this service: ${exchange}\n`;
    assert.equal(foreign, `${invalid}${issuer}${remedy}`);
    const unsigned = "  ARBOR_TOKEN has a token that this service did not sign, or that was revoked\n";
    assert.equal((await refuse({})).stderr, `${invalid}${unsigned}${remedy}`);
    const elsewhere = await refuse({ aud: "https://elsewhere.example" });
    const audience = `  ARBOR_TOKEN has a token with the audience "https://elsewhere.example"; expected is ${world.service.url}\n`;
    assert.equal(elsewhere.stderr, `${invalid}${audience}${remedy}`);
  });

  it("that has expired is told so, and one that was revoked is not told apart from others", async () => {
    const { uid, token } = await world.service.identity();
    world.service.skewMs = 2 * 3_600_000;
    const expired = await world.iamWith({ ARBOR_TOKEN: token }, ...list).finally(() => {
      world.service.skewMs = 0;
    });
    assert.equal(expired.code, 3);
    assert.match(
      expired.stderr,
      /^arbor: Unauthenticated: authorization: the bearer token has expired\n {2}set ARBOR_TOKEN /,
    );
    const nowMs = Date.now() + 60_000;
    await world.service.app.installation.store.write((tx) => revokeTokens(tx, uid, { ids: randomIds, nowMs }));
    const revoked = await world.iamWith({ ARBOR_TOKEN: token }, ...list);
    assert.equal(revoked.code, 3);
    assert.equal(revoked.stderr.split("\n")[0], invalid.trimEnd());
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
    assert.equal(stderr, `arbor: Invalid argument:\n  ${name}\n  ${description}\n`);
  });

  it("has its text once", async () => {
    const { stderr } = await world.iam("groups", "create", "--parent", world.root, "--name", "X");
    assert.equal(stderr, "arbor: Invalid argument: name: name must match ^[a-z0-9 ._-]{1,}$\n");
  });

  it("names what stands in the way", async () => {
    await world.json("groups", "create", "--parent", world.root, "--name", "child");
    const { code, stderr } = await world.iam("groups", "delete", world.root, "--yes");
    assert.equal(code, 6);
    assert.equal(
      stderr,
      "arbor: Precondition failed: cannot delete group with child groups\n  in the way: 1 group, 1 identity; arbor iam groups delete --recursive deletes them as well\n",
    );
  });

  it("for want of a right names the capability of the method", async () => {
    const { token, uid } = await world.service.identity({}, world.root);
    const env = { ARBOR_TOKEN: token };
    const refused = await world.iamWith(env, "groups", "update", world.root, "--description", "d");
    const denied = `arbor: Permission denied: groups.update at ${world.root} (or it might not exist)\n`;
    const needed = "  UpdateGroup needs the capability groups.update; arbor whoami prints what you may do\n";
    assert.deepEqual(refused, { code: 4, stdout: "", stderr: denied + needed });
    // What does not exist is refused in the same words, which are those of the published descriptor.
    const absent = world.root.replace(/^./, (digit) => (digit === "a" ? "b" : "a"));
    const missing = await world.iamWith(env, "groups", "update", absent, "--description", "d");
    assert.deepEqual(missing.stderr, (denied + needed).replace(world.root, absent));
    await world.service.bind(uid, "viewer", world.root);
    assert.equal((await world.iamWith(env, "groups", "get", world.root)).code, 0);
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
        const result = await world.iamWith({ ARBOR_API: service.url }, "groups", "get", world.root);
        const stderr = "arbor: no\\u001b[2J\n  a\\u001b[31m: b\\u0007\n";
        const remedies: Partial<Record<Code, string>> = {
          [Code.Unauthenticated]: `  ARBOR_TOKEN has a token with the audience "${world.service.url}"; expected is ${service.url}\n  set ARBOR_TOKEN to a new token, or unset it and run: arbor auth login --api ${service.url}\n`,
          [Code.PermissionDenied]: "  GetGroup needs the capability groups.list; arbor whoami prints what you may do\n",
        };
        assert.deepEqual(result, { code: exitCode, stdout: "", stderr: stderr + (remedies[kind] ?? "") });
      });
    }
  });
});
