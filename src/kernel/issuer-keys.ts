// The keys that the operator gives for issuers (docs/workloads.md#keys-without-discovery).

export interface IssuerKeySource {
  /** As tokens have it. */
  readonly issuer: string;
  /** The path of a file, or an http or https URL. */
  readonly source: string;
}

/** Whether the keys are at a URL, and not in a file. */
export function isKeyUrl({ source }: IssuerKeySource): boolean {
  return /^https?:/i.test(source);
}

/** Parses a JWK Set (RFC 7517, section 5) in a file. @throws Error with the rule that the content violates */
export function parseKeyFile(content: Buffer): Readonly<Record<string, unknown>> {
  let jwks: { readonly keys?: unknown } | null | undefined;
  try {
    jwks = JSON.parse(content.toString("utf8"));
  } catch {
    // As any other content that is no JWK Set.
  }
  const { keys } = jwks ?? {};
  if (!Array.isArray(keys) || !keys.some((key) => typeof key === "object" && key !== null)) {
    throw new Error("must hold a JWK Set: a JSON object with a list of keys that is not empty");
  }
  return { ...jwks };
}
