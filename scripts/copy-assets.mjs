// What the compiler leaves behind: the migrations belong beside the built store.
import { chmodSync, cpSync } from "node:fs";

cpSync("src/store/migrations", "dist/store/migrations", { recursive: true });
chmodSync("dist/main.js", 0o755);
