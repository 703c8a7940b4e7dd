// Lists without pages, whatever their length: the same elements by every
// protocol, read in chunks, sent at the pace of the reader, and never half of
// them for all.
import assert from "node:assert/strict";
import { once } from "node:events";
import { get as getHttp1, type IncomingMessage } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { afterEach, beforeEach, describe, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { GroupFilterSchema, GroupListSchema, Groups } from "#gen/chainguard/platform/iam/group_pb.js";
import { connectErrorFrom, unavailable } from "../../src/kernel/errors.js";
import { type Handlers, listInChunks } from "../../src/pipeline/handlers.js";
import type { Invoke } from "../../src/pipeline/invoke.js";
import { createMethodTable, type MethodTable, serve } from "../../src/pipeline/method-table.js";
import type { Limits } from "../../src/transport/http/limits/limits.js";
import { Gateway } from "../../src/transport/rest/gateway.js";
import type { Serve } from "../../src/transport/serve.js";
import { chooseScale } from "../support/scale.js";
import { withoutBodies } from "../support/without-bodies.js";
import { DOMAIN, frame, openHttp2, type Running, rawHttp2, startServer, transports } from "./harness.js";

const PATH = "/chainguard.platform.iam.Groups/List";
const PART = 100;
const DESCRIPTION = "d".repeat(900);

/** How long the list is, and where reading it fails, if it does. */
let size: number;
let failAt: number;
let description: string;
/** Parts read so far, and what goes on while one is. */
let read: number;
let during: () => Promise<void>;
let server: Running | undefined;

beforeEach(() => {
  [size, failAt, read, description] = [0, Number.POSITIVE_INFINITY, 0, DESCRIPTION];
  during = async () => {};
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

function methods(): MethodTable {
  const answerNothing = () => ({});
  const handlers: Handlers<typeof Groups> = {
    list: listInChunks(async ({ name }, _call, after: number | undefined) => {
      const start = after ?? 0;
      if (start >= failAt) throw unavailable("the database cannot be reached");
      read++;
      await during();
      const end = Math.min(start + PART, size);
      // One that is named is looked for, and most parts hold none.
      const numbers = Array.from({ length: end - start }, (_, i) => start + i);
      const found = name === "" ? numbers : numbers.filter((number) => `group ${number}` === name);
      const items = found.map((number) => ({ id: String(number), name: `group ${number}`, description }));
      return { chunk: { items }, next: end < size ? end : undefined };
    }),
    create: answerNothing,
    update: answerNothing,
    delete: answerNothing,
    lookupGroup: answerNothing,
    requestGroupAccess: answerNothing,
    checkEligibility: () => ({ eligible: true }),
  };
  const table = createMethodTable([serve(Groups, handlers, withoutBodies(Groups))]);
  return new Map([...table].map(([path, entry]) => [path, { ...entry, auth: { mode: "public" as const } }]));
}

const invoke: Invoke = async (method, call, _principal, given) => {
  try {
    return await method.handler(typeof given === "function" ? given() : given, call);
  } catch (error) {
    throw connectErrorFrom(error, DOMAIN);
  }
};

async function start(limits: Partial<Limits> = {}): Promise<string> {
  const table = methods();
  const gateway = (serve: Serve) => new Gateway({ methods: table.values(), serve });
  server = await startServer({ methods: table, invoke, gateway, limits });
  return server.url;
}

const ids = (count: number) => Array.from({ length: count }, (_, i) => String(i));
const http1 = async (url: string): Promise<IncomingMessage> => {
  const [response] = await once(getHttp1(url), "response");
  return response as IncomingMessage;
};

describe("a list of any length", () => {
  for (const length of [0, 1, PART, PART + 1, chooseScale(25, 7) * PART]) {
    test(`of ${length} is the same by every protocol`, async () => {
      size = length;
      const url = await start();
      for (const [name, transport] of transports(url)) {
        const { items } = await createClient(Groups, transport).list({});
        assert.deepEqual(
          items.map(({ id }) => id),
          ids(length),
          name,
        );
      }
      const answer = await fetch(`${url}/iam/v1/groups`);
      assert.deepEqual([answer.status, answer.headers.get("content-type")], [200, "application/json"]);
      const { items } = (await answer.json()) as { items: { id: string; description: string }[] };
      assert.deepEqual(
        items.map(({ id }) => id),
        ids(length),
      );
      assert.ok(items.every(({ description }) => description === DESCRIPTION));
    });
  }

  test("is JSON also where whole parts of it hold nothing", async () => {
    size = 10 * PART;
    const url = await start();
    for (const [name, expected] of [
      ["group 5", ["5"]],
      ["group 555", ["555"]],
      [`group ${10 * PART - 1}`, [String(10 * PART - 1)]],
      ["nobody", []],
    ] as const) {
      const answer = await fetch(`${url}/iam/v1/groups?name=${encodeURIComponent(name)}`);
      const { items } = (await answer.json()) as { items: { id: string }[] };
      assert.deepEqual(
        items.map(({ id }) => id),
        expected,
      );
    }
  });

  test("lets other calls in between its parts", async () => {
    size = 50 * PART;
    const url = await start();
    const [, [, connect] = []] = transports(url);
    assert.ok(connect);
    const other = createClient(Groups, connect);
    const list = createClient(Groups, connect).list({});
    while (read === 0) await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await other.checkEligibility({})).eligible, true);
    assert.ok(read < 50, `${read} parts were read before another call was answered`);
    assert.equal((await list).items.length, size);
  });

  test("answers HEAD without its elements", async () => {
    size = 10 * PART;
    const answer = await fetch(`${await start()}/iam/v1/groups`, { method: "HEAD" });
    assert.deepEqual([answer.status, await answer.text()], [200, ""]);
    assert.equal(read, 1);
  });
});

describe("a list that cannot be read to its end", () => {
  test("is an error over RPC", async () => {
    [size, failAt] = [10 * PART, 5 * PART];
    for (const [name, transport] of transports(await start())) {
      await assert.rejects(createClient(Groups, transport).list({}), (error) => {
        assert.equal(ConnectError.from(error).code, Code.Unavailable, name);
        return true;
      });
    }
  });

  test("is no complete response and no JSON over HTTP", async () => {
    [size, failAt] = [50 * PART, 25 * PART];
    const url = await start();
    const response = await http1(`${url}/iam/v1/groups`);
    assert.equal(response.statusCode, 200);
    let text = "";
    response.on("data", (chunk) => {
      text += chunk;
    });
    response.on("error", () => {});
    await new Promise((resolve) => response.on("close", resolve));
    assert.equal(response.complete, false);
    assert.throws(() => JSON.parse(text));
    const session = openHttp2(url);
    const answer = await rawHttp2(session, { ":method": "GET", ":path": "/iam/v1/groups" });
    assert.notEqual(answer.rstCode, 0);
    session.close();
  });

  test("is an error where nothing was sent yet", async () => {
    [size, failAt] = [PART, 0];
    assert.equal((await fetch(`${await start()}/iam/v1/groups`)).status, 503);
  });
});

describe("limits of lists", () => {
  test("one over gRPC is as large as a response may be, and no larger", async () => {
    size = 10 * PART;
    const items = ids(size).map((id) => ({ id, name: `group ${id}`, description: DESCRIPTION }));
    const bytes = 5 + toBinary(GroupListSchema, create(GroupListSchema, { items })).length;
    for (const [responseBytes, status] of [
      [bytes, "0"],
      [bytes - 1, "8"],
    ] as const) {
      const url = await start({ responseBytes });
      const session = connectHttp2(url);
      const headers = { ":path": PATH, "content-type": "application/grpc", te: "trailers" };
      const answer = await rawHttp2(session, headers, frame(toBinary(GroupFilterSchema, create(GroupFilterSchema))));
      assert.equal(answer.trailers["grpc-status"] ?? answer.headers["grpc-status"], status);
      if (status === "0") {
        assert.equal(answer.body.length, bytes);
        assert.deepEqual(fromBinary(GroupListSchema, answer.body.subarray(5)).items.length, size);
      }
      session.close();
      await server?.stop();
    }
  });

  for (const protocol of ["grpc h2", "connect h2", "grpc-web http/1.1"]) {
    test(`all that are put together share one, and give it back: ${protocol}`, async () => {
      size = 10 * PART;
      const url = await start({ responseBufferBytes: 1_500_000 });
      const transport = transports(url).find(([name]) => name === protocol)?.[1];
      assert.ok(transport);
      const client = createClient(Groups, transport);
      const many = await Promise.allSettled(Array.from({ length: 8 }, () => client.list({})));
      const rejected = many.filter((one) => one.status === "rejected");
      assert.ok(rejected.length > 0 && rejected.length < 8, `${rejected.length} of 8 were rejected`);

      for (const { reason } of rejected) assert.equal(ConnectError.from(reason).code, Code.ResourceExhausted);
      for (let i = 0; i < 5; i++) assert.equal((await client.list({})).items.length, size);
    });
  }

  test("one may have any number of elements, over every protocol", async () => {
    [size, description] = [50_001, ""];
    const url = await start();
    for (const [name, transport] of transports(url).filter(([name]) => / h2( binary| JSON)?$/.test(name))) {
      const { items } = await createClient(Groups, transport).list({ name: "" });
      assert.equal(items.length, size, name);
    }
    const { items } = (await (await fetch(`${url}/iam/v1/groups`)).json()) as { items: unknown[] };
    assert.equal(items.length, size);
  });

  test("a reader that stops reading stops the reading of parts", async () => {
    size = 100_000;
    const response = await http1(`${await start()}/iam/v1/groups`);
    response.pause();
    // It goes on until the buffers on the way are full, which takes its time on a busy machine.
    let before = -1;
    for (let waits = 0; waits < 50 && before !== read; waits++) {
      before = read;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.equal(read, before, "the reading came to rest");
    assert.ok(read > 0 && read < size / PART / 2, `${read} parts were read`);
    response.destroy();
  });
});
