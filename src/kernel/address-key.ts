import { isIPv6 } from "node:net";

/** The key of an address. Who has one address of IPv6 has the whole network of it, 64 bits. */
export function addressKey(address: string | undefined): string {
  if (address === undefined || !isIPv6(address)) return `address ${address ?? ""}`;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped) return `address ${mapped[1]}`;
  const [head = "", tail = ""] = address.split("::");
  const groups = head.split(":").filter(Boolean);
  const rest = tail.split(":").filter(Boolean);
  const missing = address.includes("::") ? Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill("0") : [];
  return `network ${[...groups, ...missing, ...rest]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}`;
}
