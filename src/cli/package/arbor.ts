#!/usr/bin/env node
// Entry of `arbor` in the package of commands over the network, as src/main.ts is in that of the service.
const args = process.argv.slice(2);
const [group, command, action = ""] = args;

// What `arbor auth configure-docker` writes runs this for every pull.
const isHelper = args.length === 3 && group === "auth" && command === "docker-credential";
process.exitCode = isHelper ? await runCredentialHelper(action) : await runCommand();

async function runCredentialHelper(name: string): Promise<number> {
  const { isHelperAction, runHelper } = await import("../remote/auth/docker-credential.js");
  return isHelperAction(name) ? runHelper(name) : runCommand();
}

async function runCommand(): Promise<number> {
  const [{ runCommandLine }, { packageCommandLine }] = await Promise.all([
    import("../command-line.js"),
    import("./command-line.js"),
  ]);
  return runCommandLine(args, packageCommandLine);
}
