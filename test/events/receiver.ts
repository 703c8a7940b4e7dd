// A sink: an https server that reads events with the SDK of CloudEvents and verifies their tokens with jose and what
// discovery says, and knows nothing else of the service.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { type CloudEventV1, HTTP } from "cloudevents";
import { createRemoteJWKSet, type JWTVerifyGetKey, jwtVerify } from "jose";
import { TLS_FILES } from "../support/tls-files.js";
import { waitUntil } from "../support/wait-until.js";

/** The authority of receivers, for `--sink-ca`. */
export const RECEIVER_CA = fileURLToPath(new URL("cert.pem", TLS_FILES));

/** The settings of a service that delivers to receivers. */
export const RECEIVER_SETTINGS = { trustedSinks: "127.0.0.0/8", sinkCa: RECEIVER_CA };

/** One request to a receiver. */
export interface Received {
  readonly event: CloudEventV1<{ actor: { subject: string; act: object }; body: Record<string, unknown> }>;
  readonly headers: IncomingHttpHeaders;
  readonly token: string;
  readonly data: Buffer;
  readonly path: string;
  readonly port: number | undefined;
  readonly atMs: number;
  readonly status: number;
}

/** What a receiver answers: a status, or what it does with the response. */
export type Answer = number | ((response: ServerResponse, request: IncomingMessage) => void);

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Starts a receiver that accepts everything, unless `answer` says otherwise. */
export async function startReceiver(
  answer: (received: Omit<Received, "status">) => Answer | Promise<Answer> = () => 200,
) {
  const received: Received[] = [];
  let connections = 0;
  const read = (name: string) => readFileSync(new URL(name, TLS_FILES));
  const server = createServer({ key: read("key.pem"), cert: read("cert.pem") }, async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const data = Buffer.concat(chunks);
    const event = HTTP.toEvent({ headers: request.headers, body: data.toString() }) as Received["event"];
    const one = {
      ...{ event, data, headers: request.headers, path: request.url ?? "", port: request.socket.remotePort },
      ...{ token: request.headers.authorization?.replace(/^Bearer /, "") ?? "", atMs: Date.now() },
    };
    const answered = await answer(one);
    received.push({ ...one, status: typeof answered === "number" ? answered : 0 });
    if (typeof answered === "number") response.writeHead(answered).end();
    else answered(response, request);
  });
  server.on("connection", () => connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}/hook`,
    received,
    connections: () => connections,
    /** Resolves when as many events were accepted. */
    async accepted(count: number, ms = 15_000): Promise<readonly Received[]> {
      const find = () => received.filter(({ status }) => status >= 200 && status < 300);
      await waitUntil(() => find().length >= count, ms);
      return find();
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Verifies tokens as a published receiver does: with the keys that discovery of the issuer names. */
export async function createVerifier(issuer: string) {
  const discovery = (await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()) as {
    readonly issuer: string;
    readonly jwks_uri: string;
    readonly id_token_signing_alg_values_supported: string[];
  };
  const keys: JWTVerifyGetKey = createRemoteJWKSet(new URL(discovery.jwks_uri));
  return async (group: string, { token, data }: Pick<Received, "token" | "data">) => {
    const { payload } = await jwtVerify(token, keys, {
      issuer: discovery.issuer,
      audience: "customer",
      subject: `webhook:${group}`,
      algorithms: discovery.id_token_signing_alg_values_supported,
    });
    const digest = `sha256:${createHash("sha256").update(data).digest("hex")}`;
    if ((payload.webhook as { digest?: string } | undefined)?.digest !== digest) throw new Error("another body");
    return payload;
  };
}
