// Compiles the service and its tests, with the layout of the checkout. The tests start
// some hundred processes, and tsx costs each two seconds of processor time.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { buildSync } from "esbuild";
import { secondsOf } from "./test-files.mjs";

/** The directory of all outputs. */
export const BUILD = "build";

/**
 * Compiles without checking types, which `npm run check` does.
 *
 * @param output the directory of this output, which is replaced
 * @returns the compiled file of a file of the tests or of the service, such as `test/config/config.test.ts`
 * @throws where a file cannot be parsed
 */
export function buildTests(output = join(BUILD, "all")) {
  rmSync(output, { recursive: true, force: true });
  buildSync({
    entryPoints: ["src/**/*.ts", "test/**/*.ts"],
    ...{ outdir: output, outbase: ".", format: "esm", platform: "node", target: "node20", sourcemap: true },
  });
  // Everything else beside the sources: migrations, certificates, scripts.
  for (const directory of ["src", "test"]) {
    cpSync(directory, join(output, directory), { recursive: true, filter: (path) => !path.endsWith(".ts") });
  }
  // `#gen/*` and the files that are read at run time are found from package.json, gen/ and docs/ beside src/.
  for (const name of ["package.json", "gen", "docs"]) symlinkSync(relative(output, name), join(output, name));
  mkdirSync(join(output, "dist"));
  for (const name of ["site", "console"]) {
    const built = join(BUILD, name);
    execFileSync(process.execPath, [`scripts/${name}.mjs`, built], { stdio: "inherit" });
    symlinkSync(relative(join(output, "dist"), built), join(output, "dist", name));
  }
  // As it is shipped; the tests start it some hundred times. Some look at the modules that it loads.
  cpSync(join(output, "src/main.js"), join(output, "src/unbundled.js"));
  execFileSync(process.execPath, ["scripts/bundle.mjs", join(output, "src")], { stdio: "inherit" });
  return (path) => join(output, path.replace(/\.ts$/, ".js"));
}

/**
 * Writes files that each run some of the tests in one process, with about the same total duration. Each
 * process takes more than a second to import the service, but one that runs many files keeps their memory.
 *
 * @param files such as `test/config/config.test.ts`
 * @param processes how many files are written
 * @param outputOf what {@link buildTests} returned
 * @returns their paths
 */
export function writeShards(files, processes, outputOf) {
  const directory = outputOf("shards");
  mkdirSync(directory, { recursive: true });
  const shards = Array.from({ length: Math.min(processes, files.length) }, () => ({ names: [], seconds: 0 }));
  for (const name of [...files].sort((one, other) => secondsOf(other) - secondsOf(one))) {
    const least = shards.reduce((one, other) => (other.seconds < one.seconds ? other : one));
    least.names.push(name);
    least.seconds += secondsOf(name);
  }
  // The longest start first, so that at the end no processor is idle while another runs one of them.
  shards.sort((one, other) => other.seconds - one.seconds);
  return shards.map(({ names }, i) => {
    const path = join(directory, `${String(i).padStart(2, "0")}.test.mjs`);
    const addresses = Object.fromEntries(names.map((name) => [name, pathToFileURL(outputOf(name)).href]));
    const imported = JSON.stringify(pathToFileURL("scripts/describe-files.mjs").href);
    writeFileSync(path, `import { describeFiles } from ${imported};\ndescribeFiles(${JSON.stringify(addresses)});\n`);
    return path;
  });
}
