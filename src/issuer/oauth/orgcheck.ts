import type { WebHandler } from "../../kernel/web.js";
import type { LoginDeps } from "./deps.js";
import { providersOfVerified } from "./provider-selection.js";

/**
 * `GET /orgcheck?name=`: whether people of an organisation can sign in by its name: `true` when one
 * verified organisation has that name and an identity provider. Everything else looks alike: `false`.
 */
export function orgCheck({ store }: Pick<LoginDeps, "store">): WebHandler {
  return async ({ query }) => {
    const providers = await store.read((tx) => providersOfVerified(tx, query.get("name") ?? "", 1));
    return {
      status: 200,
      headers: { "content-type": "application/json", "cache-control": "no-store" },
      body: String(providers.length > 0),
    };
  };
}
