// Streams of events over REST: what ends them.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { type EventWorld, startEventWorld } from "./event-world.js";

const LIST = ["role_bindings.list"];

interface Line {
  readonly result?: { readonly event?: { readonly requestId: string } };
  readonly error?: { readonly code: number; readonly message: string };
}

describe("a stream of events over REST", () => {
  let world: EventWorld;
  before(async () => {
    world = await startEventWorld();
  });
  after(() => world.stop());

  /** Opens a stream that has begun. The function that it returns reads the next line that is not a sign of life. */
  async function tail(token: string): Promise<() => Promise<Line | undefined>> {
    const response = await fetch(`${world.url}/audit/v1/events:tail?scope=${world.root}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    assert.equal(response.status, 200);
    const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
    // What was cut behind an error is no error of its own here.
    body.on("error", () => {});
    const lines = createInterface({ input: body })[Symbol.asyncIterator]();
    const next = async (): Promise<Line | undefined> => {
      const { value, done } = await lines.next();
      return done === true || value === "" ? undefined : JSON.parse(value);
    };
    const first = await next();
    assert.deepEqual(first?.error, undefined);
    return async () => {
      for (;;) {
        const line = await next();
        if (line === undefined || line.error !== undefined || line.result?.event !== undefined) return line;
      }
    };
  }

  it("ends when the rights of its caller end", async () => {
    const { uid, token } = await world.caller(LIST);
    const next = await tail(token);
    await world.add({ rootUid: world.root, requestId: "allowed" });
    assert.equal((await next())?.result?.event?.requestId, "allowed");
    await world.write(async (tx) => {
      for (const binding of await tx.table(roleBindingKind).findByIdentity(uid))
        await tx.table(roleBindingKind).delete(binding.uid);
    });
    await world.add({ rootUid: world.root, requestId: "denied" });
    assert.equal((await next())?.error?.code, 7);
    // As every stream that fails after its beginning, it is cut off.
    await assert.rejects(next(), /terminated/);
  });

  it("ends when its token expires", async () => {
    const next = await tail((await world.caller(LIST)).token);
    world.harness.skewMs = 2 * 3_600_000;
    await world.add({ rootUid: world.root, requestId: "late" });
    const { error } = (await next()) ?? {};
    world.harness.skewMs = 0;
    assert.equal(error?.code, 16);
    // As every stream that fails after its beginning, it is cut off.
    await assert.rejects(next(), /terminated/);
  });

  it("ends when the service stops", async () => {
    const next = await tail((await world.caller(LIST)).token);
    const stopped = world.stop();
    assert.equal((await next())?.error?.code, 14);
    await stopped;
  });
});
