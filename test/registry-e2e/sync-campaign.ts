// Syncs a registry with many tags, killing the command on the way.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { repoKind } from "../../src/store/registry/repos.js";
import { tagKind } from "../../src/store/registry/tags.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { arbor } from "../e2e/process.js";
import { environmentWithoutSettings, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { startBareRegistry } from "./bare-registry.js";
import { type Stored, writeStorage } from "./storage.js";

/** How much to sync, and how. */
export interface SyncCampaign {
  readonly tags: number;
  readonly repos: number;
  /** How often the command is killed before it may end. */
  readonly kills: number;
  /** Receives the progress. */
  readonly say: (line: string) => void;
}

/** Runs it; `problems` is empty when every tag is there once. */
export async function runSyncCampaign({ tags, repos, kills, say }: SyncCampaign): Promise<{ problems: string[] }> {
  const data = tempDir();
  const made = await arbor("bootstrap", "--org", "acme", "--data", data, "--json");
  if (made.code !== 0) throw new Error(made.stderr);
  const { group } = JSON.parse(made.stdout) as { group: string };
  const directory = tempDir();
  const stored = writeStorage(directory, group, tags, repos);
  say(`${tags} tags in ${repos} repos are in the storage of the registry`);
  const registry = await startBareRegistry({ directory });
  try {
    const args = ["registry", "sync", "--data", data, "--registry-url", registry.url, "--progress"];
    let done = 0;
    for (let kill = 1; kill <= kills; kill++) {
      const before = done;
      const limit = Math.floor((tags * kill) / (kills + 1));
      ({ done } = await syncOnce(args, limit));
      say(`killed with -9 after ${done} tags`);
      if (done <= before) throw new Error("the command did not go on");
    }
    const { code, stdout } = await syncOnce(args);
    say(stdout.trimEnd());
    const problems = code === 0 ? await differences(data, group, stored) : [`the command ended with ${code}`];
    const resumed = Number(/^resumed after (\d+) tags$/m.exec(stdout)?.[1] ?? 0);
    // The last report may count fewer tags than are on disk, and never more.
    if (resumed < done) problems.push(`it went on after ${resumed} tags, and ${done} were done`);
    say(`${problems.length === 0 ? "every tag is there once" : `${problems.length} problems`}`);
    return { problems };
  } finally {
    await registry.stop();
  }
}

// Kills the command once it has reported `limit` tags.
async function syncOnce(args: readonly string[], limit = Number.POSITIVE_INFINITY) {
  const child = spawn(process.execPath, [...scriptArguments("src/main.ts"), ...args], {
    env: environmentWithoutSettings(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const stdout = text(child.stdout);
  const closed = new Promise<number | null>((resolve) => child.on("close", resolve));
  let done = 0;
  for await (const line of createInterface({ input: child.stderr })) {
    const told = /^(\d+) of \d+$/.exec(line)?.[1];
    if (told === undefined) process.stderr.write(`${line}\n`);
    else done = Number(told);
    if (done >= limit) child.kill("SIGKILL");
  }
  return { code: await closed, stdout: await stdout, done };
}

async function differences(data: string, group: string, stored: Stored): Promise<string[]> {
  const problems: string[] = [];
  const store = openSqlite({ directory: data, clock: Date.now, exclusive: true });
  try {
    let total = 0;
    for (const [path, names] of stored) {
      const found = new Map<string, string>();
      await store.read(async (tx) => {
        const repo = await tx.table(repoKind).findByName(group, path.slice(group.length + 1));
        if (repo === undefined) return;
        const order = { field: "uid", descending: false };
        const { rows } = await tx
          .table(tagKind)
          .listAll({ visible: [repo.uid], filter: {}, order, skip: 0, limit: 1_000_000 });
        for (const { name, digest } of rows) {
          if (found.has(name)) problems.push(`${path}:${name} is there twice`);
          found.set(name, digest);
        }
      });
      total += found.size;
      for (const [name, digest] of names) if (found.get(name) !== digest) problems.push(`${path}:${name} differs`);
      if (found.size !== names.size) problems.push(`${path} has ${found.size} tags and not ${names.size}`);
    }
    const rows = await store.read((tx) => tx.audit.listNewest(10_000_000, group));
    const made = rows.filter(({ type }) => type.endsWith("tag.created.v1")).length;
    if (made !== total) problems.push(`${made} tags were made for ${total}`);
    return problems;
  } finally {
    await store.close();
  }
}
