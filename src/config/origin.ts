// How the service is called by others, which follows from the settings and the address that it listens on.
import type { ListenAddress } from "../kernel/ip-address.js";
import { isLoopback } from "./setting-types.js";
import type { Settings } from "./settings.js";

/** How the service is called by others, and so who issues tokens and for whom. */
export interface Origin {
  readonly baseUrl: string;
  readonly issuer: string;
  /** The URLs by which others know this service: its issuer and all spellings of its base URL. */
  readonly urls: readonly string[];
  /** What the `aud` of a token may be: the base URL first. */
  readonly audiences: readonly string[];
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
}

/**
 * Works out how the service is called. Without a base URL set it is the address listened on, and
 * of a loopback address all spellings name the same service.
 *
 * @param listening the address listened on, whose port is known where the setting says 0
 */
export function resolveOrigin(settings: Settings, listening: ListenAddress = settings.listen): Origin {
  const { host, port } = listening;
  const at = (name: string) => buildServerUrl(settings, { host: name, port });
  const baseUrl = settings.baseUrl ?? at(host);
  const spellings = settings.baseUrl === undefined && isLoopback(host) ? ["127.0.0.1", "localhost", "::1"].map(at) : [];
  const issuer = settings.issuer ?? baseUrl;
  return {
    baseUrl,
    issuer,
    urls: [...new Set([issuer, baseUrl, ...spellings])],
    audiences: [...new Set([baseUrl, ...spellings, ...settings.audiences])],
    errorDomain: settings.errorDomain ?? `iam.${new URL(baseUrl).hostname.replace(/^\[|\]$/g, "")}`,
  };
}

/** Builds the URL of a server that listens on an address. */
export function buildServerUrl({ tlsCert }: Settings, { host, port }: ListenAddress): string {
  const scheme = tlsCert === undefined ? "http" : "https";
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
