// Who may call a mounted service, and what it learns of its caller, over every protocol.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { principalKey } from "../../../src/pipeline/mount-options.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { Library } from "../../support/library/library.js";
import { BookSchema, LibraryService } from "../../support/library/library_pb.js";
import { mountLibrary } from "../../support/library/mounted.js";

const listsGroups = [Capability.CAP_IAM_GROUPS_LIST] as const;

/** A library that tells who calls. */
class Telling extends Library {
  override async getBook({ name }: { name: string }, { values }: HandlerContext) {
    return { name, title: values.get(principalKey)?.identityUid ?? "nobody" };
  }

  override async returnBooks(_books: AsyncIterable<unknown>, { values }: HandlerContext) {
    return { count: values.get(principalKey) === undefined ? 0 : 1 };
  }
}

interface Calls {
  get(): Promise<string>;
  create(book: JsonObject): Promise<string>;
  list(group: string): Promise<number>;
}

type Headers = Readonly<Record<string, string>>;

function rpcCalls(makeTransport: typeof createGrpcTransport) {
  return (baseUrl: string, headers: Headers): Calls => {
    const bearer: Interceptor = (next) => (request) => {
      for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
      return next(request);
    };
    const client = createClient(LibraryService, makeTransport({ baseUrl, interceptors: [bearer] }));
    return {
      get: async () => (await client.getBook({ name: "books/a" })).title,
      create: async (book) => (await client.createBook({ book: fromJson(BookSchema, book) })).name,
      async list(group) {
        let count = 0;
        for await (const _ of client.listBooks({ group, count: 2 })) count++;
        return count;
      },
    };
  };
}

function restCalls(baseUrl: string, headers: Headers): Calls {
  const send = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(baseUrl + path, {
      ...init,
      headers: { ...headers, "content-type": "application/json" },
    });
    const text = await response.text();
    if (response.ok) return text;
    const { code, message } = JSON.parse(text) as { code: Code; message: string };
    throw new ConnectError(message, code);
  };
  return {
    get: async () => JSON.parse(await send("/library/v1/books/a")).title,
    create: async (book) =>
      JSON.parse(await send("/library/v1/books", { method: "POST", body: JSON.stringify(book) })).name,
    list: async (group) => (await send(`/library/v1/groups/${group}/books?count=2`)).trim().split("\n").length,
  };
}

const protocols: Readonly<Record<string, (baseUrl: string, headers: Headers) => Calls>> = {
  grpc: rpcCalls(createGrpcTransport),
  "grpc-web": rpcCalls((options) => createGrpcWebTransport({ ...options, httpVersion: "2" })),
  connect: rpcCalls((options) => createConnectTransport({ ...options, httpVersion: "2" })),
  "JSON over HTTP": restCalls,
};

