// Whether the directory of an identity provider sends people or groups by SCIM. From then on it alone says who is in its groups.
import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { Tables } from "../tables/tables.js";

/**
 * Whether the directory of a provider has sent people or groups, whether SCIM is on or not. As values and not by `exists`, for
 * which PostgreSQL may choose to read all rows of the provider.
 */
export const hasSent = ({ scimUsers, formerScimUsers, scimGroups }: Tables, providerUid: SQLWrapper): SQL => {
  const rows = [scimUsers, formerScimUsers, scimGroups].map(
    (table) => sql`(select ${table.uid} from ${table} where ${table.providerUid} = ${providerUid} limit 1)`,
  );
  return sql`coalesce(${sql.join(rows, sql`, `)}) is not null`;
};
