// Lists that are sent as they are read, where reading or writing fails half-way.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { sendListChunks } from "../../../src/transport/rest/stream.js";

interface Part {
  readonly items: readonly unknown[];
}

const contentType = "application/json";
const encode = (part: object) => ({ contentType, body: JSON.stringify(part) });

async function sendChunks(chunks: () => AsyncGenerator<Part, void, void>) {
  const errors: unknown[] = [];
  const server = createServer((req, res) => {
    const first = encode({ items: [1] });
    void sendListChunks({
      req,
      res,
      first,
      chunks: chunks(),
      encode,
      headers: {},
      onError: (error) => errors.push(error),
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

test("chunks become one list, and those that are empty leave no trace", async () => {
  const { status, text, errors } = await sendChunks(async function* () {
    yield { items: [] };
    yield { items: [2, 3] };
    yield { items: [] };
    yield { items: [4] };
  });
  assert.deepEqual([status, text, errors], [200, '{"items":[1,2,3,4]}', []]);
});

const failures: Readonly<Record<string, () => AsyncGenerator<Part, void, void>>> = {
  async *read() {
    yield { items: [2] };
    throw new RangeError("of the database");
  },
  async *chunks() {
    yield { items: [2] };
    // JSON.stringify cannot write it.
    yield { items: [3n] };
  },
};

for (const [what, chunks] of Object.entries(failures)) {
  test(`a part that cannot be ${what} cuts the list off, and is told of`, async () => {
    const { text, errors } = await sendChunks(chunks);
    assert.equal(text, undefined);
    assert.deepEqual(
      errors.map((error) => (error as Error).name),
      [what === "read" ? "RangeError" : "TypeError"],
    );
  });
}
