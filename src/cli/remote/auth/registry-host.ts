const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::[1-9]\d{0,4})?$/;

/**
 * The host of a registry, with its port where it has one, out of what docker calls a server: that, or
 * a URL. Undefined for anything else. The port is part of the name, as somebody else may listen on another.
 */
export function registryHost(server: string): string | undefined {
  const host = server
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\//, "")
    .replace(/\/.*$/s, "");
  return HOST.test(host) ? host : undefined;
}
