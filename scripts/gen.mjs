// Generates gen/ from proto/: stubs, and beside them an image of the protos
// that keeps their comments. Leaves git clean when nothing changed.
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const buf = join("node_modules", ".bin", "buf");
for (const args of [["generate"], ["build", "proto", "-o", join("gen", "api.binpb")]]) {
  const { status } = spawnSync(buf, args, { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
