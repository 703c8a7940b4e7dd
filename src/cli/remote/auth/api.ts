// Which service the login commands speak to, and whether credentials may go there.
import { assertMayCarryToken, serviceUrl } from "../../../client/secure-url.js";
import { invalidArgument } from "../../../kernel/errors.js";
import { DEFAULT_API } from "../default-api.js";

/** The flag that says where the service is. */
export interface ApiFlags {
  /** `--api`, before `ARBOR_API`. */
  readonly api?: string;
}

/**
 * The service that a command is for, as credentials are filed under it.
 *
 * @throws ApiError INVALID_ARGUMENT for an address that is none, or that no credentials may be sent to
 */
export function apiOf({ api }: ApiFlags): string {
  const field = api === undefined ? "ARBOR_API" : "--api";
  try {
    return apiBase(api ?? (process.env.ARBOR_API || DEFAULT_API), field);
  } catch (error) {
    if (error instanceof TypeError) throw invalidArgument({ field, description: error.message });
    throw error;
  }
}

/**
 * The one spelling of a service's address: its origin, and the path before its methods if it has one.
 *
 * @param name what the address is, for the error's text
 * @throws TypeError for an address that is none, or that no credentials may be sent to
 */
export function apiBase(value: string, name: string): string {
  const url = serviceUrl(value, name);
  assertMayCarryToken(url, name);
  return url.origin + url.pathname.replace(/\/+$/, "");
}
