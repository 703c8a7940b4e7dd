// How much is held of lists that are put together, and for how long.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { GroupListSchema } from "#gen/chainguard/platform/iam/group_pb.js";
import { frameOf } from "../../src/server/frame-writer.js";
import { createListFrames, type ListFrames } from "../../src/server/list-frame.js";

const PART_BYTES = 1_000;
const limits = { responseBytes: 10 * PART_BYTES, listBytes: 30 * PART_BYTES };

async function* parts(count: number) {
  for (let i = 0; i < count; i++) yield { items: [{ description: "d".repeat(PART_BYTES - 20) }] };
}

const framed = (frames: ListFrames, caller: string, count: number) =>
  frames({ output: GroupListSchema, parts: parts(count), gone: () => false, caller: () => caller });

const exhausted = /too many long lists are being made/;

describe("lists that are put together", () => {
  test("are one message", async () => {
    const frame = await framed(createListFrames(limits, frameOf), "a", 5);
    const message = Buffer.concat(frame.pieces).subarray(5);
    assert.equal(message.length, frame.bytes - 5);
    assert.equal(fromBinary(GroupListSchema, message).items.length, 5);
  });

  test("of one caller leave others room", async () => {
    const frames = createListFrames(limits, frameOf);
    const held = [await framed(frames, "a", 9), await framed(frames, "a", 5)];
    await assert.rejects(framed(frames, "a", 2), exhausted);
    held.push(await framed(frames, "b", 9));
    for (const { release } of held) {
      release();
      release();
    }
    for (let i = 0; i < 50; i++) (await framed(frames, "a", 9)).release();
  });

  test("of all keep nobody from short ones", async () => {
    const frames = createListFrames(limits, frameOf);
    for (const caller of ["a", "b", "c"]) await framed(frames, caller, 9);
    await assert.rejects(framed(frames, "d", 9), exhausted);
    assert.equal((await framed(frames, "d", 1)).pieces.length, 1);
  });

  test("give their room back when they fail or nobody waits for them", async () => {
    const frames = createListFrames(limits, frameOf);
    async function* failing() {
      yield* parts(9);
      throw new Error("no more");
    }
    for (let i = 0; i < 10; i++) {
      const list = { output: GroupListSchema, gone: () => false, caller: () => "a" };
      await assert.rejects(frames({ ...list, parts: failing() }), /no more/);
      await assert.rejects(framed(frames, "a", 11), /more than 10000 bytes/);
      let read = 0;
      (await frames({ ...list, parts: parts(9), gone: () => ++read > 5 })).release();
    }
    (await framed(frames, "a", 9)).release();
  });
});
