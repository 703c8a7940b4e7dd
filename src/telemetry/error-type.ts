// What traces say of an error: its code or its class, never its text, which may quote a request.
import { codeNames } from "./request-record.js";

/** The codes that are the fault of a server, by OpenTelemetry's conventions for gRPC. */
const SERVER_FAULTS: ReadonlySet<unknown> = new Set([2, 4, 12, 13, 14, 15]);

/** The `error.type` of an error: its gRPC code, the code of a socket or database error, or its class. */
export function errorTypeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  const type = typeof code === "number" ? codeNames[code] : (code ?? name);
  return typeof type === "string" && /^\w{1,40}$/.test(type) ? type : "_OTHER";
}

/** Whether an error is a failure of the operation. Others, such as NOT_FOUND, are an answer to its caller. */
export function isServerFault(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code !== "number" || SERVER_FAULTS.has(code);
}
