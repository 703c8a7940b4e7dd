// The form of URLs that are requested without being trusted.

/** Describes why a URL is requested only if its origin is trusted; undefined where its form needs no trust. */
export function describePrivateUrl({ protocol, port, hostname }: URL): string | undefined {
  if (protocol !== "https:") return "the address is not https";
  if (port !== "") return "the port is not 443";
  if (hostname.endsWith(".")) return "the host ends with a dot";
  return undefined;
}