describe("a mounted service that is not for everybody", () => {
  let service: Harness;
  let group: string;
  let child: string;
  let other: string;
  let viewer: { uid: string; token: string };
  let stranger: { uid: string; token: string };

  before(async () => {
    const access = {
      getBook: "authenticated",
      createBook: { capabilities: listsGroups, scope: "book.group" },
      deleteBook: { capabilities: [Capability.CAP_IAM_GROUPS_DELETE], scope: "name" },
      listBooks: { capabilities: listsGroups, scope: "group" },
      returnBooks: "authenticated",
      ask: "public",
    } as const;
    service = await startHarness({}, { mounts: [mountLibrary(new Telling(), { access })] });
    ({ group } = await service.organisation("acme.example"));
    ({ group: other } = await service.organisation("other.example"));
    viewer = await service.identity({}, group);
    stranger = await service.identity({}, group);
    child = `${group}/${"0123456789abcdef".repeat(2)}`.slice(0, group.length + 17);
    await service.bind(viewer.uid, "viewer", group);
  });
  after(() => service?.stop());

  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const codeOf = (call: Promise<unknown>) =>
    call.then(
      () => undefined,
      (error: unknown) => Code[ConnectError.from(error).code],
    );

  for (const [protocol, callsAs] of Object.entries(protocols)) {
    test(`${protocol}: nobody without a token`, async () => {
      const calls = callsAs(service.url, {});
      const codes = [calls.get(), calls.create({ group }), calls.list(group)].map(codeOf);
      assert.deepEqual(await Promise.all(codes), Array(3).fill("Unauthenticated"));
      assert.equal(await codeOf(callsAs(service.url, bearer(`${viewer.token}x`)).get()), "Unauthenticated");
    });

    test(`${protocol}: the handler learns who calls`, async () => {
      assert.equal(await callsAs(service.url, bearer(stranger.token)).get(), stranger.uid);
    });

    test(`${protocol}: capabilities at a group that a field names, or above it`, async () => {
      const calls = callsAs(service.url, bearer(viewer.token));
      assert.equal(await calls.create({ name: "books/new", group }), "books/new");
      assert.equal(await calls.list(group), 2);
      assert.equal(await calls.list(child), 2);
      const codes = [
        calls.create({ group: other }),
        calls.list(other),
        calls.create({}),
        calls.create({ shelf: { group } }),
        calls.create({ group: "no uid" }),
        callsAs(service.url, bearer(stranger.token)).list(group),
      ];
      assert.deepEqual(await Promise.all(codes.map(codeOf)), [
        ...["PermissionDenied", "PermissionDenied", "InvalidArgument", "InvalidArgument", "InvalidArgument"],
        "PermissionDenied",
      ]);
    });

    test(`${protocol}: a token that was revoked`, async () => {
      const leaver = await service.identity({}, group);
      const calls = callsAs(service.url, bearer(leaver.token));
      assert.equal(await calls.get(), leaver.uid);
      await service.app.installation.store.write((tx) => tx.table(identityKind).delete(leaver.uid));
      assert.equal(await codeOf(calls.get()), "Unauthenticated");
    });
  }

  test("a stream of requests is rejected before it is read, and knows its caller", async () => {
    const call = (headers: Headers) => {
      const client = createClient(LibraryService, createGrpcTransport({ baseUrl: service.url }));
      async function* books() {
        yield { name: "books/a" };
      }
      return client.returnBooks(books(), { headers });
    };
    assert.equal(await codeOf(call({})), "Unauthenticated");
    assert.equal((await call(bearer(viewer.token))).count, 1);
  });

  test("the OpenAPI document says what its methods need", async () => {
    const document = await (await fetch(`${service.url}/openapi.json`)).json();
    const { paths } = document as { paths: Record<string, Record<string, { description?: string; security?: [] }>> };
    const { description, security } = paths["/library/v1/books"]?.post ?? {};
    assert.match(description ?? "", /groups\.list/);
    assert.equal(security, undefined);
  });

  test("a public method asks nothing of the store, whatever token is sent", async () => {
    const { store } = service.app.installation;
    let reads = 0;
    const read = store.read;
    store.read = ((...args: Parameters<typeof read>) => {
      // Calls have a deadline; what runs beside them has none.
      if (args[1]?.deadlineMs !== undefined) reads++;
      return read.apply(store, args);
    }) as typeof read;
    try {
      const client = createClient(LibraryService, createGrpcTransport({ baseUrl: service.url }));
      async function* questions() {
        yield { text: "a" };
      }
      for await (const { text } of client.ask(questions(), { headers: bearer("no token") })) assert.equal(text, "a!");
      assert.equal(reads, 0);
      await codeOf(rpcCalls(createGrpcTransport)(service.url, bearer(viewer.token)).get());
      assert.equal(reads, 1);
    } finally {
      store.read = read;
    }
  });
});

test("a handler runs outside of transactions: it may call the service that it is mounted in", async () => {
  let url = "";
  class Calling extends Library {
    override async getBook({ name }: { name: string }, { requestHeader }: HandlerContext) {
      const headers = { authorization: requestHeader.get("authorization") ?? "" };
      const groups = createClient(GroupsService, createGrpcTransport({ baseUrl: url }));
      const { uid } = await groups.createGroup({ parent: name, group: { name: "made by a handler" } }, { headers });
      return { name: uid };
    }
  }
  const access = { capabilities: listsGroups, scope: "name" } as const;
  const getOnly = { getBook: access, createBook: "public", deleteBook: "public", listBooks: "public" } as const;
  const mounted = mountLibrary(new Calling(), { access: { ...getOnly, returnBooks: "public", ask: "public" } });
  const service = await startHarness({}, { mounts: [mounted] });
  try {
    url = service.url;
    const { group, token } = await service.organisation("acme.example");
    const library = createClient(LibraryService, createGrpcTransport({ baseUrl: url }));
    const { name } = await library.getBook({ name: group }, { headers: { authorization: `Bearer ${token}` } });
    assert.ok(name.startsWith(`${group}/`), name);
  } finally {
    await service.stop();
  }
});
