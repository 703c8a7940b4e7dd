// The library as its authors serve it with connect-node: nothing here knows of Arbor. Its stubs are made of
// library.proto, from the root of the project, by
//
//   npx buf generate test/support/library --template '{"version":"v2","plugins":[{"local":"protoc-gen-es",
//     "out":"test/support/library","opt":["target=js+dts","import_extension=js"]}]}'
import { once } from "node:events";
import { createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { anyPack, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ReviewSchema } from "./extra_pb.js";
import { BindingSchema, type Book, type BookSchema, LibraryService } from "./library_pb.js";

/** The nanoseconds of every book's time: more than milliseconds hold. */
export const PUBLISH_TIME = { seconds: 1_700_000_000n, nanos: 123_456_789 };

type BookInit = Exclude<MessageInitShape<typeof BookSchema>, Book>;

const responses: Readonly<Record<string, (context: HandlerContext) => Promise<BookInit> | BookInit>> = {
  "books/none": () => {
    const details = [{ desc: BindingSchema, value: { material: "dust" } }];
    throw new ConnectError("no such book: 50% of ü", Code.NotFound, { "x-why": "lost" }, details);
  },
  "books/plain-error": () => {
    throw new ConnectError("", Code.ResourceExhausted);
  },
  "books/bug": () => {
    throw new TypeError("secret");
  },
  "books/text": () => {
    throw "secret";
  },
  "books/internal": () => {
    throw new ConnectError("the shelf fell", Code.Internal);
  },
  "books/wrapped": () => {
    throw ConnectError.from(new Error("told on purpose"), Code.DataLoss);
  },
  "books/invalid": () => ({ name: "books/invalid", pages: 1.5 }),
  "books/headers": ({ requestHeader, responseHeader, responseTrailer }) => {
    responseHeader.set("x-asked", requestHeader.get("x-ask") ?? "");
    responseHeader.append("x-many", "1");
    responseHeader.append("x-many", "2");
    responseHeader.append("set-cookie", "a=1");
    responseHeader.append("set-cookie", "b=2");
    responseTrailer.set("x-trailer", "t");
    return {};
  },
  "books/failing-headers": ({ responseHeader, responseTrailer }) => {
    responseHeader.set("x-header", "h");
    responseTrailer.set("x-trailer", "t");
    throw new ConnectError("no", Code.FailedPrecondition, { "x-meta": "m" });
  },
  "books/context": ({ service, method, requestMethod, protocolName, url, signal, timeoutMs }) => ({
    title: [
      ...[service.typeName, method.name, requestMethod, protocolName, new URL(url, "http://any").pathname],
      ...[signal.aborted, typeof (timeoutMs() ?? 0)],
    ].join(" "),
  }),
  "books/reviewed": () => ({ extra: anyPack(ReviewSchema, create(ReviewSchema, { stars: 9_007_199_254_740_993n })) }),
  "books/slow": async ({ signal }) => {
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    throw signal.reason;
  },
};

/** The implementation, of which tests may replace methods. */
export class Library implements Required<ServiceImpl<typeof LibraryService>> {
  readonly #shelf = new Map<string, Book>();

  /** The reasons of signals that aborted while a handler waited. */
  readonly ended: unknown[] = [];

  async getBook({ name }: { name: string }, context: HandlerContext): Promise<BookInit | Book> {
    context.signal.addEventListener("abort", () => this.ended.push(context.signal.reason), { once: true });
    const response = await responses[name]?.(context);
    if (response !== undefined) return { name, ...response };
    const book = this.#shelf.get(name);
    if (book !== undefined) return book;
    // What a synchronous transaction could not wait for.
    await sleep(2);
    const extra = anyPack(BindingSchema, create(BindingSchema, { material: "linen" }));
    return { title: `The ${name}`, publishTime: PUBLISH_TIME, extra, pages: 0, name };
  }

  createBook({ book }: { book?: Book | undefined }) {
    if (book === undefined) throw new ConnectError("no book", Code.InvalidArgument);
    this.#shelf.set(book.name, book);
    return book;
  }

  deleteBook({ name }: { name: string }) {
    this.#shelf.delete(name);
    return {};
  }

  async *listBooks(
    { group, count }: { group: string; count: number },
    { responseHeader, responseTrailer }: HandlerContext,
  ): AsyncGenerator<BookInit> {
    responseHeader.set("x-header", "h");
    responseTrailer.set("x-trailer", "t");
    for (let n = 1; n <= Math.abs(count); n++) {
      await sleep(1);
      yield { name: `books/${n}`, publishTime: timestampFromMs(n), location: { case: "group", value: group } as const };
    }
    if (count < 0) throw new ConnectError("torn", Code.DataLoss, undefined, [{ desc: BindingSchema, value: {} }]);
    if (group === "bug") throw new TypeError("secret");
  }

  async returnBooks(books: AsyncIterable<Book>, { responseTrailer }: HandlerContext) {
    responseTrailer.set("x-trailer", "t");
    let count = 0;
    for await (const { name } of books) {
      if (name === "") throw new ConnectError("a book without a name", Code.InvalidArgument);
      count++;
    }
    return { count };
  }

  async *ask(questions: AsyncIterable<{ text: string }>) {
    for await (const { text } of questions) {
      if (text === "why?") throw new RangeError("secret");
      yield { text: `${text}!` };
    }
  }
}

/** Serves the library alone, by connect-node: what a mounted one must equal. */
export async function startReference(impl: Library, options: ConnectRouterOptions) {
  const routes = (router: ConnectRouter) => void router.service(LibraryService, impl);
  const server = createServer({}, connectNodeAdapter({ routes, ...options }));
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      for (const session of sessions) session.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
