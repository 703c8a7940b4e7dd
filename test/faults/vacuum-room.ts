// `arbor migrate --vacuum` where the directory for temporary files is small, and where the disk of the data is.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { mountImage } from "./disk-faults.js";
import { expectResponses, type HostFault, report, startWritten } from "./fault-report.js";

const MIB = 2 ** 20;
const RUN_MS = 60_000;

function vacuum(data: string, env: Readonly<Record<string, string>>) {
  const args = [...scriptArguments("src/main.ts"), "migrate", "--contract", "--vacuum", "--data", data];
  const { SQLITE_TMPDIR: _, ...others } = environmentWithoutSettings();
  return spawnSync(process.execPath, args, {
    cwd: PROJECT,
    env: { ...others, ...env },
    encoding: "utf8",
    timeout: RUN_MS,
  });
}

export const vacuumInLittleRoom: HostFault = async (directory) => {
  const mount = mountImage(directory, "128M");
  const [tmp, ballast] = [join(directory, "tmp"), join(mount, "ballast")];
  mkdirSync(tmp);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "none", tmp]);
  const service = await startWritten({ data: join(mount, "data") });
  await service.stopWriters();
  await service.end("SIGTERM");
  const file = join(service.data, "arbor.db");
  const db = openDatabase(file);
  // 20 MiB that stay, and as many that are free.
  db.exec("CREATE TABLE ballast (a BLOB)");
  const insert = db.prepare("INSERT INTO ballast VALUES (randomblob(1048576))");
  for (let i = 0; i < 40; i++) insert.run();
  db.exec("DELETE FROM ballast WHERE rowid > 20");
  db.pragma("wal_checkpoint(TRUNCATE)");
  db.close();
  const before = statSync(file).size;
  const attempts: string[] = [];
  const attempt = (name: string, env: Readonly<Record<string, string>>, code: number, says: RegExp) => {
    const { status, stdout, stderr } = vacuum(service.data, env);
    attempts.push(`${name}: ${status}`);
    if (status !== code || !says.test(stdout + stderr)) service.problems.push(`${name}: ${status} ${stdout}${stderr}`);
  };

  writeFileSync(ballast, Buffer.alloc(50 * MIB));
  attempt("too little room for two copies", {}, 6, /mount\/data: \d+ MiB are needed and \d+ MiB are free/);
  if (statSync(file).size !== before) service.problems.push("the database changed although there was no room");
  const TOO_SMALL = /\/tmp: 2\d MiB are needed and 2 MiB are free/;
  attempt("another directory that is too small", { SQLITE_TMPDIR: tmp }, 6, TOO_SMALL);
  rmSync(ballast);
  attempt("a small TMPDIR", { TMPDIR: tmp }, 0, /the space of deleted rows is free/);
  const after = statSync(file).size;
  if (after > before - 18 * MIB) service.problems.push(`the file has ${after} bytes, and had ${before}`);

  await service.start();
  const answers = await service.ask();
  expectResponses(service, answers, { restWrite: /^OK$/, readyz: /^200 ok/ });
  await service.end("SIGTERM");
  const lost = await service.compare();
  execFileSync("umount", ["--lazy", mount, tmp]);
  const recovery = `${attempts.join(", ")}; ${before} to ${after} bytes`;
  return report({ fault: "little room for a vacuum", service, answers, lost, recovery });
};
