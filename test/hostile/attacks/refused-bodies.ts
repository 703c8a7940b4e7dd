// Calls that are refused before their body of 5 MB has ended, over gRPC: each
// caller is told why, and soon.
import * as grpc from "@grpc/grpc-js";
import { type Attack, Counts, pick, repeat } from "../support/attack.js";
import { openGrpc } from "../support/grpc.js";

const SERVICE = "/chainguard.platform.iam.v2beta1.GroupsService";
const BODY = Buffer.alloc(5 * 1024 * 1024, 0x0a);
const TIMEOUT_MS = 8_000;

interface RejectedCall {
  readonly name: string;
  readonly path: string;
  readonly token: boolean;
  readonly codes: readonly grpc.status[];
}

const { UNAUTHENTICATED, UNIMPLEMENTED, RESOURCE_EXHAUSTED } = grpc.status;
/** What is refused, and the codes that may say why. */
export const REFUSED: readonly RejectedCall[] = [
  { name: "no token", path: `${SERVICE}/CreateGroup`, token: false, codes: [UNAUTHENTICATED] },
  { name: "no such method", path: `${SERVICE}/NoSuchMethod`, token: true, codes: [UNIMPLEMENTED] },
  { name: "too large", path: `${SERVICE}/CreateGroup`, token: true, codes: [RESOURCE_EXHAUSTED] },
  { name: "too large and public", path: "/grpc.health.v1.Health/Check", token: false, codes: [RESOURCE_EXHAUSTED] },
];

export const attack: Attack = {
  async run({ url, addresses, token }, stop) {
    const counts = new Counts();
    const connections = addresses.map((address) => openGrpc(url, address));
    const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
    await repeat({ ms: 100, width: 2, limit: 1_000, stop }, async (n) => {
      const refused = pick(REFUSED, n >> 1);
      const bearer = refused.token ? token : undefined;
      const status =
        n % 2 === 0
          ? await rejectWithGrpcJs(client, refused.path, bearer)
          : await pick(connections, n)
              .call({ path: refused.path, token: bearer, message: BODY, timeoutMs: TIMEOUT_MS })
              .then(
                (response) => response.status ?? "none",
                (error: Error) => error.message,
              );
      if (stop.aborted) return;
      counts.add(`${refused.name}: ${status}`);
      if (!refused.codes.some((code) => String(code) === status)) {
        counts.problem(`${refused.name}: ${status} ${n % 2 === 0 ? "(grpc-js)" : ""}`);
      }
    });
    client.close();
    for (const connection of connections) connection.close();
    return counts;
  },
};

/** Calls with a body of 5 MB; resolves with the code as text. */
export function rejectWithGrpcJs(client: grpc.Client, path: string, token: string | undefined): Promise<string> {
  const metadata = new grpc.Metadata();
  if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
  const same = (bytes: Buffer) => bytes;
  return new Promise((resolve) => {
    const options = { deadline: Date.now() + TIMEOUT_MS };
    client.makeUnaryRequest(path, same, same, BODY, metadata, options, (error) => resolve(String(error?.code ?? 0)));
  });
}
