// Any method of any service over REST and over gRPC alike, with typed messages.
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromJson,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { type RawResponse, rawGrpc, rawRest } from "../../contract/iam-clients.js";

/** The protocols. */
export const wireNames = ["REST", "gRPC"] as const;

/** A client of one protocol. */
export interface Wire {
  /** Everything that was ever answered, head and body. */
  readonly heard: string;
  /** The response; throws Error with the error of a call that must fail. The caller is the owner unless given. */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    token?: string,
  ): Promise<MessageShape<O>>;
  /** The text of the error that a call ends in; throws Error if it succeeds. */
  expectError<I extends DescMessage>(
    method: DescMethodUnary<I>,
    request: MessageInitShape<I>,
    token?: string,
  ): Promise<string>;
  close(): void;
}

/** Connects by a protocol, as the bearer of `owner`. */
export function wireOf(name: (typeof wireNames)[number], url: string, owner: string): Wire {
  const client = { REST: rawRest, gRPC: rawGrpc }[name](url);
  let heard = "";
  const send = async <I extends DescMessage>(
    method: DescMethodUnary<I>,
    request: MessageInitShape<I>,
    token = owner,
  ): Promise<RawResponse> => {
    const response = await client.call(method, create<DescMessage>(method.input, request), token);
    heard += response.bytes;
    return response;
  };
  return {
    get heard() {
      return heard;
    },
    async call(method, request, token) {
      const { code, bytes, message, json } = await send(method, request, token);
      if (code !== "OK") throw new Error(bytes);
      return (message ?? fromJson(method.output, json ?? {})) as MessageShape<typeof method.output>;
    },
    async expectError(method, request, token) {
      const { code, bytes, json } = await send(method, request, token);
      if (code === "OK") throw new Error(`not failed: ${bytes}`);
      return json ? String(json.message) : (bytes.split("\n")[0] ?? "").replace(/^\d+ /, "");
    },
    close: () => client.close(),
  };
}
