// Copies what the compiler does not: the migrations of the store.
import { chmodSync, cpSync } from "node:fs";

cpSync("src/store/migrations", "dist/store/migrations", { recursive: true });
chmodSync("dist/main.js", 0o755);
