import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Client } from "@connectrpc/connect";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { Health } from "#gen/health/v1/health_pb.js";
import {
  Code,
  ConnectError,
  type ConnectionOptions,
  connectTo,
  staticToken,
  type TokenSource,
} from "../../src/client/index.js";
import { failureOf } from "./failure.js";
import { type Answer, type FlakyService, type SeenCall, startFlaky, unavailableFor } from "./flaky-service.js";

type Groups = Client<typeof GroupsService>;

/** Runs `use` against a service that answers by `answer`. */
async function against(
  t: TestContext,
  response: (call: SeenCall, index: number) => Answer,
  use: (groups: Groups, service: FlakyService) => Promise<void>,
  options: Partial<ConnectionOptions> = {},
): Promise<void> {
  const service = await startFlaky(t, response);
  const connection = connectTo({ baseUrl: service.url, backoffMs: 1, ...options });
  try {
    await use(connection.client(GroupsService), service);
  } finally {
    connection.close();
  }
}

const get = (groups: Groups) => groups.getGroup({ uid: "u1" });
const make = (groups: Groups) => groups.createGroup({ parent: "u1" });
const change = (groups: Groups) => groups.updateGroup({ group: { uid: "u1" } });
const remove = (groups: Groups) => groups.deleteGroup({ uid: "u1" });

const { Unavailable, Unauthenticated } = Code;
const { updateGroup } = GroupsService.method;

describe("tries after UNAVAILABLE", () => {
  const cases: readonly {
    reason: string;
    call: (groups: Groups) => Promise<unknown>;
    answers: readonly Answer[];
    options?: Partial<ConnectionOptions>;
    attempts: number;
    code?: Code;
  }[] = [
    { reason: "a read is tried again", call: get, answers: [Unavailable, Unavailable], attempts: 3 },
    { reason: "a lost connection is UNAVAILABLE", call: get, answers: ["cut"], attempts: 2 },
    { reason: "three times", call: get, answers: Array(9).fill(Unavailable), attempts: 4, code: Unavailable },
    { reason: "a create is not", call: make, answers: [Unavailable], attempts: 1, code: Unavailable },
    { reason: "an update is not", call: change, answers: [Unavailable], attempts: 1, code: Unavailable },
    { reason: "a delete is not", call: remove, answers: [Unavailable], attempts: 1, code: Unavailable },
    { reason: "a write on a lost connection is not", call: make, answers: ["cut"], attempts: 1, code: Unavailable },
    {
      reason: "a named write is",
      call: change,
      answers: [Unavailable],
      options: { retryWrites: [updateGroup] },
      attempts: 2,
    },
    {
      reason: "another write is not",
      call: make,
      answers: [Unavailable],
      options: { retryWrites: [updateGroup] },
      attempts: 1,
      code: Unavailable,
    },
    {
      reason: "not beyond the deadline, and then at once",
      call: get,
      answers: [unavailableFor(60_000)],
      attempts: 1,
      code: Unavailable,
    },
    { reason: "as soon as the service says", call: get, answers: [unavailableFor(5)], attempts: 2 },
  ];
  for (const { reason, call, answers, options, attempts, code } of cases) {
    it(reason, (t) =>
      against(
        t,
        (_, index) => answers[index],
        async (groups, service) => {
          if (code === undefined) await call(groups);
          else assert.equal((await failureOf(call(groups))).code, code);
          assert.equal(service.calls.length, attempts);
        },
        options,
      ),
    );
  }

  const others = Object.values(Code).filter((code): code is Code => typeof code === "number" && code !== Unavailable);
  it("no other code is tried again", (t) =>
    against(
      t,
      (_, index) => others[index],
      async (groups, service) => {
        for (const code of others) assert.equal((await failureOf(get(groups))).code, code);
        assert.equal(service.calls.length, others.length);
      },
    ));

  it("every attempt tells the service the time that is left", (t) =>
    against(
      t,
      (_, index) => (index < 2 ? unavailableFor(20) : undefined),
      async (groups, service) => {
        await get(groups);
        await groups.getGroup({ uid: "u1" }, { timeoutMs: 5_000 });
        const [first = 0, second = 0, third = 0, own = 0] = service.calls.map((call) => call.timeoutMs);
        assert.ok(first <= 30_000 && first > 29_000, `${first}`);
        assert.ok(second <= first - 15, `${second}`);
        assert.ok(third <= second - 15, `${third}`);
        assert.ok(own <= 5_000 && own > 4_000, `${own}`);
      },
    ));

  it("a call may have no deadline", (t) =>
    against(
      t,
      () => undefined,
      async (groups, service) => {
        await groups.getGroup({ uid: "u1" }, { timeoutMs: 0 });
        assert.equal(service.calls[0]?.timeoutMs, undefined);
      },
    ));

  it("a call ends at its deadline", (t) =>
    against(
      t,
      () => "hang",
      async (groups) => {
        const failure = await failureOf(groups.getGroup({ uid: "u1" }, { timeoutMs: 20 }));
        assert.equal(failure.code, Code.DeadlineExceeded);
      },
    ));

  it("a cancelled call ends its wait", (t) => {
    const controller = new AbortController();
    return against(
      t,
      () => {
        setImmediate(() => controller.abort());
        return unavailableFor(20_000);
      },
      async (groups, service) => {
        const failure = await failureOf(groups.getGroup({ uid: "u1" }, { signal: controller.signal }));
        assert.equal(failure.code, Code.Canceled);
        assert.equal(service.calls.length, 1);
      },
    );
  });
});

