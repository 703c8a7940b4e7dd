// A call and its outcome, in the form that all clients of the matrix share.
import type { JsonValue } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";

/** The methods of GroupsService, and one that it does not have. */
export type MethodName =
  | "GetGroup"
  | "ListGroups"
  | "CreateGroup"
  | "UpdateGroup"
  | "DeleteGroup"
  | "LookupGroup"
  | "RequestGroupAccess"
  | "CheckEligibility"
  | "MergeGroups";

/** A request over REST. */
export interface RestRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly body?: object;
}

/** A call; `request` is an init object of the request message with field masks as `{ paths }`. */
export interface GroupsCall {
  readonly method: MethodName;
  readonly request: object;
  readonly token: string | undefined;
  /** What to send over REST where that does not follow from method and request. */
  readonly rest?: RestRequest | undefined;
}

/** What a call came to. */
export type Outcome =
  | { readonly code: "OK"; readonly result: JsonValue }
  | { readonly code: string; readonly message: string; readonly details: readonly JsonValue[] };

/** A client of one protocol. */
export interface WireClient {
  readonly name: string;
  /** Whether errors name fields as the proto does, and not as its JSON. */
  readonly namesProtoFields: boolean;
  call(call: GroupsCall): Promise<Outcome>;
  close(): void;
}

/** The name of a status code as gRPC writes it, such as `NOT_FOUND`. */
export function codeName(code: number): string {
  return (Code[code] ?? String(code)).replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
