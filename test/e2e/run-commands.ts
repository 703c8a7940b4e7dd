// Runs the `arbor` commands given on standard input, one as JSON per line, and
// answers each with a line of JSON: what it wrote and how it ended.
import { createInterface } from "node:readline";
import { run } from "../../src/cli/program.js";
import type { Command, Finished } from "./process.js";

const answer = process.stdout.write.bind(process.stdout);
const written = { stdout: "", stderr: "" };
for (const name of ["stdout", "stderr"] as const) {
  process[name].write = (chunk: string | Uint8Array) => {
    written[name] += String(chunk);
    return true;
  };
}
for await (const line of createInterface({ input: process.stdin })) {
  const { args, env } = JSON.parse(line) as Command;
  Object.assign(written, { stdout: "", stderr: "" });
  Object.assign(process.env, env);
  const result: Finished = { code: await run(args), ...written };
  for (const name of Object.keys(env)) delete process.env[name];
  answer(`${JSON.stringify(result)}\n`);
}
process.exit(0);
