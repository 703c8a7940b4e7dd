// Starts a service and runs the walkthrough of Python's clients: stubs that protoc
// generates from proto/, called through grpcio, both as Debian packages them. Prints
// how many passed and failed. Then grpcio and curl send the calls of test/contract/rules.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

// Debian's modules belong to its own interpreter, which need not be the first on the path.
const PYTHON = "/usr/bin/python3";
const PACKAGES = ["python3-grpcio", "python3-protobuf", "protobuf-compiler", "protobuf-compiler-grpc", "curl"];
const PROTO_PATHS = ["proto", "node_modules/google-proto-files"];
const TIMEOUT_MS = 60_000;

requirePackages();
const scratch = mkdtempSync(join(tmpdir(), "arbor-python-"));
const data = join(scratch, "data");
let service;
try {
  generate(scratch);
  const { child, url } = await startService();
  service = child;
  const made = must(process.execPath, arbor("bootstrap", "--org", "example", "--json", "--data", data));
  const { group, token } = JSON.parse(made);
  const env = { PATH: process.env.PATH, LC_ALL: "C.UTF-8", PYTHONPATH: scratch, BASE: url, GROUP: group, TOKEN: token };
  const { status, signal, stdout, stderr } = spawnSync(PYTHON, ["-B", "-s", "test/python/walkthrough.py"], {
    encoding: "utf8",
    env,
    timeout: TIMEOUT_MS,
  });
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  const count = (begin) => stdout.split("\n").filter((line) => line.startsWith(begin)).length;
  const [passed, failed] = [count("ok "), count("FAILED ")];
  if (signal !== null) console.error(`test-python: ended by ${signal}, at most ${TIMEOUT_MS} ms are allowed`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = status === 0 && passed > 0 && failed === 0 && runRules() ? 0 : 1;
} finally {
  if (service !== undefined && service.exitCode === null) {
    service.kill("SIGTERM");
    await once(service, "exit");
  }
  rmSync(scratch, { recursive: true, force: true });
}

function requirePackages() {
  const runs = (program, ...args) => spawnSync(program, args, { stdio: "ignore" }).status === 0;
  // The plugin has no option that exits with success, so its existence is enough.
  const there = (program) => spawnSync(program, { input: "", stdio: ["pipe", "ignore", "ignore"] }).error === undefined;
  const found = [
    runs(PYTHON, "-s", "-c", "import grpc"),
    runs(PYTHON, "-s", "-c", "import google.protobuf.descriptor_pb2"),
    runs("protoc", "--version"),
    there("grpc_python_plugin"),
    runs("curl", "--version"),
  ];
  const missing = PACKAGES.filter((_, i) => !found[i]);
  if (missing.length === 0) return;
  console.error(`test-python: not installed: apt-get install ${missing.join(" ")}`);
  process.exit(2);
}

// The calls that all other protocols make in test/contract/rules.test.ts.
function runRules() {
  const args = ["--import", "tsx", "--test", "--test-reporter=dot", "test/python/rules.test.ts"];
  const env = { ...withoutSettings(), PYTHONPATH: scratch };
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit", env, timeout: TIMEOUT_MS });
  return status === 0;
}

// All of proto/, and its imports and the error details of google.api and google.rpc.
function generate(directory) {
  const own = readdirSync("proto", { recursive: true }).filter((file) => file.endsWith(".proto"));
  const files = new Set([...own, "google/rpc/error_details.proto", "google/rpc/status.proto"]);
  for (const file of files) {
    for (const [, imported] of read(file).matchAll(/^import (?:public )?"([^"]+)";/gm)) {
      if (!imported.startsWith("google/protobuf/")) files.add(imported);
    }
  }
  const paths = PROTO_PATHS.map((path) => `--proto_path=${path}`);
  must("protoc", [...paths, `--python_out=${directory}`, `--grpc_python_out=${directory}`, ...plugin(), ...files]);
}

function plugin() {
  const path = must("sh", ["-c", "command -v grpc_python_plugin"]).trim();
  return [`--plugin=protoc-gen-grpc_python=${path}`];
}

function read(file) {
  for (const path of PROTO_PATHS) {
    try {
      return readFileSync(join(path, file), "utf8");
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
  throw new Error(`${file} is neither in ${PROTO_PATHS.join(" nor in ")}`);
}

async function startService() {
  const args = arbor("serve", "--listen", "127.0.0.1:0", "--no-access-log", "--data", data);
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], env: withoutSettings() });
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), once(child, "exit")]);
  const url = /^arbor listening on (\S+)$/.exec(line)?.[1];
  if (url === undefined) throw new Error(`the service did not start: ${line}`);
  return { child, url };
}

function arbor(...args) {
  return ["--import", "tsx", "src/main.ts", ...args];
}

function must(program, args) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8", env: withoutSettings() });
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr}`);
  return stdout;
}

// Settings in the caller's environment are for another service.
function withoutSettings() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ARBOR_")));
}
