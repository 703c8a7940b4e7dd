// What follows an error for a missing capability: who can grant it, as far as the caller may know.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { AccessService, type ListSubjectsRequest } from "#gen/arbor/access/v1/access_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { startStopwatch } from "../../../support/stopwatch.js";
import { startFakeService } from "../iam/fake-service.js";
import { type AccessWorld, startAccessWorld } from "./access-world.js";

let world: AccessWorld;
before(async () => {
  world = await startAccessWorld();
});
after(() => world?.stop());

const HINT = /\n {2}can be granted by: (.*)\n$/;

async function deny(token: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await world.arbor({ ARBOR_TOKEN: token }, ...args);
  assert.deepEqual([code, stdout], [4, ""], stderr);
  return stderr;
}

/** Who the error of a change of the group says that can grant what is missing; undefined where it says nothing. */
async function grantorsFor(token: string): Promise<string | undefined> {
  const stderr = await deny(token, "iam", "groups", "update", world.team, "--description", "x");
  assert.match(
    stderr,
    /^arbor: Permission denied: groups\.update at \S+ \(or it might not exist\)\n {2}UpdateGroup needs/,
  );
  return HINT.exec(stderr)?.[1];
}

describe("an error for a missing capability", () => {
  it("ends with those who can grant it, for somebody who may list role bindings there", async () => {
    const bea = await world.service.identity({ name: "Bea", email: "bea@acme.example" });
    await world.join(bea.uid, "owner", world.team);
    // It may bind roles and lacks the capability, so it cannot grant it.
    const binder = await world.service.identity({ name: "binder" }, world.team);
    await world.service.bind(binder.uid, "limited_owner", world.team);
    // What is above the group Ada does not see.
    assert.equal(await grantorsFor(world.ada.token), "Bea (bea@acme.example)");

    await world.join(world.ada.uid, "viewer", world.root);
    const named = (await grantorsFor(world.ada.token)) ?? "";
    assert.deepEqual(named.split(", ").sort(), ["Bea (bea@acme.example)", "the operator (on the host)"]);
  });

  it("(the control) says nothing to somebody who may not know", async () => {
    const stranger = await world.service.identity({}, world.root);
    assert.equal(await grantorsFor(stranger.token), undefined);
    await world.service.bind(stranger.uid, "viewer", world.team);
    assert.notEqual(await grantorsFor(stranger.token), undefined, "only the right to list them was missing");
  });

  it("says so with every format, and for several capabilities", async () => {
    const provider = ["--name", "idp", "--default-role", "viewer", "--oidc-issuer", "https://idp.example"];
    const create = ["iam", "identity-providers", "create", "--parent", world.root, ...provider];
    const stderr = await deny(
      world.ada.token,
      ...create,
      "--oidc-client-id",
      "id",
      "--oidc-pkce-enabled",
      "-o",
      "json",
    );
    assert.match(stderr, /^arbor: Permission denied: identity_providers\.create and role_bindings\.create at /);
    assert.match(stderr, HINT);
  });

  it("names five, and counts the others", async () => {
    const crowd = String((await world.json("groups", "create", "--parent", world.root, "--name", "crowd")).uid);
    const reader = await world.service.identity({}, crowd);
    await world.service.bind(reader.uid, "viewer", crowd);
    for (let i = 0; i < 8; i++) {
      const { uid } = await world.service.identity({ name: `owner ${i}` }, crowd);
      await world.service.bind(uid, "owner", crowd);
    }
    const stderr = await deny(reader.token, "iam", "groups", "update", crowd, "--description", "x");
    assert.match(stderr, /\n {2}can be granted by: owner \d(?:, owner \d){4} and 3 more\n$/);
  });

  it("is as short as before where the text is another", async () => {
    const role = ["--identity", world.ci.uid, "--role", "owner"];
    const limited = await world.service.identity({}, world.root);
    await world.service.bind(limited.uid, "limited_owner", world.team);
    const stderr = await deny(limited.token, "iam", "role-bindings", "create", "--parent", world.team, ...role);
    assert.match(stderr, /^arbor: Permission denied: granting rights at /);
    assert.doesNotMatch(stderr, HINT);
  });
});

describe("the question who can grant it", () => {
  const uid = "a".repeat(40);
  const denied = `Permission denied: groups.update at ${uid} (or it might not exist)`;

  /** Runs a command that is denied, against a service that answers the question as a test says. */
  async function ask(
    answer: (request: ListSubjectsRequest) => Promise<object>,
    text = denied,
    code = Code.PermissionDenied,
  ) {
    const requests: ListSubjectsRequest[] = [];
    const service = await startFakeService((router) => {
      router.service(GroupsService, {
        updateGroup: () => {
          throw new ConnectError(text, code);
        },
      });
      router.service(AccessService, {
        listSubjects: async (request) => {
          requests.push(request);
          return answer(request);
        },
      });
    });
    const [startMs, elapsedMs] = [performance.now(), startStopwatch()];
    const env = { ARBOR_API: service.url, ARBOR_TOKEN: "a.b.c" };
    const { stderr } = await world.arbor(env, "iam", "groups", "update", uid, "--description", "x");
    const [ms, ownMs] = [performance.now() - startMs, elapsedMs()];
    await service.stop();
    return { requests, stderr, ms, ownMs };
  }

  const subjects = [{ subject: { case: "identity" as const, value: { uid, name: "", email: "a@acme.example" } } }];

  it("is asked once, for the right to bind roles and what is missing", async () => {
    const { requests, stderr } = await ask(async () => ({ subjects }));
    assert.match(stderr, /\n {2}can be granted by: a@acme\.example\n$/);
    assert.deepEqual(
      requests.map(({ actions, resource }) => [actions, resource]),
      [[["role_bindings.create", "groups.update"], uid]],
    );
  });

  it("is given up after two seconds, and when the service has no answer", async () => {
    const before = await ask(async () => ({}));
    assert.doesNotMatch(before.stderr, HINT);
    const slow = await ask(() => new Promise(() => {}));
    assert.equal(slow.stderr, before.stderr);
    assert.ok(slow.ms >= 1_900 && slow.ownMs < 10_000, `${slow.ms}`);
    const failing = await ask(async () => {
      throw new ConnectError("no such method", Code.Unimplemented);
    });
    assert.equal(failing.stderr, before.stderr);
  });

  it("is not asked after other errors", async () => {
    for (const [text, code] of [
      ["Permission denied: assuming it", Code.PermissionDenied],
      ["Permission denied: groups.update at any group (or it might not exist)", Code.PermissionDenied],
      [denied, Code.FailedPrecondition],
    ] as const) {
      const { requests, stderr } = await ask(async () => ({ subjects }), text, code);
      assert.deepEqual(requests, []);
      assert.doesNotMatch(stderr, HINT);
    }
  });

  it("cannot break the lines of the error", async () => {
    const odd = [{ subject: { case: "identity" as const, value: { uid, name: "a\nb\u001b[1m" } } }];
    const { stderr } = await ask(async () => ({ subjects: odd }));
    assert.match(stderr, /\n {2}can be granted by: a\\u000ab\\u001b\[1m\n$/);
  });
});
