import type { ApiError } from "../../kernel/errors.js";

/**
 * An error whose HTTP status says more than its code does, such as 413 for RESOURCE_EXHAUSTED that
 * is about one body, or that comes with headers of its own.
 */
export class HttpFault extends Error {
  readonly error: ApiError;
  /** The HTTP status to answer with. */
  readonly status: number;
  /** Headers for the answer, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, error: ApiError, headers: Readonly<Record<string, string>> = {}) {
    super(error.message);
    this.name = "HttpFault";
    this.status = status;
    this.error = error;
    this.headers = headers;
  }
}
