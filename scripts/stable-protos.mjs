// Generates the stable version of the API: each proto of version 2beta1 with the
// names and paths of version 2, otherwise unchanged. Only the beta is edited.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const NOTE = "// Made from version 2beta1 by `npm run gen`; changes belong there.\n\n";

/** Writes a folder `v2` beside each folder `v2beta1` below `root`, with the same files. */
export function writeStableProtos(root) {
  const entries = readdirSync(root, { withFileTypes: true, recursive: true });
  const folders = entries.filter((entry) => entry.isDirectory() && entry.name === "v2beta1");
  for (const folder of folders) {
    const beta = join(folder.parentPath ?? folder.path, folder.name);
    const stable = join(dirname(beta), "v2");
    rmSync(stable, { recursive: true, force: true });
    mkdirSync(stable);
    for (const file of readdirSync(beta)) {
      const text = readFileSync(join(beta, file), "utf8").replaceAll("v2beta1", "v2");
      writeFileSync(join(stable, basename(file)), NOTE + text);
    }
  }
}
