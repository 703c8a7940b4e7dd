#!/usr/bin/env node
// Entry of the `arbor` command. docker runs the credential helper for every pull, so the helper starts without the parser
// of the command line and without the libraries of the other commands.
const args = process.argv.slice(2);
const [group, command, action = ""] = args;

process.exitCode =
  args.length === 3 && group === "auth" && command === "docker-credential"
    ? await runCredentialHelper(action)
    : await runCommand();

async function runCredentialHelper(name: string): Promise<number> {
  const { isHelperAction, runHelper } = await import("./cli/remote/auth/docker-credential.js");
  return isHelperAction(name) ? runHelper(name) : runCommand();
}

async function runCommand(): Promise<number> {
  const { run } = await import("./cli/program.js");
  return run(args);
}
