// Finds the address of the caller, which proxies write into a header field.
import type { IncomingHttpHeaders } from "node:http";
import { type BlockList, isIP, isIPv6 } from "node:net";
import { unmapAddress } from "../../kernel/ip-address.js";

/** The proxies that are trusted to name their peers, and the field in which they do. */
export interface TrustedProxies {
  readonly addresses: Pick<BlockList, "check">;
  /** Callers can send the other field, and proxies that do not know it pass it on. So only one is read. */
  readonly header: "X-Forwarded-For" | "Forwarded";
}

/**
 * Finds the address of the caller: that of the socket or, if that is a trusted proxy, the last address in the field of
 * proxies that is none. Callers can forge those before it.
 */
export function findPeerAddress(
  socketAddress: string | undefined,
  headers: IncomingHttpHeaders,
  proxies: TrustedProxies | undefined,
): string | undefined {
  return findForwardedAddress(socketAddress, headers, proxies) ?? (socketAddress && unmapAddress(socketAddress));
}

/** Finds the address that a trusted proxy names; undefined when the peer is none, or names nobody. */
export function findForwardedAddress(
  socketAddress: string | undefined,
  headers: IncomingHttpHeaders,
  proxies: TrustedProxies | undefined,
): string | undefined {
  if (proxies === undefined || !isTrustedProxy(socketAddress, proxies)) return undefined;
  const isForwarded = proxies.header === "Forwarded";
  const field = headers[isForwarded ? "forwarded" : "x-forwarded-for"];
  const text = typeof field === "object" ? field.join(",") : (field ?? "");
  let found: string | undefined;
  for (const entry of splitFromEnd(text, isForwarded)) {
    const node = isForwarded ? findNode(entry) : entry.trim();
    if (!node) break;
    found = parseNode(node);
    if (!isTrustedProxy(found, proxies)) break;
  }
  return found;
}

/** Whether an address is that of a trusted proxy. */
export function isTrustedProxy(address: string | undefined, { addresses }: TrustedProxies): boolean {
  const family = isIP(address ?? "");
  // The address of an IPv4 peer on an IPv6 socket is an IPv4-mapped one, which is checked as IPv4.
  return family !== 0 && addresses.check(address ?? "", family === 4 ? "ipv4" : "ipv6");
}

/** The longest name of a caller that is no address. */
const MAX_NAME = 64;

/** Parses an address that may have a port, and brackets if it is IPv6; another name is kept (RFC 7239, section 6). */
function parseNode(node: string): string {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\]|([0-9.]+))(?::[A-Za-z0-9._-]*)?$/.exec(node) ?? [];
  const address = bracketed ?? dotted ?? node;
  if (bracketed === undefined ? isIP(address) !== 0 : isIPv6(address)) return unmapAddress(address);
  return node.slice(0, MAX_NAME);
}

const PAIR = /[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=("(?:[^"\\]|\\.)*"|[^",;\s]*)[ \t]*(?:;|$)/y;

/** Finds the parameter `for` in an element of Forwarded (RFC 7239, section 4); undefined if the element is malformed. */
function findNode(element: string): string | undefined {
  let found: string | undefined;
  for (PAIR.lastIndex = 0; PAIR.lastIndex < element.length; ) {
    const pair = PAIR.exec(element);
    if (pair === null) return undefined;
    const [, name = "", value = ""] = pair;
    if (name.toLowerCase() !== "for") continue;
    if (found !== undefined) return undefined;
    found = value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
  }
  return found;
}

// From the end, where the proxies write: a quote that a caller never closes must not swallow what comes after it.
function* splitFromEnd(text: string, hasQuotes: boolean): Generator<string> {
  let end = text.length;
  let isQuoted = false;
  for (let i = text.length - 1; i >= 0; i--) {
    if (hasQuotes && text[i] === '"' && !isEscaped(text, i)) isQuoted = !isQuoted;
    if (text[i] !== "," || isQuoted) continue;
    yield text.slice(i + 1, end);
    end = i;
  }
  yield text.slice(0, end);
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === "\\") slashes++;
  return slashes % 2 === 1;
}
