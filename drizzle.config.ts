// For `npx drizzle-kit generate`, which writes a migration from a change of
// src/store/tables/; run it once per dialect: ARBOR_DIALECT=sqlite, =pg.
import { defineConfig } from "drizzle-kit";

const pg = process.env.ARBOR_DIALECT === "pg";

export default defineConfig({
  dialect: pg ? "postgresql" : "sqlite",
  schema: pg ? "./src/store/tables/schema-pg.ts" : "./src/store/tables/schema-sqlite.ts",
  out: pg ? "./src/store/migrations/pg" : "./src/store/migrations/sqlite",
});
