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

// All public addresses that are in use, but for those of NAT64. Outside are loopback, unique local, link-local and
// multicast addresses, those that contain an IPv4 address (mapped, translated, compatible), and 64:ff9b:1::/48, in which
// each network puts the IPv4 address where it likes (RFC 8215).
const global6 = blockList("ipv6", [["2000::", 3]]);

const special6 = blockList("ipv6", [
  ["2001::", 23], // protocol assignments: Teredo, ORCHID, benchmarks, AMT
  ["2001:db8::", 32], // documentation
  ["2002::", 16], // 6to4
  ["2620:4f:8000::", 48], // AS112
  ["3fff::", 20], // documentation
]);

// The addresses by which networks without IPv4 reach IPv4 hosts, and which their DNS64 returns (RFC 6052, section 2.1).
const nat64 = blockList("ipv6", [["64:ff9b::", 96]]);

/** Whether `address`, without brackets, is an IP address of the public internet. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !special4.check(address, "ipv4");
    case 6:
      // An address with a zone is local to this machine's links.
      return !address.includes("%") && isPublic6(address);
    default:
      return false;
  }
}

function isPublic6(address: string): boolean {
  const groups = parseGroups(address);
  const [high = 0, low = 0] = groups.slice(6);
  // A NAT64 connects to the IPv4 address, which may be one of its own network.
  if (nat64.check(address, "ipv6")) return isPublicAddress([high >> 8, high & 255, low >> 8, low & 255].join("."));
  // ISATAP (RFC 5214): a machine that speaks it sends the packet in IPv4 to the address in the last 32 bits. The prefix
  // is any, so only the middle tells.
  const isIsatap = groups[5] === 0x5efe && (groups[4] === 0 || groups[4] === 0x200);
  return !isIsatap && global6.check(address, "ipv6") && !special6.check(address, "ipv6");
}

/** The eight groups of an IPv6 address, which may end in a dotted IPv4 address or a zone. */
function parseGroups(address: string): number[] {
  const [bare = ""] = address.split("%");
  const hex = bare.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_dotted, ...bytes: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [head = [], tail = []] = hex.split("::").map((part) => part.split(":").filter(Boolean));
  return [...head, ...Array<string>(8 - head.length - tail.length).fill("0"), ...tail].map((group) =>
    Number.parseInt(group, 16),
  );
}

function blockList(
  family: "ipv4" | "ipv6",
  subnets: readonly (readonly [network: string, prefix: number])[],
): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of subnets) list.addSubnet(network, prefix, family);
  return list;
}

/**
 * Converts an IPv4-mapped address, such as `::ffff:192.0.2.1`, to the IPv4 address. IPv6 sockets have such addresses for
 * peers that use IPv4. Other text is unchanged.
 */
export function unmapAddress(address: string): string {
  if (!isIPv6(address)) return address;
  const [a, b, c, d, e, marker, high = 0, low = 0] = parseGroups(address);
  if (a || b || c || d || e || marker !== 0xffff) return address;
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

/** The key by which limits count an address. A caller with one IPv6 address has its whole /64 network. */
export function addressKey(address: string | undefined): string {
  const plain = unmapAddress(address ?? "");
  if (!isIPv6(plain)) return `address ${plain}`;
  const network = parseGroups(plain).slice(0, 4);
  return `network ${network.map((group) => group.toString(16)).join(":")}`;
}

/** Where to listen; port 0 takes a free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}
