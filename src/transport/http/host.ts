// Checks the authority of a request before anything else reads the request: URL parsers in libraries throw on a
// malformed one, outside of any handler.

const SHAPE = /^(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._~-]{1,255})(?::[0-9]{1,5})?$/;

/** The rule that the Host of a request breaks, as text for the caller; undefined when it is valid. */
export type HostFault = string | undefined;

/** Checks of the authority of requests (RFC 9110 section 7.2, RFC 9113 section 8.3.1). */
export type HostCheck = ReturnType<typeof createHostCheck>;

/** Creates the check. Up to `cacheEntries` valid values are cached, so that most requests need one lookup. */
export function createHostCheck(cacheEntries: number) {
  const valid = new Set<string>();

  function fault(value: string): HostFault {
    if (valid.has(value)) return undefined;
    if (!SHAPE.test(value) || !URL.canParse(`http://${value}/`))
      return "host must be a valid host name with an optional port";
    if (valid.size < cacheEntries) valid.add(value);
    return undefined;
  }

  return {
    /**
     * Checks a request of HTTP/1.x with `count` Host headers, the first of which is `host`. HTTP/1.0 need not send one
     * (RFC 9112, section 3.2).
     */
    http1(host: string | undefined, count: number, minorVersion: number): HostFault {
      if (count === 0 && minorVersion === 0) return undefined;
      if (count !== 1 || host === undefined) return "exactly one host header is required";
      return fault(host);
    },
    /** Checks a request of HTTP/2: its `:authority` and, if there is one, its Host header. */
    http2(authority: string | undefined, host: string | undefined, hostCount: number): HostFault {
      if (host === undefined) return authority === undefined ? "an authority is required" : fault(authority);
      if (hostCount > 1) return "at most one host header is allowed";
      if (authority !== undefined && authority.toLowerCase() !== host.toLowerCase()) {
        return "host and :authority must agree";
      }
      return fault(authority ?? host);
    },
  };
}

/** How often each field that must not be repeated occurs in a request. */
export interface FieldCounts {
  host: number;
  authorization: number;
}

/**
 * Counts Host and Authorization in raw header lines (name, value, name, value, …). Node keeps only the first of each,
 * and a proxy in front may have used another one.
 */
export function countFields(rawHeaders: readonly string[], into: FieldCounts): void {
  into.host = 0;
  into.authorization = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name === undefined) continue;
    if (name.length === 4) {
      if (name === "host" || name.toLowerCase() === "host") into.host++;
    } else if (name.length === 13) {
      if (name === "authorization" || name.toLowerCase() === "authorization") into.authorization++;
    }
  }
}

/**
 * Combines the values of a repeated field, joined by ", ". The result is no valid credential, so authentication fails.
 */
export function combineField(rawHeaders: readonly string[], field: string): string {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === field) values.push(rawHeaders[i + 1] ?? "");
  }
  return values.join(", ");
}
