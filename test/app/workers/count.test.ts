// What `--workers auto` means on machines, in containers and in units.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { countWorkers } from "../../../src/app/workers/count.js";
import { tempDir } from "../../support/temp-dir.js";

const MIB = 1024 * 1024;

/** Plants control groups; `own` is the path of the group of the process. */
function plant(own: string, groups: Readonly<Record<string, { cpu?: string; memory?: string }>>) {
  const cgroupRoot = tempDir();
  const ownCgroup = join(tempDir(), "cgroup");
  writeFileSync(ownCgroup, `0::${own}\n`);
  for (const [path, { cpu, memory }] of Object.entries(groups)) {
    mkdirSync(join(cgroupRoot, path), { recursive: true });
    if (cpu !== undefined) writeFileSync(join(cgroupRoot, path, "cpu.max"), `${cpu}\n`);
    if (memory !== undefined) writeFileSync(join(cgroupRoot, path, "memory.max"), `${memory}\n`);
  }
  return { processors: 16, memoryBytes: 64_000 * MIB, cgroupRoot, ownCgroup };
}

for (const [name, machine, expected] of [
  ["a large machine", plant("/", {}), 8],
  ["a machine with three processors", { ...plant("/", {}), processors: 3 }, 3],
  ["a machine with 1 GiB", { ...plant("/", {}), memoryBytes: 1024 * MIB }, 2],
  ["a container without limits", plant("/", { "/": { cpu: "max 100000", memory: "max" } }), 8],
  ["a container with 2.5 processors", plant("/", { "/": { cpu: "250000 100000", memory: "max" } }), 2],
  ["a container with half of one", plant("/", { "/": { cpu: "50000 100000" } }), 1],
  ["a container with 1,300 MiB", plant("/", { "/": { cpu: "max 100000", memory: String(1_300 * MIB) } }), 3],
  ["a container with 100 MiB", plant("/", { "/": { memory: String(100 * MIB) } }), 1],
  [
    "a unit with CPUQuota=400%",
    plant("/system.slice/a.service", { "/system.slice/a.service": { cpu: "400000 100000" } }),
    4,
  ],
  [
    "a unit in a slice with less",
    plant("/a.slice/b.service", {
      "/a.slice/b.service": { cpu: "400000 100000" },
      "/a.slice": { cpu: "300000 100000" },
    }),
    3,
  ],
] as const) {
  test(`auto is ${expected} for ${name}`, () => assert.equal(countWorkers("auto", machine), expected));
}

test("a number is that number, whatever the machine has", () => {
  assert.equal(countWorkers(12, plant("/", { "/": { cpu: "50000 100000" } })), 12);
});
