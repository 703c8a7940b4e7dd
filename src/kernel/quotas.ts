// The kinds of things that callers could pile up, and how many of each there may
// be. How they are counted is the store's (usage-store.ts), and which methods
// create them stands in src/app/quotas.ts.

/** A kind of thing whose number is limited. */
export interface QuotaDefinition {
  /** What several of them are called in errors. */
  readonly noun: string;
  /** Whose number is limited: that of an organisation, with all its groups, or of a person. */
  readonly per: "organisation" | "person";
  /** How many there may be where neither the settings nor the organisation say otherwise. */
  readonly limit: number;
}

/** The kinds, by the names that settings and commands have for them. */
export const quotas = {
  roots: { noun: "root groups", per: "person", limit: 20 },
  groups: { noun: "groups", per: "organisation", limit: 10_000 },
  identities: { noun: "identities", per: "organisation", limit: 10_000 },
  roles: { noun: "roles", per: "organisation", limit: 5_000 },
  bindings: { noun: "role bindings", per: "organisation", limit: 50_000 },
  invites: { noun: "group invites", per: "organisation", limit: 10_000 },
  providers: { noun: "identity providers", per: "organisation", limit: 100 },
  // A login through a provider looks through all mappings of it.
  mappings: { noun: "external group role mappings", per: "organisation", limit: 1_000 },
  subscriptions: { noun: "subscriptions", per: "organisation", limit: 1_000 },
  repos: { noun: "repos", per: "organisation", limit: 10_000 },
  tags: { noun: "tags", per: "organisation", limit: 1_000_000 },
  advisories: { noun: "advisories", per: "organisation", limit: 100_000 },
} as const satisfies Readonly<Record<string, QuotaDefinition>>;

/** The name of a quota. */
export type QuotaKind = keyof typeof quotas;

/** A quota of organisations. */
export type OrganisationQuota = {
  [K in QuotaKind]: (typeof quotas)[K]["per"] extends "organisation" ? K : never;
}[QuotaKind];

/** How many there may be of each kind. */
export type QuotaLimits = Readonly<Record<QuotaKind, number>>;

/** The largest limit: version 1 of the API shows limits as 32-bit integers. */
export const MAX_QUOTA = 2_147_483_647;

/** The names of all quotas, in the order of the table. */
export const quotaKinds = Object.keys(quotas) as readonly QuotaKind[];

/** The names of the quotas that an organisation may have its own limits for. */
export const organisationQuotas = quotaKinds.filter(isOrganisationQuota);

/** The limits where nothing else is said. */
export const defaultLimits = Object.fromEntries(quotaKinds.map((kind) => [kind, quotas[kind].limit])) as QuotaLimits;

/** Whether the quota of this name is one of organisations. */
export function isOrganisationQuota(kind: string): kind is OrganisationQuota {
  return Object.hasOwn(quotas, kind) && quotas[kind as QuotaKind].per === "organisation";
}

/**
 * Reads a limit.
 *
 * @throws Error with the rule it breaks: a whole number from 0 to 2147483647
 */
export function parseLimit(text: string): number {
  const limit = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (limit <= MAX_QUOTA) return limit;
  throw new Error(`must be a whole number from 0 to ${MAX_QUOTA}`);
}

/**
 * Reads limits as settings have them, such as `roots=5,tags=2000000`; kinds that are not named keep
 * their defaults.
 *
 * @throws Error with the rule that the text breaks
 */
export function parseLimits(text: string): QuotaLimits {
  const limits: Partial<Record<QuotaKind, number>> = {};
  for (const part of text.split(",")) {
    const [kind = "", limit = "", ...rest] = part.trim().split("=");
    if (rest.length > 0 || !Object.hasOwn(quotas, kind) || !/^\d{1,10}$/.test(limit)) throw brokenList();
    if (limits[kind as QuotaKind] !== undefined) throw new Error(`must name ${kind} once`);
    try {
      limits[kind as QuotaKind] = parseLimit(limit);
    } catch {
      throw brokenList();
    }
  }
  return { ...defaultLimits, ...limits };
}

/**
 * The limits that hold for an organisation.
 *
 * @param own those set for it alone, as its root group stores them; other names are passed over
 */
export function limitsFor(own: Readonly<Record<string, number>> | undefined, limits: QuotaLimits): QuotaLimits {
  const kept = Object.entries(own ?? {}).filter(([kind]) => isOrganisationQuota(kind));
  return kept.length === 0 ? limits : { ...limits, ...Object.fromEntries(kept) };
}

function brokenList(): Error {
  return new Error(
    `must be limits such as roots=5,tags=2000000: whole numbers up to ${MAX_QUOTA} for ${quotaKinds.join(", ")}`,
  );
}
