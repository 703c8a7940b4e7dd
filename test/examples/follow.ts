// Follows the READMEs of examples/ and pages of docs/ as they stand, in an empty folder, against the demo: a service with a
// workload identity and a real OpenID Provider that issues its tokens.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Running, run } from "../cli/remote/auth/process.js";
import { spawnSync } from "../support/child-process.js";
import { PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

/** A running demo. */
export interface Demo {
  readonly url: string;
  /** What the examples read, as examples/README.md sets it. */
  readonly variables: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Starts a demo, and makes its workload an owner by the commands of examples/README.md. */
export async function startDemo(): Promise<Demo> {
  const demo = run(process.execPath, [...scriptArguments("src/main.ts"), "demo", "--listen", "127.0.0.1:0"]);
  try {
    const printed = await outputOf(demo, /\n {2}arbor iam role-bindings list\n$/);
    const [, where = ""] = /\nSay where things are.*?\n\n(.*?)\n\n/s.exec(printed) ?? [];
    const names = ["ARBOR", "ARBOR_API", "IDENTITY", "GROUP", "TOKEN_FILE"];
    const setup = [where, blockOf("examples/README.md", "setup"), ...names.map((name) => `echo "${name}=$${name}"`)];
    const { stdout } = await shell(setup.join("\n"), { cwd: PROJECT });
    const variables = Object.fromEntries(
      [...stdout.matchAll(/^(\w+)=(.+)$/gm)].map(([, name, value]) => [name, value]),
    );
    assert.deepEqual(Object.keys(variables), names);
    return {
      url: variables.ARBOR_API ?? "",
      variables,
      async stop() {
        demo.child.kill("SIGINT");
        await demo.ended;
      },
    };
  } catch (error) {
    demo.child.kill("SIGKILL");
    throw error;
  }
}

/** Resolves with what a process has written to standard output when that matches. */
export function outputOf({ child, ended }: Running, pattern: RegExp): Promise<string> {
  let text = "";
  return new Promise((resolve, reject) => {
    child.stdout.on("data", (chunk: string) => {
      text += chunk;
      if (pattern.test(text)) resolve(text);
    });
    void ended.then(({ stderr }) => reject(new Error(`it ended, having written: ${text}${stderr}`)));
  });
}

/** The commands of a page: those of all its blocks of `sh`. */
export function commandsOf(page: string): string {
  const blocks = [...textOf(page).matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands]) => commands);
  assert.notEqual(blocks.length, 0, `${page} has no commands`);
  return blocks.join("");
}

/** A block of a page, by the word after `sh`. */
export function blockOf(page: string, name: string): string {
  const [, commands] = new RegExp(`^\`\`\`\\w+ ${name}\\n(.*?)^\`\`\`$`, "ms").exec(textOf(page)) ?? [];
  assert.ok(commands !== undefined, `${page} has no block ${name}`);
  return commands;
}

/** The lines that a page says are printed. Uids in it are cut short. */
export function printedBy(page: string): string[] {
  const [, lines = ""] = /^```text\n(.*?)^```$/ms.exec(textOf(page)) ?? [];
  return lines.trimEnd().split("\n");
}

/** Lines of which uids were replaced as pages show them. */
export function withoutUids(stdout: string): string[] {
  return stdout.trimEnd().split("\n").map(cutUids);
}

/** A line without the digits of its uids, whether they are whole or cut. */
export function cutUids(line: string): string {
  return line.replace(/[0-9a-f]{4}(?:…[0-9a-f]{4}|[0-9a-f]{12,36})(?=$|[/\s])/g, "UID");
}

/** Runs commands in a bash that ends at the first failure; in an empty folder unless another one is given. */
export async function shell(
  commands: string,
  { cwd = tempDir(), env = {} }: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const script = `set -euo pipefail\ncd '${cwd}'\n${commands}`;
  const { code, stdout, stderr } = await run("bash", ["--norc", "-c", script], env).ended;
  assert.equal(code, 0, `${commands}\nended with ${code}:\n${stdout}${stderr}`);
  return { stdout, stderr };
}

/** Succeeds where Go is, and gets the modules that the example in Go names. */
export const GO_MODULES = `cd '${join(PROJECT, "examples/go")}' && go mod download`;

/** Why commands cannot run here, for `skip`: the first program that is not here. Prints a line in that case. */
export function missing(what: string, ...programs: readonly string[]): string | false {
  const absent = programs.find((program) => spawnSync("sh", ["-c", program], { stdio: "ignore" }).status !== 0);
  if (absent === undefined) return false;
  console.log(`${what} is not run: this fails here: ${absent}`);
  return `this fails here: ${absent}`;
}

function textOf(page: string): string {
  return readFileSync(join(PROJECT, page), "utf8");
}
