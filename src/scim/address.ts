// The addresses of the endpoint: the base URL of a provider's directory, and the resources below it.
import { isUidp, parentOf } from "../kernel/uidp.js";

/** What a request is about. */
export interface Address {
  readonly providerUid: string;
  /** The segments below the base URL, such as `Users` and the id of a person. */
  readonly segments: readonly string[];
}

/**
 * Parses the path below that of all directories, as it was sent. The slash in the uid of the provider may be escaped, and the path may
 * end in a slash.
 *
 * @returns undefined where it names no provider
 */
export function parseAddress(rest: string): Address | undefined {
  let path: string;
  try {
    path = decodeURIComponent(rest);
  } catch {
    return undefined;
  }
  const [root = "", own = "", ...segments] = path.replace(/\/$/, "").split("/");
  const providerUid = `${root}/${own}`;
  return isUidp(providerUid) && parentOf(providerUid) === root ? { providerUid, segments } : undefined;
}
