// Builds the Containerfile with buildah. Its base is Debian's root file system with a Node and an npm from npm's registry,
// in place of an image from a registry.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { getNode, getNpm } from "../support/other-node.js";
import { PROJECT } from "../support/project.js";
import { memoryDir } from "../support/temp-dir.js";
import { getDebianTree } from "./debian-tree.js";

const run = promisify(execFile);
const BASE = "localhost/arbor-base";
const BUILT = "localhost/arbor-build";
const OPTIONS = [
  "--format",
  "docker",
  "--isolation",
  "chroot",
  "--pull-never",
  "--quiet",
  "--build-arg",
  `BASE=${BASE}`,
];
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
  /** Builds the last stage of a Containerfile; returns what its root file system is and how it is run. */
  build(containerfile: string): Promise<{ readonly root: string; readonly config: ImageConfig }>;
  close(): Promise<void>;
}

/** Prepares a builder with the base image and what the first stage of a Containerfile builds on it. */
export async function createBuilder(file: string): Promise<Builder> {
  // On a disk a build takes half as long again. The layers have 1.4 GB.
  const directory = memoryDir(3 * 2 ** 30);
  const storage = ["--root", join(directory, "storage"), "--runroot", join(directory, "run")];
  const buildah = async (...args: readonly string[]) => {
    const all = [...storage, "--storage-driver", "overlay", ...args];
    return (await run("buildah", all, { maxBuffer: 2 ** 26, timeout: 300_000 })).stdout.trim();
  };
  await commitBase(buildah);
  const cache = join(homedir(), ".npm");
  mkdirSync(cache, { recursive: true });
  const volume = ["--volume", `${cache}:/root/.npm`];
  await buildah("build", ...OPTIONS, ...volume, "--target", "build", "--tag", BUILT, "--file", file, PROJECT);
  return {
    async build(containerfile) {
      const file = join(directory, "Containerfile");
      writeFileSync(file, replaceBuildStage(readFileSync(containerfile, "utf8")));
      const image = await buildah("build", ...OPTIONS, "--file", file, PROJECT);
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

// The first stage takes most of the time, and is the same in all Containerfiles here.
function replaceBuildStage(containerfile: string): string {
  const stages = containerfile.split(/^(?=FROM )/m);
  return [stages[0], `FROM ${BUILT} AS build\n`, ...stages.slice(2)].join("");
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
