import type { LookupAddress } from "node:dns";
import { lookup, Resolver } from "node:dns/promises";

/** Finds the addresses of a host name; rejects or resolves to none when there are none. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>;

/** A try at a name server, in milliseconds, and how many there are. */
const QUERY_MS = 1_500;
const QUERY_TRIES = 2;

/**
 * Asks the DNS alone. Names that strangers choose must not wait in getaddrinfo: it runs on the few
 * threads that files and signatures need too, and cannot be called off.
 *
 * @param servers the name servers, as `address:port`; by default those of this machine.
 */
export function dnsResolve(servers?: readonly string[]): Resolve {
  return async (hostname, signal) => {
    const resolver = new Resolver({ timeout: QUERY_MS, tries: QUERY_TRIES });
    if (servers) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
      return [...addressesOf(four, 4), ...addressesOf(six, 6)];
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  };
}

/** Asks as everything on this machine does, its hosts file included: for names that the operator chose. */
export const hostResolve: Resolve = (hostname) => lookup(hostname, { all: true });

function addressesOf(result: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return result.status === "fulfilled" ? result.value.map((address) => ({ address, family })) : [];
}
