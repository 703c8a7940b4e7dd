// IP addresses: which are public, by the IANA registries of special-purpose addresses for IPv4 and IPv6 (RFC 6890) as
// of 2026, and the key by which limits count them.
import { BlockList, isIP, isIPv6 } from "node:net";

const special4 = blockList("ipv4", [
  ["0.0.0.0", 8], // this network
  ["10.0.0.0", 8], // private
  ["100.64.0.0", 10], // shared by carriers; metadata of one cloud
  ["127.0.0.0", 8], // loopback
  ["168.63.129.16", 32], // not in the registry: the host agent of one cloud, reachable from its machines alone
  ["169.254.0.0", 16], // link-local; metadata of most clouds
  ["172.16.0.0", 12], // private
  ["192.0.0.0", 24], // protocol assignments; metadata of one cloud
  ["192.0.2.0", 24], // documentation
  ["192.31.196.0", 24], // AS112
  ["192.52.193.0", 24], // AMT
  ["192.88.99.0", 24], // 6to4 relays
  ["192.168.0.0", 16], // private
  ["192.175.48.0", 24], // AS112
  ["198.18.0.0", 15], // benchmarks
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved, and broadcast
]);

// All public addresses that are in use. Outside are loopback, unique local, link-local and multicast addresses, and
// those that contain an IPv4 address: mapped, compatible, NAT64.
const global6 = blockList("ipv6", [["2000::", 3]]);

const special6 = blockList("ipv6", [
  ["2001::", 23], // protocol assignments: Teredo, ORCHID, benchmarks, AMT
  ["2001:db8::", 32], // documentation
  ["2002::", 16], // 6to4
  ["2620:4f:8000::", 48], // AS112
  ["3fff::", 20], // documentation
]);

/** Whether `address`, without brackets, is an IP address of the public internet. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !special4.check(address, "ipv4");
    case 6:
      // An address with a zone is local to this machine's links.
      return !address.includes("%") && global6.check(address, "ipv6") && !special6.check(address, "ipv6");
    default:
      return false;
  }
}

function blockList(
  family: "ipv4" | "ipv6",
  subnets: readonly (readonly [network: string, prefix: number])[],
): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of subnets) list.addSubnet(network, prefix, family);
  return list;
}

/** The key by which limits count an address. A caller with one IPv6 address has its whole /64 network. */
export function addressKey(address: string | undefined): string {
  if (address === undefined || !isIPv6(address)) return `address ${address ?? ""}`;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped) return `address ${mapped[1]}`;
  const [head = "", tail = ""] = address.split("::");
  const groups = head.split(":").filter(Boolean);
  const rest = tail.split(":").filter(Boolean);
  const zeros = address.includes("::") ? Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill("0") : [];
  return `network ${[...groups, ...zeros, ...rest]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}`;
}

/** Where to listen; port 0 takes a free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}
