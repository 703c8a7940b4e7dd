// Lists whose chunks become the pieces of one message: how much is held of those that are collected, and for how long; and
// those that are sent while they are read, where reading or writing fails half-way.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { GroupListSchema } from "#gen/chainguard/platform/iam/group_pb.js";
import { createBudgets } from "../../../src/transport/http/limits/budgets.js";
import { defaultLimits } from "../../../src/transport/http/limits/limits.js";
import {
  collectList,
  createBinaryListEncoder,
  createJsonListEncoder,
  streamList,
} from "../../../src/transport/http/list-pieces.js";
import { beginHttp1, ChargedRequest } from "../requests.js";

const PART_BYTES = 1_000_000;
const limits = { ...defaultLimits, responseBytes: 10 * PART_BYTES, responseBufferBytes: 30 * PART_BYTES };

async function* chunks(count: number) {
  for (let i = 0; i < count; i++) yield { items: [{ description: "d".repeat(PART_BYTES - 20) }] };
}

function callers() {
  const budgets = createBudgets(limits);
  const list = (caller: string, given: AsyncIterable<object>, isGone = () => false) => {
    const request = new ChargedRequest("192.0.2.1", budgets, undefined, isGone);
    request.callerUid = caller;
    const encoder = createBinaryListEncoder(GroupListSchema);
    const maxBytes = limits.responseBytes;
    const message = collectList({ chunks: given, encoder, maxBytes, request });
    return { message, release: () => request.finish() };
  };
  return { budgets, list };
}

const exhausted = /too much is being sent/;

describe("lists that are collected", () => {
  test("are one message", async () => {
    const { pieces, bytes } = await callers().list("a", chunks(5)).message;
    const message = Buffer.concat(pieces);
    assert.equal(message.length, bytes);
    assert.equal(fromBinary(GroupListSchema, message).items.length, 5);
  });

  test("of one caller are one of full length, and leave others room", async (t) => {
    // On a slow machine the first would be old enough to be the slowest, and be rejected in favour of the second.
    t.mock.method(performance, "now", () => 0);
    const { budgets, list } = callers();
    const first = list("a", chunks(8));
    await first.message;
    await assert.rejects(list("a", chunks(8)).message, exhausted);
    await list("b", chunks(8)).message;
    first.release();
    first.release();
    assert.ok(budgets.responses.bytes < 20 * PART_BYTES);
  });

  test("give their room back when they fail or nobody waits for them", async () => {
    const { budgets, list } = callers();
    async function* failing() {
      yield* chunks(5);
      throw new Error("no more");
    }
    let read = 0;
    for (const [given, gone, error] of [
      [failing(), () => false, /no more/],
      [chunks(11), () => false, /more than 10000000 bytes|too much is being sent/],
      [chunks(9), () => ++read > 5, /the caller has gone/],
    ] as const) {
      const { message, release } = list("a", given, gone);
      await assert.rejects(message, error);
      release();
    }
    assert.equal(budgets.responses.bytes, 0);
  });
});

const items = GroupListSchema.field.items;
const createEncoder = () => createJsonListEncoder(items, (list) => JSON.stringify(list), '{"items":[]}');

describe("lists in JSON", () => {
  const write = (...parts: readonly object[]) => {
    const encoder = createEncoder();
    return Buffer.concat([...parts.map(encoder.encode), encoder.end()]).toString();
  };

  test("are one object, and empty chunks leave no trace", () => {
    assert.equal(write({ items: [] }, { items: [2, 3] }, {}, { items: [4] }), '{"items":[2,3,4]}');
    assert.equal(write({ items: [1] }, { items: [2] }), '{"items":[1,2]}');
  });

  test("without elements are what their format has for an empty list", () => {
    assert.equal(write({ items: [] }, {}), '{"items":[]}');
  });
});

interface Part {
  readonly items: readonly unknown[];
}

async function sendChunks(chunks: () => AsyncGenerator<Part, void, void>) {
  const errors: unknown[] = [];
  const server = createServer((message, response) => {
    const request = beginHttp1(message, response);
    const headers = { "content-type": "application/json" };
    const list = { request, headers, first: { items: [1] }, chunks: chunks(), encoder: createEncoder() };
    streamList(list).catch((error) => {
      errors.push(error);
      request.breakOff("");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const text = await response.text().catch(() => undefined);
    return { status: response.status, text, errors };
  } finally {
    server.close();
  }
}

describe("lists that are sent while they are read", () => {
  test("are complete", async () => {
    const { status, text, errors } = await sendChunks(async function* () {
      yield { items: [] };
      yield { items: [2, 3] };
    });
    assert.deepEqual([status, text, errors], [200, '{"items":[1,2,3]}', []]);
  });

  const failures: Readonly<Record<string, () => AsyncGenerator<Part, void, void>>> = {
    async *read() {
      yield { items: [2] };
      throw new RangeError("of the database");
    },
    async *encoded() {
      yield { items: [2] };
      // JSON.stringify cannot write it.
      yield { items: [3n] };
    },
  };

  for (const [what, chunks] of Object.entries(failures)) {
    test(`of which a part cannot be ${what} fail, and what was sent is incomplete`, async () => {
      const { text, errors } = await sendChunks(chunks);
      assert.equal(text, undefined);
      assert.deepEqual(
        errors.map((error) => (error as Error).name),
        [what === "read" ? "RangeError" : "TypeError"],
      );
    });
  }
});
