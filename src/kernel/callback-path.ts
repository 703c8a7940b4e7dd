// Where login providers send browsers back to. Each has a path of its own (RFC
// 9700, section 4.4.2.2): an answer that comes to another's path is of another
// provider, whatever that one says of itself.

/** The path of an operator's only login provider, and what the paths of all others begin with. */
export const CALLBACK = "/oauth/callback";

/**
 * The path that a provider sends browsers back to.
 *
 * @param id the uid of an organisation's identity provider, whose slashes stay as they are, or the name of
 * a login provider of the service. No name is a uid, since names have no slash.
 */
export function callbackPathOf(id: string): string {
  return `${CALLBACK}/${id}`;
}
