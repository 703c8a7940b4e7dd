#!/usr/bin/env node
// Entry of the `arbor` command. docker runs the credential helper for every pull, so the helper starts without the parser
// of the command line and without the libraries of the other commands.
/** How long the last lines of a service may take to be written, in milliseconds. */
const LAST_WRITES_MS = 500;

const args = process.argv.slice(2);
const [group, command, action = ""] = args;

// A worker of `serve --workers`: its parent starts this program again.
const isWorker = group === "serve-worker" && process.send !== undefined;

const isServe = args.find((arg) => !arg.startsWith("-")) === "serve";

// Before anything is loaded: a signal ends a process that has no listener for it.
if (isServe) listenWhileStarting();
if (isWorker) ignoreSignals();

process.exitCode =
  args.length === 3 && group === "auth" && command === "docker-credential"
    ? await runCredentialHelper(action)
    : await (isWorker ? runWorker() : runCommand());

// Standard error may be a pipe that nobody reads. It must not keep a service alive whose start has failed.
if (isServe || (isWorker && process.exitCode !== 0)) setTimeout(() => process.exit(), LAST_WRITES_MS).unref();

async function runCredentialHelper(name: string): Promise<number> {
  const { isHelperAction, runHelper } = await import("./cli/remote/auth/docker-credential.js");
  return isHelperAction(name) ? runHelper(name) : runCommand();
}

async function runWorker(): Promise<number> {
  const { runWorker: run } = await import("./cli/host/serve-worker.js");
  return run();
}

async function runCommand(): Promise<number> {
  const { run } = await import("./cli/program.js");
  return run(args);
}

// A terminal and supervisors send them to workers too, which do what their parent says.
function ignoreSignals(): void {
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, () => {});
}

// SIGHUP means nothing until `serve` listens for it. SIGTERM and SIGINT stop a service that starts, which has served
// nothing yet; a service that runs has listeners of its own.
function listenWhileStarting(): void {
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => {
      if (process.listenerCount(name) === 1) process.exit(0);
    });
  }
  process.on("SIGHUP", () => {});
}
