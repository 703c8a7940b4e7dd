// Generates the protos of the stable version from those of the beta, and gen/ from
// all of proto/: stubs, and an image of the protos with their comments. Then the page
// and the schema of settings from their table, and the pages of commands and roles. If nothing changed, git stays clean.
import { spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { writeStableProtos } from "./stable-protos.mjs";

writeStableProtos("proto");

const bin = join(process.cwd(), "node_modules", ".bin");
const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
for (const args of [["generate"], ["build", "proto", "-o", join("gen", "api.binpb")]]) {
  const { status } = spawnSync(join(bin, "buf"), args, { stdio: "inherit", env });
  if (status !== 0) process.exit(status ?? 1);
}
for (const script of ["gen-settings.mjs", "gen-reference.mjs"]) {
  const { status } = spawnSync(process.execPath, ["--import", "tsx", join("scripts", script)], { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
