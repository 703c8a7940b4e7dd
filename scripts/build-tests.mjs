// Compiles the service and its tests into build/, laid out like the checkout: to
// start through tsx costs each of some hundred processes two seconds of processor.
import { spawnSync } from "node:child_process";
import { cpSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";

/** Where it is compiled to. */
export const BUILD = "build";

/** What a file of the tests or of the service is compiled to. @param path such as `test/config.test.ts` */
export function compiled(path) {
  return join(BUILD, path.replace(/\.ts$/, ".js"));
}

/** Compiles; prints what the compiler says and ends the process when it fails. */
export function buildTests() {
  rmSync(BUILD, { recursive: true, force: true });
  const compiler = join("node_modules", "typescript", "bin", "tsc");
  const { status } = spawnSync(process.execPath, [compiler, "-p", "tsconfig.tests.json"], { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
  // Everything else that lies beside the sources: migrations, certificates, scripts.
  for (const directory of ["src", "test"]) {
    cpSync(directory, join(BUILD, directory), { recursive: true, filter: (path) => !path.endsWith(".ts") });
  }
  // `#gen/*` and the files that are read at run time are found from package.json and gen/ beside src/.
  for (const name of ["package.json", "gen"]) symlinkSync(join("..", name), join(BUILD, name));
}

if (process.argv[1] === import.meta.filename) buildTests();
