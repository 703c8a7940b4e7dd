// The client commands against a real service. They run in a process of their
// own, because what they write to standard output is what is tested.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Finished, startHost } from "../../../e2e/process.js";
import { type Harness, startHarness } from "../../../support/harness.js";
import { tempDir } from "../../../support/temp-dir.js";

type Json = Readonly<Record<string, unknown>>;

/** A service, an organisation in it, and the command line of its owner. */
export interface CliWorld {
  readonly service: Harness;
  /** The root group. */
  readonly root: string;
  /** The identity of the owner. */
  readonly owner: string;
  readonly token: string;
  /** Runs `arbor` with these arguments, and other settings in its environment. */
  arbor(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Finished>;
  /** Runs `arbor iam` with these arguments. */
  iam(...args: readonly string[]): Promise<Finished>;
  /** Runs `arbor registry` with these arguments. */
  registry(...args: readonly string[]): Promise<Finished>;
  /** Runs `arbor iam` with other settings in its environment; an empty one counts as absent. */
  iamWith(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Finished>;
  /** What `arbor iam ... -o json` prints; fails when the command does. */
  json(...args: readonly string[]): Promise<Json>;
  /** What REST responses for a path below `/iam/v2beta1`. */
  rest(path: string): Promise<Json>;
  /** A new file with this content. */
  file(content: string): string;
  stop(): Promise<void>;
}

/** Starts them. */
export async function startCliWorld(): Promise<CliWorld> {
  const service = await startHarness();
  const { group: root, identity: owner, token } = await service.organisation("acme.example");
  const host = startHost();
  const directory = tempDir();
  // Whatever the machine has stored for its user must not matter.
  const home = { HOME: directory, XDG_CONFIG_HOME: directory };
  let files = 0;
  const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    host.run(args, { ...home, ARBOR_API: service.url, ARBOR_TOKEN: token, ...env });
  const iamWith: CliWorld["iamWith"] = (env, ...args) => run(["iam", ...args], env);
  return {
    service,
    root,
    owner,
    token,
    arbor: (env, ...args) => run(args, env),
    registry: (...args) => run(["registry", ...args]),
    iam: (...args) => iamWith({}, ...args),
    iamWith,
    async json(...args) {
      const { code, stdout, stderr } = await iamWith({}, ...args, "-o", "json");
      assert.equal(code, 0, stderr);
      assert.equal(stderr, "");
      return JSON.parse(stdout) as Json;
    },
    async rest(path) {
      const response = await fetch(`${service.url}/iam/v2beta1${path}`, {
        headers: { authorization: `Bearer ${token}` },
      });
      assert.equal(response.status, 200, path);
      return (await response.json()) as Json;
    },
    file(content) {
      const path = join(directory, `file-${files++}`);
      writeFileSync(path, content);
      return path;
    },
    async stop() {
      host.close();
      await service.stop();
    },
  };
}
