// Quotas: the kinds of resources whose number is limited, and their limits. The store counts them
// (store/kinds.ts), and the definition of a kind names the methods that create it.

/** A kind of resource whose number is limited. */
export interface QuotaDefinition {
  /** The plural in errors. */
  readonly displayName: string;
  /** Whether the limit is per organisation, with all its groups, per person, or per identity in an organisation. */
  readonly per: "organisation" | "person" | "identity";
  /** The limit unless the settings or the organisation have another. */
  readonly limit: number;
}

/** The quotas by their names in settings and commands. */
export const quotas = {
  roots: { displayName: "root groups", per: "person", limit: 20 },
  groups: { displayName: "groups", per: "organisation", limit: 10_000 },
  identities: { displayName: "identities", per: "organisation", limit: 10_000 },
  roles: { displayName: "roles", per: "organisation", limit: 5_000 },
  bindings: { displayName: "role bindings", per: "organisation", limit: 50_000 },
  // A change of how an identity is assumed compares all its bindings with the rights of the caller. Of a person only
  // those of one organisation count, because anybody can bind anybody.
  identityBindings: { displayName: "role bindings in an organisation", per: "identity", limit: 1_000 },
  invites: { displayName: "group invites", per: "organisation", limit: 10_000 },
  providers: { displayName: "identity providers", per: "organisation", limit: 100 },
  // A login through a provider evaluates all its mappings.
  mappings: { displayName: "external group role mappings", per: "organisation", limit: 1_000 },
  subscriptions: { displayName: "subscriptions", per: "organisation", limit: 1_000 },
  repos: { displayName: "repos", per: "organisation", limit: 10_000 },
  tags: { displayName: "tags", per: "organisation", limit: 1_000_000 },
  advisories: { displayName: "advisories", per: "organisation", limit: 100_000 },
  overlays: { displayName: "overlays", per: "organisation", limit: 1_000 },
  overlayBindings: { displayName: "overlay bindings", per: "organisation", limit: 10_000 },
  scimUsers: { displayName: "SCIM users", per: "organisation", limit: 200_000 },
  scimGroups: { displayName: "SCIM groups", per: "organisation", limit: 20_000 },
} as const satisfies Readonly<Record<string, QuotaDefinition>>;

export type QuotaKind = keyof typeof quotas;

export type OrganisationQuota = {
  [K in QuotaKind]: (typeof quotas)[K]["per"] extends "organisation" ? K : never;
}[QuotaKind];

export type QuotaLimits = Readonly<Record<QuotaKind, number>>;

/** The largest limit: version 1 of the API has 32-bit limits. */
export const MAX_QUOTA = 2_147_483_647;

/** The names of all quotas, in table order. */
const quotaKinds = Object.keys(quotas) as readonly QuotaKind[];

export const organisationQuotas = quotaKinds.filter(isOrganisationQuota);

export const defaultLimits = Object.fromEntries(quotaKinds.map((kind) => [kind, quotas[kind].limit])) as QuotaLimits;

/** Whether this is the name of an organisation's quota. */
export function isOrganisationQuota(kind: string): kind is OrganisationQuota {
  return Object.hasOwn(quotas, kind) && quotas[kind as QuotaKind].per === "organisation";
}

/**
 * Parses a limit.
 *
 * @throws Error when it is not a whole number from 0 to 2147483647
 */
export function parseLimit(text: string): number {
  const limit = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (limit <= MAX_QUOTA) return limit;
  throw new Error(`must be a whole number from 0 to ${MAX_QUOTA}`);
}

/**
 * Parses limits such as `roots=5,tags=2000000`; the others keep their defaults.
 *
 * @throws Error when the text is malformed
 */
export function parseLimits(text: string): QuotaLimits {
  const limits: Partial<Record<QuotaKind, number>> = {};
  for (const part of text.split(",")) {
    const [kind = "", limit = "", ...rest] = part.trim().split("=");
    if (rest.length > 0 || !Object.hasOwn(quotas, kind)) throw invalidLimits();
    if (limits[kind as QuotaKind] !== undefined) throw new Error(`must name ${kind} once`);
    try {
      limits[kind as QuotaKind] = parseLimit(limit);
    } catch {
      throw invalidLimits();
    }
  }
  return { ...defaultLimits, ...limits };
}

/**
 * The limits of an organisation.
 *
 * @param own the organisation's own limits, as its root group stores them; unknown names are ignored
 */
export function limitsFor(own: Readonly<Record<string, number>> | undefined, limits: QuotaLimits): QuotaLimits {
  const applicable = Object.entries(own ?? {}).filter(([kind]) => isOrganisationQuota(kind));
  return applicable.length === 0 ? limits : { ...limits, ...Object.fromEntries(applicable) };
}

function invalidLimits(): Error {
  return new Error(
    `must be limits such as roots=5,tags=2000000: whole numbers up to ${MAX_QUOTA} for ${quotaKinds.join(", ")}`,
  );
}
