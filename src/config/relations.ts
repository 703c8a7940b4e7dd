// What must hold between settings.
import { readFileSync, statSync } from "node:fs";
import { isKeyOf } from "./pem.js";
import { labelOf } from "./setting-labels.js";
import { isLoopback } from "./setting-types.js";
import type { Settings } from "./settings.js";

/**
 * Finds what settings contradict.
 *
 * @param checkFiles whether all files that settings name can be read
 * @param targetUrl a PostgreSQL database that the command writes to
 */
export function findContradictions(values: Settings, checkFiles: boolean, targetUrl?: string): string[] {
  const { listen, behindProxy, tlsCert, databaseUrl, masterKeyFile } = values;
  const problems = findTlsContradictions(values, checkFiles);
  if (tlsCert === undefined && !behindProxy && !isLoopback(listen.host)) {
    problems.push("--listen on a non-loopback address needs TLS, or --behind-proxy where a proxy in front ends it");
  }
  if (databaseUrl !== undefined && masterKeyFile === undefined) {
    problems.push("--database-url needs --master-key-file: nodes that share a database share the key");
  }
  problems.push(...findDatabaseTlsContradictions(values, values.databaseUrl ?? targetUrl));
  // A new key is published for twice the age before it signs.
  if (values.jwksMaxAge * 2 > values.keyRotation) {
    problems.push("--jwks-max-age must be at most half of --key-rotation: a new key waits up to twice as long to sign");
  }
  return problems;
}

function findTlsContradictions(values: Settings, checkFiles: boolean): string[] {
  const { tlsCert, tlsKey } = values;
  const [certLabel, keyLabel] = [labelOf(values, "tlsCert"), labelOf(values, "tlsKey")];
  if ((tlsCert === undefined) !== (tlsKey === undefined)) return [`${certLabel} and ${keyLabel} go together`];
  if (!checkFiles || tlsCert === undefined || tlsKey === undefined || isPair(tlsCert, tlsKey)) return [];
  return [`${keyLabel}: ${tlsKey} is not the key of the certificate ${tlsCert}, which ${certLabel} names`];
}

// What is read from a pipe would be missing where the setting is used.
function isPair(certificate: string, key: string): boolean {
  if (!statSync(certificate).isFile() || !statSync(key).isFile()) return true;
  return isKeyOf(readFileSync(certificate), readFileSync(key));
}

function findDatabaseTlsContradictions(values: Settings, url: string | undefined): string[] {
  const { databaseTlsMode: mode, databaseTlsCa: ca, databaseTlsCert: cert, databaseTlsKey: key } = values;
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
  if ((cert === undefined) !== (key === undefined))
    problems.push(`${labelOf(values, "databaseTlsCert")} and ${labelOf(values, "databaseTlsKey")} go together`);
  const parameter = url === undefined ? undefined : findTlsParameter(url);
  if (parameter !== undefined) {
    problems.push(`--database-tls-mode and ${parameter} in the database URL cannot both be given`);
  }
  return problems;
}

// The driver would let what the URL says replace the settings.
function findTlsParameter(url: string): string | undefined {
  const names = new URLSearchParams(url.slice(url.indexOf("?") + 1)).keys();
  return [...names].find((name) => /^(ssl(mode|cert|key|rootcert|negotiation)?|uselibpqcompat)$/.test(name));
}
