// Faults of the disk and of the files of the database.
import { execFileSync } from "node:child_process";
import {
  closeSync,
  cpSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import {
  expectResponses,
  type FaultReport,
  type HostFault,
  preloadOf,
  report,
  startWritten,
  WRITE_MS,
} from "./fault-report.js";
import type { HostService } from "./host-service.js";

const WRITES_FAIL = {
  restWrite: /^503 with RetryInfo/,
  grpcWrite: /^Unavailable/,
  restRead: /^OK$/,
  healthz: /^200 ok/,
};
const ALL_FAIL = { restWrite: /^503/, grpcWrite: /^Unavailable/, restRead: /^503/, readyz: /^503/, healthz: /^200 ok/ };

/** A fault during which writes fail and after which they work again without a restart. */
async function runRecovering(
  name: string,
  service: HostService,
  kind: string,
  { begin, end }: { begin(): void; end(): void },
): Promise<FaultReport> {
  begin();
  await service.untilMetric("arbor_database_fault", { fault: kind }, (value) => value === 1);
  const answers = await service.ask();
  expectResponses(service, answers, { ...WRITES_FAIL, readyz: /^200 read-only/ });
  await sleep(WRITE_MS);
  const before = service.recorder.acknowledged;
  end();
  const ms = await service.untilWritten();
  await service.untilMetric("arbor_database_fault", { fault: kind }, (value) => value === 0);
  await service.untilLogged("the database can be used again");
  const began = service.lines.filter((line) => line.fault === kind && line.level === "error").length;
  if (began !== 1) service.problems.push(`${began} lines of level error say that the fault ${kind} began`);
  if (!/^200 ok/.test((await service.ask()).readyz)) service.problems.push("it is not ready again");
  await service.stopWriters();
  await service.end("SIGTERM");
  const after = service.recorder.acknowledged - before;
  const lost = await service.compare();
  return report({
    fault: name,
    service,
    answers,
    lost,
    recovery: `by itself: ${ms} ms to the next write, ${after} writes after it`,
  });
}

/** A fault after which the service refuses all calls. `repair` runs when the process has ended. */
async function runReplaced(
  name: string,
  service: HostService,
  { begin, rescue, repair }: { begin(): void; rescue?(): void | Promise<void>; repair?(): void },
  control: boolean,
): Promise<FaultReport> {
  begin();
  const before = service.recorder.acknowledged;
  if (!control) await service.untilMetric("arbor_database_fault", { fault: "replaced" }, (value) => value === 1);
  const answers = await service.ask();
  if (!control) expectResponses(service, answers, ALL_FAIL);
  await sleep(WRITE_MS);
  const after = service.recorder.acknowledged - before;
  // Those that were on their way when the fault began; each of the writers has one.
  if (!control && after > 4) service.problems.push(`${after} writes were acknowledged after the fault`);
  // What was written last is sure to be in the removed log alone, and must be lost without a rescue.
  if (control) await service.end("SIGKILL");
  await service.stopWriters();
  await rescue?.();
  await service.end("SIGKILL");
  repair?.();
  let lost: readonly string[] = [];
  if (!control) {
    await service.start();
    const again = await service.ask();
    expectResponses(service, again, { restWrite: /^OK$/, grpcWrite: /^OK$/, restRead: /^OK$/, readyz: /^200 ok/ });
    await service.end("SIGTERM");
  }
  try {
    lost = await service.compare();
  } catch (error) {
    if (!control) throw error;
    lost = [`all: ${error}`];
  }
  return report({
    fault: name,
    service,
    answers,
    lost,
    recovery: `restart; ${after} writes acknowledged after the fault`,
  });
}

/** Mounts a new file system in the file `disk`, at `mount` beside it. */
export function mountImage(directory: string, size: string): string {
  const [image, mount] = [join(directory, "disk"), join(directory, "mount")];
  mkdirSync(mount);
  execFileSync("truncate", [`--size=${size}`, image]);
  execFileSync("mkfs.ext4", ["-q", "-F", "-m", "0", image]);
  execFileSync("mount", ["-o", "loop", image, mount]);
  return mount;
}

/** Writes a file that takes all the space that is left. */
export function fillDisk(ballast: string): void {
  const file = openSync(ballast, "w");
  try {
    for (const size of [65_536, 512]) {
      try {
        for (;;) writeSync(file, Buffer.alloc(size, 1));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      }
    }
  } finally {
    closeSync(file);
  }
}

export const fullDisk: HostFault = async (directory) => {
  const mount = mountImage(directory, "48M");
  const ballast = join(mount, "ballast");
  const service = await startWritten({ data: join(mount, "data") });
  const result = await runRecovering("disk full", service, "full", {
    begin: () => fillDisk(ballast),
    end: () => rmSync(ballast),
  });
  execFileSync("umount", ["--lazy", mount]);
  return result;
};

/** The files of the process may not grow: the write-ahead log cannot, while the database has room. */
export const fileSizeLimit: HostFault = async (directory) => {
  const service = await startWritten({ data: join(directory, "data") });
  return runRecovering("limit of the size of files", service, "io_error", {
    begin: () => execFileSync("prlimit", [`--pid=${service.pid}`, "--fsize=65536:unlimited"]),
    end: () => execFileSync("prlimit", [`--pid=${service.pid}`, "--fsize=unlimited:unlimited"]),
  });
};

export const immutableFiles: HostFault = async (directory) => {
  const mount = mountImage(directory, "64M");
  const service = await startWritten({ data: join(mount, "data") });
  const files = ["arbor.db", "arbor.db-wal"].map((name) => join(service.data, name));
  const result = await runRecovering("files made read-only", service, "read_only", {
    begin: () => execFileSync("chattr", ["+i", ...files]),
    end: () => execFileSync("chattr", ["-i", ...files]),
  });
  execFileSync("umount", ["--lazy", mount]);
  return result;
};

/** As ext4 does by itself after an error of the disk. The kernel refuses `remount,ro` while files are open for writing. */
export const readOnlyFileSystem: HostFault = async (directory) => {
  const mount = mountImage(directory, "64M");
  const service = await startWritten({ data: join(mount, "data") });
  execFileSync("mount", ["-o", "remount,abort", mount]);
  await service.untilMetric("arbor_database_fault", { fault: "read_only" }, (value) => value === 1);
  const answers = await service.ask();
  expectResponses(service, answers, { ...WRITES_FAIL, readyz: /^200 read-only/ });
  await service.stopWriters();
  await service.end("SIGTERM");
  execFileSync("umount", [mount]);
  execFileSync("mount", ["-o", "loop", join(directory, "disk"), mount]);
  await service.start();
  expectResponses(service, await service.ask(), { restWrite: /^OK$/, grpcWrite: /^OK$/, readyz: /^200 ok/ });
  await service.end("SIGTERM");
  const lost = await service.compare();
  execFileSync("umount", ["--lazy", mount]);
  return report({ fault: "read-only file system", service, answers, lost, recovery: "mounted again, restart" });
};

export const replaceDatabase: HostFault = async (directory, control) => {
  const service = await startWritten({ data: join(directory, "data") });
  const file = join(service.data, "arbor.db");
  const [other, kept] = [join(directory, "other.db"), join(service.data, "arbor.db.kept")];
  const db = openDatabase(other);
  db.exec("CREATE TABLE other (id INTEGER)");
  db.close();
  const spoil = {
    begin() {
      linkSync(file, kept);
      renameSync(other, file);
    },
    repair: () => renameSync(kept, file),
  };
  return runReplaced("database replaced by another", service, spoil, control);
};

export const removeDatabase: HostFault = async (directory, control) => {
  const service = await startWritten({ data: join(directory, "data") });
  const file = join(service.data, "arbor.db");
  const saved = join(directory, "saved.db");
  const spoil = {
    begin: () => unlinkSync(file),
    // As the line of the log says.
    rescue() {
      const descriptors = `/proc/${service.pid}/fd`;
      const number = readdirSync(descriptors).find((name) => readLink(join(descriptors, name)) === `${file} (deleted)`);
      if (number === undefined) service.problems.push("the removed database is not open");
      else cpSync(join(descriptors, number), saved, { dereference: true });
    },
    repair: () => cpSync(saved, file),
  };
  return runReplaced("database removed", service, spoil, control);
};

export const removeLog: HostFault = async (directory, control) => {
  const service = await startWritten({
    data: join(directory, "data"),
    preload: control ? preloadOf("no-file-checks.mjs") : [],
  });
  const spoil = {
    begin: () => unlinkSync(join(service.data, "arbor.db-wal")),
    rescue: async () => void (control || (await service.untilLogged("all commits of the removed log were copied"))),
  };
  return runReplaced("write-ahead log removed", service, spoil, control);
};

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
