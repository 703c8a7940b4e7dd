// Whether a text is an address, a network or a URL that a setting may have.
import { isIP, isIPv4 } from "node:net";

/** Parses a whole number without a sign, with as many zeros before it as one likes; NaN for anything else. */
export function parseWholeNumber(text: string): number {
  return /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
}

/** An IPv6 address without a zone. */
export function isIPv6(text: string): boolean {
  return isIP(text) === 6 && !text.includes("%");
}

/** A number of a TCP port. */
export function isPort(text: string): boolean {
  return parseWholeNumber(text) <= 65_535;
}

/** An IP address or a network, such as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = "", prefix = "0", ...rest] = text.split("/");
  if (rest.length > 0) return false;
  return parseWholeNumber(prefix) <= (isIPv4(address) ? 32 : isIPv6(address) ? 128 : -1);
}

// Letters, digits, `-`, `_` and dots, and everything beyond ASCII but blanks and control characters.
const ORIGIN = /^[Hh][Tt][Tt][Pp][Ss]?:\/\/(\[[^\]]*\]|[^\s\p{Cc}!-,/:-@[-^`{-~]+)(?::([0-9]+))?$/u;

/** An http or https URL of a host and nothing else, without a slash at its end. */
function isHostUrl(text: string): boolean {
  const [, host, port] = ORIGIN.exec(text) ?? [];
  return host !== undefined && isHost(host) && (port === undefined || isPort(port));
}

// URLs take a host for an IPv4 address when its last label is a number, also a hexadecimal one, so only the usual form of an
// address is accepted there.
function isHost(host: string): boolean {
  if (host.startsWith("[")) return isIPv6(host.slice(1, -1));
  if (isIPv4(host)) return true;
  const labels = host.replace(/\.$/, "").split(".");
  return labels.every((label) => label !== "") && !/^(?:[0-9]+$|0[Xx])/.test(labels.at(-1) ?? "");
}

/**
 * An origin with an optional slash at its end. Whether a label in another script than ASCII is valid, only the parser of URLs
 * knows.
 */
export function isOrigin(text: string): boolean {
  return isHostUrl(text.replace(/\/$/, ""));
}

const URL_PARTS = /^([A-Za-z]+:\/\/[^/?]*)(?:\/[A-Za-z0-9._~!$&'()*+;:@%/-]*)?(\?[A-Za-z0-9._~!$&'()*+;:@%/?=-]*)?$/u;

/** An issuer: an http or https URL without query, comma and equals sign. */
export function isIssuer(text: string): boolean {
  const [, origin, query] = URL_PARTS.exec(text) ?? [];
  return origin !== undefined && query === undefined && isHostUrl(origin);
}

/** An http or https URL without comma, user and fragment. */
export function isPlainUrl(text: string): boolean {
  const [, origin] = URL_PARTS.exec(text) ?? [];
  return origin !== undefined && isHostUrl(origin);
}
