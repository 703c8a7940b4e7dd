import type { Ids } from "../kernel/ids.js";
import type { PageTokens } from "../kernel/page-token.js";

/** What the handlers of the domain need besides the call. */
export interface IamDeps {
  readonly tokens: PageTokens;
  readonly ids: Ids;
  /** Origins of issuers that may be http. */
  readonly trustedIssuers: readonly string[];
  /** Encrypts a secret for storage; it opens only with the same context. */
  readonly seal: (secret: Buffer, context: string) => string;
}
