// The redirect URI of an identity provider, which is no field of it: it follows
// from the uid and from how the service is called.
import type { JsonObject } from "@bufbuild/protobuf";
import { buildCallbackPath } from "../../../kernel/web.js";
import { type ApiFlags, apiOf } from "../auth/api.js";
import { askService } from "../auth/service.js";

/** What to register at the provider, given the resource as JSON; empty for one without a uid. */
export type RedirectUris = (provider: JsonObject) => string;

/**
 * Asks the service how it is called.
 *
 * @returns undefined when it does not say. What was asked for is shown all the same, without redirect URIs.
 */
export async function redirectUrisAt(flags: ApiFlags): Promise<RedirectUris | undefined> {
  try {
    const path = "/.well-known/openid-configuration";
    const { issuer } = await askService({ method: "GET", api: apiOf(flags), path });
    if (typeof issuer !== "string") return undefined;
    return ({ uid }) => (typeof uid === "string" && uid !== "" ? `${issuer}${buildCallbackPath(uid)}` : "");
  } catch {
    return undefined;
  }
}
