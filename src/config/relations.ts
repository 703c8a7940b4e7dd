// What must hold between settings.
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { isPublicAddress } from "../kernel/ip-address.js";
import { isKeyUrl } from "../kernel/issuer-keys.js";
import { parseLoginProviders } from "../kernel/login-providers.js";
import { describePrivateUrl } from "../kernel/public-url.js";
import { isKeyOf } from "./pem.js";
import { isLoopback } from "./setting-types.js";
import { labelOf, type Settings } from "./settings.js";
import { DATABASE_PAIR, describeMismatch, SERVER_PAIR, type TlsPair } from "./tls.js";

/**
 * Finds what settings contradict.
 *
 * @param checkFiles whether all files that settings name can be read
 * @param targetUrl a PostgreSQL database that the command writes to
 */
export function findContradictions(values: Settings, checkFiles: boolean, targetUrl?: string): string[] {
  const { listen, behindProxy, tlsCert, databaseUrl, databaseDirectUrl, masterKeyFile } = values;
  const problems = findPairContradictions(values, SERVER_PAIR, checkFiles);
  if (tlsCert === undefined && !behindProxy && !isLoopback(listen.host)) {
    problems.push("--listen on a non-loopback address needs TLS, or --behind-proxy where a proxy in front ends it");
  }
  if (databaseUrl !== undefined && masterKeyFile === undefined) {
    problems.push("--database-url needs --master-key-file: nodes that share a database share the key");
  }
  if ([databaseUrl, databaseDirectUrl, targetUrl].some((url) => url !== undefined && namesSeveralHosts(url))) {
    const remedy = "name one address, such as that of HAProxy in docs/high-availability.md";
    problems.push(`the database URL names several hosts, and the driver connects to one: ${remedy}`);
  }
  problems.push(...findPoolerContradictions(values));
  problems.push(...findDatabaseTlsContradictions(values, checkFiles, [databaseUrl ?? targetUrl, databaseDirectUrl]));
  if (checkFiles) problems.push(...findUnreachableProviders(values));
  // A new key is published for twice the age before it signs.
  if (values.jwksMaxAge * 2 > values.keyRotation) {
    problems.push("--jwks-max-age must be at most half of --key-rotation: a new key waits up to twice as long to sign");
  }
  const { drainDelay, drainTime } = values;
  if (drainDelay > 0 && drainDelay + drainTime + EXIT_S >= SUPERVISOR_S) {
    problems.push(
      `--drain-delay and --drain-time must be less than ${SUPERVISOR_S - EXIT_S} s together: with ${EXIT_S} s for the rest, ` +
        `they must end before a supervisor kills the process after ${SUPERVISOR_S} s`,
    );
  }
  for (const one of values.issuerKeys.filter(isKeyUrl)) {
    const url = new URL(one.source);
    if (describePrivateUrl(url) !== undefined && !values.trustedIssuers.includes(url.origin))
      problems.push(`--issuer-keys ${one.source} needs --trusted-issuers ${url.origin}`);
  }
  return problems;
}

/** How long the files of deploy/ wait for the process to end, and what it needs beside the drain time, in seconds. */
const SUPERVISOR_S = 45;
const EXIT_S = 5;

// Signing in with such a provider would fail, with a reason in the log alone.
function findUnreachableProviders(values: Settings): string[] {
  const { loginProviders: file, trustedIssuers } = values;
  if (file === undefined || !statSync(file).isFile()) return [];
  const label = `${labelOf(values, "loginProviders")}: ${file}`;
  return parseLoginProviders(readFileSync(file, "utf8")).flatMap(({ name, issuer }) => {
    const url = new URL(issuer);
    const reason = describePrivateUrl(url) ?? (isPrivateHost(url.hostname) ? "the host is not public" : undefined);
    if (reason === undefined || trustedIssuers.includes(url.origin)) return [];
    return [
      `${label}: nobody can sign in with ${name}: ${reason} in its issuer ${issuer}; to use it, add ${url.origin} to --trusted-issuers`,
    ];
  });
}

// What other names resolve to is known when they are requested.
function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, "");
  return isIP(host) === 0 ? /(^|\.)localhost$/.test(host) : !isPublicAddress(host);
}

