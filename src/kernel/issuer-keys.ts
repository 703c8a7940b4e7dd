// The keys that the operator gives for issuers (docs/workloads.md#keys-without-discovery).
import { isJsonObject, parseJsonObject } from "./strict-json.js";

/** An issuer, and where its keys are. */
export interface IssuerKeySource {
  /** As tokens have it. */
  readonly issuer: string;
  /** The path of a file, or an http or https URL. */
  readonly source: string;
}

/** How many values a JWK Set may hold, nested ones included. */
const MAX_VALUES = 4_096;

/** Whether the keys are at a URL, and not in a file. */
export function isKeyUrl({ source }: IssuerKeySource): boolean {
  return /^https?:/i.test(source);
}

/** Parses a JWK Set (RFC 7517, section 5) in a file. @throws Error with the rule that the content violates */
export function parseKeyFile(content: Buffer): Readonly<Record<string, unknown>> {
  const jwks = parseJsonObject(content, MAX_VALUES);
  if (jwks === undefined || !Array.isArray(jwks.keys) || !jwks.keys.some(isJsonObject))
    throw new Error("must hold a JWK Set: a JSON object with a list of keys that is not empty");
  return jwks;
}
