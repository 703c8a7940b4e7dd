// Other versions of Node and npm than the running ones, from the npm registry,
// kept beside each other in the temporary directory of the system.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const CACHE = join(tmpdir(), "arbor-nodes");

/** A Node of some version. */
export interface OtherNode {
  /** Its full version, such as `24.15.0`. */
  readonly version: string;
  /** The path of the program. */
  readonly program: string;
  /** The directory that holds program and headers, for `npm_config_nodedir`. */
  readonly directory: string;
}

/** An npm of some version. */
export interface OtherNpm {
  readonly version: string;
  /** The path of its command line, to be run by the Node in question. */
  readonly cli: string;
}

/**
 * Gets the newest Node of a major version, once.
 *
 * @throws Error when npm cannot install it, such as on a platform for which it is not published
 */
export async function getNode(major: number): Promise<OtherNode> {
  const name = `node-${process.platform}-${process.arch}`;
  const directory = await install(name, major);
  const program = join(directory, "bin/node");
  const { stdout } = await run(program, ["--version"]);
  return { version: stdout.trim().slice(1), program, directory };
}

/**
 * Gets the newest npm of a major version, once.
 *
 * @throws Error when it cannot be installed
 */
export async function getNpm(major: number): Promise<OtherNpm> {
  const directory = await install("npm", major);
  const { version } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as { version: string };
  return { version, cli: join(directory, "bin/npm-cli.js") };
}

/**
 * The environment of a machine that has this Node and a shell, and nothing else: no compiler, no make,
 * no Python. Settings of an npm that runs this process and variables of Arbor and of its tests are left out.
 *
 * @param at an empty directory for the links to the two programs
 */
export function bareEnvironment(node: OtherNode, at: string): NodeJS.ProcessEnv {
  symlinkSync(node.program, join(at, "node"));
  symlinkSync("/bin/sh", join(at, "sh"));
  const kept = Object.entries(environmentFor(node)).filter(([name]) => !name.startsWith("ARBOR_"));
  return { ...Object.fromEntries(kept), PATH: at };
}

/** The environment of this process with this Node first, for its tests and for what it compiles. */
export function environmentFor(node: OtherNode): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_TEST_CONTEXT$|NODE$|INIT_CWD$)/.test(name));
  const path = `${join(node.directory, "bin")}:${process.env.PATH}`;
  return { ...Object.fromEntries(kept), PATH: path, npm_config_nodedir: node.directory };
}

// A whole directory gets its name at once, so that processes which install the same do not disturb each other.
async function install(name: string, major: number): Promise<string> {
  const directory = join(CACHE, `${name}-${major}`);
  const installed = join(directory, "node_modules", name);
  if (existsSync(installed)) return installed;
  mkdirSync(CACHE, { recursive: true });
  const draft = mkdtempSync(join(CACHE, "draft-"));
  await run("npm", ["install", "--no-save", "--ignore-scripts", "--prefix", draft, `${name}@${major}`], { cwd: draft });
  try {
    renameSync(draft, directory);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(installed)) throw error;
  }
  return installed;
}
