// What a command calls the service with, and how it reads lists.
import type { DescMethodUnary, JsonObject, Message } from "@bufbuild/protobuf";

/** Calls a method; the response is the JSON of REST. */
export type MethodCall = (method: DescMethodUnary, request: Message) => Promise<JsonObject>;

/** A request of a list. */
type ListRequest = Message & { pageToken?: string };

/** Reads all pages of a list from that of `request` on, in which it sets the page tokens. */
export async function* readPages(
  call: MethodCall,
  method: DescMethodUnary,
  request: ListRequest,
): AsyncGenerator<JsonObject> {
  do {
    const response = await call(method, request);
    yield response;
    const { nextPageToken } = response;
    request.pageToken = typeof nextPageToken === "string" ? nextPageToken : "";
  } while (request.pageToken !== "");
}

/** Reads the rows of all pages of a list, whose response has one repeated field. */
export async function* readRows(
  call: MethodCall,
  method: DescMethodUnary,
  request: ListRequest,
): AsyncGenerator<JsonObject> {
  for await (const response of readPages(call, method, request)) yield* readRowsOf(response);
}

/** The rows of the response of a list, which has one repeated field. */
export function readRowsOf(response: JsonObject): JsonObject[] {
  return Object.values(response).flatMap((rows) => (Array.isArray(rows) ? (rows as JsonObject[]) : []));
}
