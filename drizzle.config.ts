// For scripts/gen-migration.mjs, which runs the generator once per dialect.
import { defineConfig } from "drizzle-kit";

const dialect = process.env.ARBOR_DIALECT === "pg" ? "pg" : "sqlite";

export default defineConfig({
  dialect: dialect === "pg" ? "postgresql" : "sqlite",
  schema: "./drizzle/schema.ts",
  out: process.env.ARBOR_MIGRATIONS,
});
