// Compiles the service and its tests into build/, with the layout of the checkout.
// The tests start some hundred processes, and tsx costs each two seconds of processor time.
import { spawnSync } from "node:child_process";
import { cpSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";

/** The directory of the output. */
export const BUILD = "build";

/** The output of a file of the tests or of the service. @param path such as `test/config.test.ts` */
export function outputOf(path) {
  return join(BUILD, path.replace(/\.ts$/, ".js"));
}

/** Compiles. Prints the errors of the compiler and ends the process if there are any. */
export function buildTests() {
  rmSync(BUILD, { recursive: true, force: true });
  const compiler = join("node_modules", "typescript", "bin", "tsc");
  const { status } = spawnSync(process.execPath, [compiler, "-p", "tsconfig.tests.json"], { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
  // Everything else beside the sources: migrations, certificates, scripts.
  for (const directory of ["src", "test"]) {
    cpSync(directory, join(BUILD, directory), { recursive: true, filter: (path) => !path.endsWith(".ts") });
  }
  // `#gen/*` and the files that are read at run time are found from package.json and gen/ beside src/.
  for (const name of ["package.json", "gen"]) symlinkSync(join("..", name), join(BUILD, name));
}

if (process.argv[1] === import.meta.filename) buildTests();
