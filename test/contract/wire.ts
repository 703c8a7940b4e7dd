// The names of status codes.
import { Code } from "@connectrpc/connect";

/** The name of a status code as gRPC writes it, such as `NOT_FOUND`. */
export function codeName(code: number): string {
  return (Code[code] ?? String(code)).replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
