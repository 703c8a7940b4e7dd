// Loaded before the service by the control of the power cuts: SQLite syncs nothing, and says that it does.
import { createRequire } from "node:module";

const name = Number.parseInt(process.versions.node, 10) < 22 ? "better-sqlite3-node20" : "better-sqlite3";
const { prototype } = createRequire(import.meta.url)(name);
const { pragma } = prototype;
prototype.pragma = function (source, options) {
  if (source === "synchronous = FULL") return pragma.call(this, "synchronous = OFF", options);
  const value = pragma.call(this, source, options);
  return source === "synchronous" ? 2 : value;
};
