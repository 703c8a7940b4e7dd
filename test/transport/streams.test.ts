import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { create, createFileRegistry, type DescService } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { defineService } from "../../src/transport/services/extra-service.js";
import { type Running, startServer, transports } from "./harness.js";

/** `test.Ticker`, with one method of each kind of stream over a message of one number. */
function tickerDesc(): DescService {
  const file = create(FileDescriptorProtoSchema, {
    name: "ticker.proto",
    package: "test",
    syntax: "proto3",
    messageType: [
      {
        name: "Tick",
        field: [
          {
            name: "n",
            jsonName: "n",
            number: 1,
            type: FieldDescriptorProto_Type.INT32,
            label: FieldDescriptorProto_Label.OPTIONAL,
          },
        ],
      },
    ],
    service: [
      {
        name: "Ticker",
        method: [
          { name: "Watch", inputType: ".test.Tick", outputType: ".test.Tick", serverStreaming: true },
          {
            name: "Echo",
            inputType: ".test.Tick",
            outputType: ".test.Tick",
            clientStreaming: true,
            serverStreaming: true,
          },
        ],
      },
    ],
  });
  const desc = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getService("test.Ticker");
  assert.ok(desc);
  return desc;
}

type Tick = { n: number };

const desc = tickerDesc();
let released = 0;

const impl = {
  /** Counts up to the number asked for; above 100 it then waits until the caller goes. */
  async *watch({ n }: Tick, context: HandlerContext) {
    try {
      for (let i = 0; i < Math.min(n, 100); i++) yield { n: i };
      if (n === 0) throw new ConnectError("a: b, c", Code.Unavailable);
      if (n > 100 && !context.signal.aborted) {
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
      }
    } finally {
      released++;
    }
  },
  async *echo(ticks: AsyncIterable<Tick>) {
    for await (const { n } of ticks) yield { n };
  },
};

interface TickerClient {
  watch(request: Tick, options?: { signal?: AbortSignal }): AsyncIterable<Tick>;
  echo(request: AsyncIterable<Tick>): AsyncIterable<Tick>;
}

describe("streams", () => {
  let server: Running;
  const start = () =>
    startServer({ extraServices: [defineService(desc, impl as unknown as Partial<ServiceImpl<DescService>>)] });
  before(async () => {
    server = await start();
  });
  after(() => server.stop());

  const client = (index: number, to = server): TickerClient => {
    const transport = transports(to.url)[index];
    assert.ok(transport);
    return createClient(desc, transport[1]) as unknown as TickerClient;
  };

  for (const [index, [protocol]] of transports("http://unused").entries()) {
    it(`${protocol}: all of a stream arrives`, async () => {
      const seen: number[] = [];
      for await (const { n } of client(index).watch({ n: 50 })) seen.push(n);
      assert.deepEqual(seen, [...Array(50).keys()]);
    });

    it(`${protocol}: an error at the end of a stream keeps its text`, async () => {
      await assert.rejects(
        async () => {
          for await (const _ of client(index).watch({ n: 0 }));
        },
        { code: Code.Unavailable, rawMessage: "a: b, c" },
      );
    });

    it(`${protocol}: a caller that goes releases its stream`, async () => {
      released = 0;
      const controller = new AbortController();
      await assert.rejects(async () => {
        for await (const { n } of client(index).watch({ n: 101 }, { signal: controller.signal })) {
          if (n === 99) controller.abort();
        }
      });
      while (released === 0) await new Promise((resolve) => setImmediate(resolve));
    });

    it(`${protocol}: a stream is cut at the end of the grace period`, async () => {
      const short = await start();
      let stopped: Promise<void> | undefined;
      await assert.rejects(async () => {
        for await (const { n } of client(index, short).watch({ n: 101 })) if (n === 99) stopped = short.stop(30);
      });
      await stopped;
    });
  }

  it("a stream in both directions outlives the limit on request bodies", async () => {
    const limited = await startServer({
      limits: { requestMs: 20 },
      extraServices: [defineService(desc, impl as unknown as Partial<ServiceImpl<DescService>>)],
    });
    const index = transports("http://unused").findIndex(([name]) => name === "grpc h2");
    async function* ticks() {
      for (let n = 0; n < 3; n++) {
        yield { n };
        await new Promise((resolve) => setTimeout(resolve, 15));
      }
    }
    const seen: number[] = [];
    for await (const { n } of client(index, limited).echo(ticks())) seen.push(n);
    assert.deepEqual(seen, [0, 1, 2]);
    await limited.stop();
  });
});
