// Runs one of the programs of a table by its name: `npm run campaign -- NAME` and `npm run bench -- NAME`.
import { spawnSync } from "node:child_process";

/**
 * @typedef Program
 * @property {string} what the line of the list
 * @property {readonly string[]} run arguments of Node
 * @property {boolean} [build] builds the service first
 * @property {readonly string[]} [pg] runs beside a PostgreSQL server, with these options of scripts/with-pg.mjs
 */

/**
 * Runs the program that the first argument names with the rest of them, and ends this process as it ended. Without a name it lists
 * them.
 *
 * @param {string} script of package.json
 * @param {Readonly<Record<string, Program>>} programs
 */
export function runNamed(script, programs) {
  const [name, ...rest] = process.argv.slice(2);
  const width = Math.max(...Object.keys(programs).map((one) => one.length));
  const list = Object.entries(programs).map(([one, { what }]) => `  ${one.padEnd(width)}  ${what}`);
  const usage = [`usage: npm run ${script} -- NAME [OPTIONS]`, ...list].join("\n");
  if (name === undefined || name === "--help") {
    console.log(usage);
    process.exit(0);
  }
  if (!Object.hasOwn(programs, name)) {
    console.error(`${script}: ${name} is not one of these names\n${usage}`);
    process.exit(2);
  }
  const { run, build = false, pg } = programs[name];
  if (build) start("npm", ["run", "-s", "build"]);
  const beside = pg === undefined ? [] : ["scripts/with-pg.mjs", ...pg, process.execPath];
  start(process.execPath, [...beside, ...run, ...rest]);
  process.exit(0);
}

function start(program, args) {
  const { status, error } = spawnSync(program, args, { stdio: "inherit" });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
