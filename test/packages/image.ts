// Builds the Containerfile with buildah. Its base is Debian's root file system with a Node and an npm from npm's registry,
// in place of an image from a registry.
import { execFile } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { getNode, getNpm } from "../support/other-node.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { getDebianTree } from "./debian-tree.js";

const run = promisify(execFile);
const BASE = "localhost/arbor-base";
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What an image says of how it is run. */
export interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly Volumes: Readonly<Record<string, unknown>>;
  readonly ExposedPorts: Readonly<Record<string, unknown>>;
  readonly Healthcheck: { readonly Test: readonly string[] };
  readonly Labels: Readonly<Record<string, string>>;
}

/** A builder with a storage of its own. */
export interface Builder {
  /** Builds a Containerfile with the checkout as its context; returns what its root file system is and how it is run. */
  build(containerfile: string): Promise<{ readonly root: string; readonly config: ImageConfig }>;
  close(): Promise<void>;
}

/** Prepares a builder with the base image. */
export async function createBuilder(): Promise<Builder> {
  const directory = tempDir();
  const storage = ["--root", join(directory, "storage"), "--runroot", join(directory, "run")];
  const buildah = async (...args: readonly string[]) => {
    const all = [...storage, "--storage-driver", "overlay", ...args];
    return (await run("buildah", all, { maxBuffer: 2 ** 26, timeout: 300_000 })).stdout.trim();
  };
  await commitBase(buildah);
  return {
    async build(containerfile) {
      const cache = join(homedir(), ".npm");
      mkdirSync(cache, { recursive: true });
      const options = ["--format", "docker", "--isolation", "chroot", "--pull-never", "--layers", "--quiet"];
      const volume = ["--volume", `${cache}:/root/.npm`];
      const file = ["--build-arg", `BASE=${BASE}`, "--file", containerfile];
      const image = await buildah("build", ...options, ...volume, ...file, PROJECT);
      const container = await buildah("from", "--pull-never", image.split("\n").at(-1) ?? "");
      const described = JSON.parse(await buildah("inspect", container)) as { Docker: { config: ImageConfig } };
      return { root: await buildah("mount", container), config: described.Docker.config };
    },
    async close() {
      await buildah("rm", "--all");
      await buildah("rmi", "--all", "--force");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function commitBase(buildah: (...args: readonly string[]) => Promise<string>): Promise<void> {
  const [tree, node, npm] = await Promise.all([getDebianTree(), getNode(24), getNpm(12)]);
  const container = await buildah("from", "scratch");
  await buildah("copy", "--quiet", container, tree, "/");
  await buildah("copy", "--quiet", container, node.program, "/usr/local/bin/node");
  await buildah("copy", "--quiet", container, dirname(dirname(npm.cli)), "/usr/local/lib/node_modules/npm");
  const link = ["ln", "-s", "../lib/node_modules/npm/bin/npm-cli.js", "/usr/local/bin/npm"];
  await buildah("run", "--isolation", "chroot", container, "--", ...link);
  await buildah("config", "--env", `PATH=${PATH}`, container);
  await buildah("commit", "--quiet", container, BASE);
}