describe("tokens of calls", () => {
  /** Refuses every token but `good`. */
  const only = (good: string) => (call: SeenCall) =>
    call.authorization === `Bearer ${good}` ? undefined : Unauthenticated;
  const source = (token: string, renewed: string): TokenSource => ({ token: () => token, renew: async () => renewed });

  const cases: readonly {
    reason: string;
    token: TokenSource;
    seen: readonly string[];
    code?: Code;
    message?: string;
  }[] = [
    { reason: "a good token is used as it is", token: source("good", "other"), seen: ["good"] },
    { reason: "a refused token is renewed, even under a write", token: source("old", "good"), seen: ["old", "good"] },
    { reason: "once", token: source("old", "older"), seen: ["old", "older"], code: Unauthenticated },
    { reason: "not for the same token", token: source("old", "old"), seen: ["old"], code: Unauthenticated },
    { reason: "a static token is all there is", token: staticToken("old"), seen: ["old"], code: Unauthenticated },
    {
      reason: "no call without a token",
      token: { token: () => Promise.reject(new SyntaxError("found se-cret")) },
      seen: [],
      code: Unauthenticated,
      message: "no token could be had",
    },
    {
      reason: "the code of a source is kept",
      token: { token: () => Promise.reject(new ConnectError("issuer is away", Unavailable)) },
      seen: [],
      code: Unavailable,
      message: "issuer is away",
    },
    {
      reason: "what is no token is not sent",
      token: { token: () => "se\ncret" },
      seen: [],
      code: Unauthenticated,
      message: "the token source gave no valid bearer token",
    },
  ];
  for (const { reason, token, seen, code, message } of cases) {
    it(reason, (t) =>
      against(
        t,
        only("good"),
        async (groups, service) => {
          if (code === undefined) await make(groups);
          else {
            const failure = await failureOf(make(groups));
            assert.equal(failure.code, code);
            if (message !== undefined) assert.equal(failure.rawMessage, message);
          }
          assert.deepEqual(
            service.calls.map((call) => call.authorization),
            seen.map((value) => `Bearer ${value}`),
          );
        },
        { token },
      ),
    );
  }

  it("waiting for a token ends at the deadline", (t) =>
    against(
      t,
      () => undefined,
      async (groups) => {
        const failure = await failureOf(groups.getGroup({ uid: "u1" }, { timeoutMs: 10 }));
        assert.equal(failure.code, Code.DeadlineExceeded);
        assert.equal(failure.rawMessage, "the operation timed out");
      },
      { token: { token: () => new Promise(() => {}) } },
    ));

  it("waiting for a token ends with the call", (t) =>
    against(
      t,
      () => undefined,
      async (groups) => {
        assert.equal(
          (await failureOf(groups.getGroup({ uid: "u1" }, { signal: AbortSignal.abort() }))).code,
          Code.Canceled,
        );
      },
      { token: { token: () => new Promise(() => {}) } },
    ));

  it("a call's own Authorization is sent instead, and not renewed", (t) =>
    against(
      t,
      only("good"),
      async (groups, service) => {
        const failure = await failureOf(
          groups.getGroup({ uid: "u1" }, { headers: { authorization: "Bearer theirs" } }),
        );
        assert.equal(failure.code, Unauthenticated);
        assert.deepEqual(
          service.calls.map((call) => call.authorization),
          ["Bearer theirs"],
        );
      },
      { token: source("good", "other") },
    ));

  it("without a source calls are anonymous", (t) =>
    against(
      t,
      () => undefined,
      async (groups, service) => {
        await get(groups);
        assert.equal(service.calls[0]?.authorization, null);
      },
    ));

  it("a call's own Authorization does not go to another machine in cleartext", async () => {
    const groups = connectTo({ baseUrl: "http://service.invalid" }).client(GroupsService);
    await assert.rejects(groups.getGroup({ uid: "u1" }, { headers: { authorization: "Bearer theirs" } }), {
      name: "TypeError",
      message: "a token is never sent in cleartext to another machine",
    });
  });

  it("streams carry a token, and no deadline of their own", async (t) => {
    const service = await startFlaky(t, () => undefined);
    const connection = connectTo({ baseUrl: service.url, token: staticToken("good") });
    for await (const { status } of connection.client(Health).watch({})) assert.equal(status, 1);
    assert.deepEqual(service.calls, [{ method: "Watch", authorization: "Bearer good", timeoutMs: undefined }]);
    connection.close();
  });
});
