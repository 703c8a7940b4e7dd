import type { Expected } from "./expectations.js";
import type { MethodName, RestRequest } from "./wire.js";
import type { CallerName } from "./world.js";

/** One call and what it comes to on every protocol. */
export interface MatrixCase {
  readonly name: string;
  readonly method: MethodName;
  /** The owner of `<org>` unless said otherwise. */
  readonly as?: CallerName;
  /** An init object of the request; placeholders stand for uids, see `World`. */
  readonly request: object;
  readonly expect: Expected;
  /** Where REST says the same in another way, or, as "none", cannot say it at all. */
  readonly rest?: RestRequest | "none";
  /** What it comes to over REST, where that differs by the nature of REST. */
  readonly expectRest?: Expected;
  /** Why it is another call over REST, or comes to something else. */
  readonly why?: string;
  /** The HTTP status over REST, where the code alone does not tell it. */
  readonly status?: number;
}
