// The workers of `arbor serve --workers`, on Linux.
import { readFileSync } from "node:fs";

/** Returns the process ids of the workers of a service. */
export function workersOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? [] : children.split(" ").filter(isWorker).map(Number);
}

function isWorker(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("serve-worker");
  } catch {
    // It has ended meanwhile.
    return false;
  }
}
