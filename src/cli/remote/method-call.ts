// What a command calls the service with.
import type { DescMethodUnary, JsonObject, Message } from "@bufbuild/protobuf";

/** Calls a method; the response is the JSON of REST. */
export type MethodCall = (method: DescMethodUnary, request: Message) => Promise<JsonObject>;