// As libpq allows it: several hosts, each with its port. User and password may have commas.
function namesSeveralHosts(url: string): boolean {
  const [, authority = ""] = /^postgres(?:ql)?:\/\/([^/?#]*)/.exec(url) ?? [];
  if (authority.slice(authority.lastIndexOf("@") + 1).includes(",")) return true;
  const query = url.includes("?") ? url.slice(url.indexOf("?") + 1) : "";
  return new URLSearchParams(query).getAll("host").some((host) => host.includes(","));
}

function findPoolerContradictions(values: Settings): string[] {
  const { databasePooler, databaseUrl, databaseDirectUrl, databasePoolSize } = values;
  const direct = labelOf(values, "databaseDirectUrl");
  const problems: string[] = [];
  if (databasePoolSize !== undefined && databaseUrl === undefined) {
    problems.push(`${labelOf(values, "databasePoolSize")} needs --database-url`);
  }
  if (databasePooler === "none") {
    return databaseDirectUrl === undefined ? problems : [...problems, `${direct} needs --database-pooler`];
  }
  const pooler = `${labelOf(values, "databasePooler")} transaction`;
  if (databaseUrl === undefined) return [...problems, `${pooler} needs --database-url`];
  if (databaseDirectUrl === undefined) {
    problems.push(`${pooler} needs --database-direct-url`);
  }
  const parameter = findParameter(
    databaseUrl,
    /^(options|replication|(statement|lock|idle_in_transaction_session)_timeout)$/,
  );
  if (parameter !== undefined) {
    problems.push(`${pooler} and ${parameter} in the database URL cannot both be given: a pooler rejects it`);
  }
  return problems;
}

function findPairContradictions(values: Settings, pair: TlsPair, checkFiles: boolean): string[] {
  const [cert, key] = [values[pair.cert], values[pair.key]];
  if ((cert === undefined) !== (key === undefined)) {
    return [`${labelOf(values, pair.cert)} and ${labelOf(values, pair.key)} go together`];
  }
  if (!checkFiles || cert === undefined || key === undefined || isPair(cert, key)) return [];
  return [describeMismatch(values, pair)];
}

// What is read from a pipe would be missing where the setting is used.
function isPair(certificate: string, key: string): boolean {
  if (!statSync(certificate).isFile() || !statSync(key).isFile()) return true;
  return isKeyOf(readFileSync(certificate), readFileSync(key));
}

function findDatabaseTlsContradictions(
  values: Settings,
  checkFiles: boolean,
  [url, directUrl]: readonly (string | undefined)[],
): string[] {
  const { databaseTlsMode: mode, databaseTlsCa: ca } = values;
  const files = (["databaseTlsCa", "databaseTlsCert", "databaseTlsKey"] as const).filter((name) => values[name]);
  const named = files.map((name) => labelOf(values, name));
  if (mode === undefined) return named.map((label) => `${label} needs --database-tls-mode`);
  const problems: string[] = [];
  if (url === undefined) problems.push("--database-tls-mode needs --database-url");
  if (mode === "disable")
    problems.push(...named.map((label) => `${label} has no effect with --database-tls-mode disable`));
  if (mode === "verify-ca" && ca === undefined) {
    problems.push(
      "--database-tls-mode verify-ca needs --database-tls-ca: any certificate of a public authority would do",
    );
  }
  problems.push(...findPairContradictions(values, DATABASE_PAIR, checkFiles));
  for (const [name, given] of [["the database URL", url] as const, ["the direct URL", directUrl] as const]) {
    const parameter = given === undefined ? undefined : findParameter(given, TLS_PARAMETER);
    if (parameter === undefined) continue;
    problems.push(`--database-tls-mode and ${parameter} in ${name} cannot both be given`);
  }
  return problems;
}

// The driver would let what the URL says replace the settings.
const TLS_PARAMETER = /^(ssl(mode|cert|key|rootcert|negotiation)?|uselibpqcompat)$/;

function findParameter(url: string, pattern: RegExp): string | undefined {
  if (!url.includes("?")) return undefined;
  const names = new URLSearchParams(url.slice(url.indexOf("?") + 1)).keys();
  return [...names].find((name) => pattern.test(name));
}
