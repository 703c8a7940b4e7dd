// The token by which the service itself reads the registry.
import type { KeyRing } from "../../issuer/keys/key-ring.js";
import type { Clock } from "../../kernel/clock.js";
import type { Ids } from "../../kernel/ids.js";
import type { Access } from "./grant.js";
import type { RegistryClientOptions } from "./registry-client.js";
import { signRegistryToken } from "./registry-token.js";

/** What {@link internalTokens} needs. */
export interface InternalTokenDeps {
  readonly keys: Pick<KeyRing, "registrySigning">;
  readonly clock: Clock;
  readonly ids: Ids;
  /** The issuer the registry trusts, asked each time: it may be known late. */
  readonly issuer: () => string;
  /** What the registry calls itself. */
  readonly service: string;
}

/** Makes tokens for the service's own reading of the registry. They are never given to anybody. */
export function internalTokens(deps: InternalTokenDeps): RegistryClientOptions["token"] {
  const { keys, clock, ids, issuer, service } = deps;
  return (access) =>
    signRegistryToken(
      {
        issuer: issuer(),
        service,
        subject: "arbor",
        // The type of the claim is what callers may be granted, and the catalog is not.
        access: [access as Access],
        tokenId: ids.newId(),
        issuedAt: Math.floor(clock() / 1000),
      },
      keys.registrySigning(),
    );
}
