// How much is held of lists that are put together, and for how long.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { GroupListSchema } from "#gen/chainguard/platform/iam/group_pb.js";
import { encodeFrame } from "../../../src/codec/frame-writer.js";
import { defaultLimits } from "../../../src/transport/http/limits.js";
import { createBudgets } from "../../../src/transport/http/open-request.js";
import { createListFrames } from "../../../src/transport/rpc/list-frame.js";
import { openRequest } from "../open-request.js";

const PART_BYTES = 1_000_000;
const limits = { ...defaultLimits, responseBytes: 10 * PART_BYTES, responseBufferBytes: 30 * PART_BYTES };
const frames = createListFrames(limits, encodeFrame);

async function* chunks(count: number) {
  for (let i = 0; i < count; i++) yield { items: [{ description: "d".repeat(PART_BYTES - 20) }] };
}

function callers() {
  const budgets = createBudgets(limits);
  const list = (caller: string, given: AsyncIterable<object>, isGone = () => false) => {
    const request = openRequest(budgets);
    request.callerUid = caller;
    const frame = frames({ output: GroupListSchema, chunks: given, isGone, request, cutOff() {} });
    return { frame, release: () => request.close() };
  };
  return { budgets, list };
}

const exhausted = /too much is being sent/;

describe("lists that are put together", () => {
  test("are one message", async () => {
    const frame = await callers().list("a", chunks(5)).frame;
    const message = Buffer.concat(frame.pieces).subarray(5);
    assert.equal(message.length, frame.bytes - 5);
    assert.equal(fromBinary(GroupListSchema, message).items.length, 5);
  });

  test("of one caller are one of full length, and leave others room", async () => {
    const { budgets, list } = callers();
    const first = list("a", chunks(8));
    await first.frame;
    await assert.rejects(list("a", chunks(8)).frame, exhausted);
    await list("b", chunks(8)).frame;
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
      [chunks(9), () => ++read > 5, undefined],
    ] as const) {
      const { frame, release } = list("a", given, gone);
      if (error) await assert.rejects(frame, error);
      else await frame;
      release();
    }
    assert.equal(budgets.responses.bytes, 0);
  });
});
