import type { Ids } from "../kernel/ids.js";
import type { PageTokens } from "../kernel/page-token.js";

/** What the handlers of the registry's services need besides the call. */
export interface RegistryDeps {
  readonly tokens: PageTokens;
  readonly ids: Ids;
}
