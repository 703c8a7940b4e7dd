// Turns SCIM off where servers of the versions before have turned it on: they had no endpoint for directories, so it had no
// effect. Turned on here, it would keep people out whom no directory has sent.
import type { DataMigration, Dialect } from "./data-migration.js";

const isOn = { sqlite: "json_extract(scim, '$.enabled')", pg: "(scim ->> 'enabled')::boolean" };
const off = {
  sqlite: "json_set(scim, '$.enabled', json('false'))",
  pg: "jsonb_set(scim, '{enabled}', 'false')",
};

const turnOff = (dialect: Dialect) => `UPDATE identity_providers SET scim = ${off[dialect]} WHERE ${isOn[dialect]}`;

/** The migration. Its last statement turns off what servers of the version before have turned on meanwhile. */
export const scimOff: DataMigration = {
  name: "scim-off",
  leavesNothing: true,
  begin: () => [],

  async total(tx) {
    const [row] = await tx.query(`SELECT count(*) AS n FROM identity_providers WHERE ${isOn[tx.dialect]}`);
    return Number(row?.n);
  },

  // Those of one installation are few.
  async step(tx) {
    return { position: undefined, done: await tx.run(turnOff(tx.dialect)) };
  },

  contract: (dialect) => [{ sql: turnOff(dialect) }],
};
