// A service that answers as told, over real HTTP/2: for what the real one only
// does on bad days.
import { readFileSync } from "node:fs";
import { createSecureServer, createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { GroupSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { Health, HealthCheckResponseSchema } from "#gen/health/v1/health_pb.js";

/** One call as the service saw it. */
export interface SeenCall {
  readonly method: string;
  readonly authorization: string | null;
  /** The grpc-timeout in milliseconds; undefined without one. */
  readonly timeoutMs: number | undefined;
}

/** What a call is answered with; nothing is success. */
export type Answer = Code | ConnectError | "hang" | "cut" | undefined;

/** A running service. */
export interface FlakyService {
  readonly url: string;
  readonly calls: readonly SeenCall[];
  /** How many connections were made so far. */
  readonly connections: number;
  stop(): Promise<void>;
}

const tlsFolder = new URL("../support/tls/", import.meta.url);

/** The certificate that secure services show, valid for localhost and 127.0.0.1. */
export const CERTIFICATE = readFileSync(new URL("cert.pem", tlsFolder));

/**
 * Starts one, until the test ends.
 *
 * @param response decides by the call and its number, counted from 0
 */
export async function startFlaky(
  test: Pick<TestContext, "after">,
  response: (call: SeenCall, index: number) => Answer,
  { tls = false } = {},
): Promise<FlakyService> {
  const calls: SeenCall[] = [];
  const sessions = new Set<ServerHttp2Session>();
  let connections = 0;

  async function decide(context: HandlerContext): Promise<void> {
    const { requestHeader } = context;
    const timeout = requestHeader.get("grpc-timeout");
    const call = {
      method: context.method.name,
      authorization: requestHeader.get("authorization"),
      timeoutMs: timeout === null ? undefined : Number.parseInt(timeout, 10),
    };
    calls.push(call);
    const verdict = response(call, calls.length - 1);
    if (verdict === undefined) return;
    if (verdict instanceof ConnectError) throw verdict;
    if (typeof verdict === "number") throw new ConnectError(`answered ${Code[verdict]}`, verdict);
    if (verdict === "cut") for (const session of sessions) session.destroy();
    await new Promise((_, reject) => context.signal.addEventListener("abort", () => reject(context.signal.reason)));
  }
  const routes = (router: ConnectRouter) => {
    const group = async ({ uid }: { uid: string }, context: HandlerContext) => {
      await decide(context);
      return create(GroupSchema, { uid });
    };
    router.service(GroupsService, {
      getGroup: group,
      createGroup: ({ parent }, context) => group({ uid: parent }, context),
      updateGroup: (request, context) => group({ uid: request.group?.uid ?? "" }, context),
      async deleteGroup(_, context) {
        await decide(context);
        return create(EmptySchema);
      },
    });
    router.service(Health, {
      async *watch(_, context) {
        await decide(context);
        yield create(HealthCheckResponseSchema, { status: 1 });
      },
    });
  };
  const handler = connectNodeAdapter({ routes, requireConnectProtocolHeader: false });
  const server: Http2Server = tls
    ? createSecureServer({ cert: CERTIFICATE, key: readFileSync(new URL("key.pem", tlsFolder)) }, handler)
    : createServer(handler);
  server.on("session", (session) => {
    connections++;
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const session of sessions) session.destroy();
    await closed;
  };
  test.after(stop);
  return {
    url: `${tls ? "https" : "http"}://127.0.0.1:${port}`,
    calls,
    get connections() {
      return connections;
    },
    stop,
  };
}

/** An UNAVAILABLE that asks to wait. */
export function unavailableFor(ms: number): ConnectError {
  const retryDelay = { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
  return new ConnectError("busy", Code.Unavailable, undefined, [{ desc: RetryInfoSchema, value: { retryDelay } }]);
}
