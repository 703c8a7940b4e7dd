// Starts on a disk that is read-only, full, broken or not mounted: none makes a new installation, each says which path has
// which fault, and the exit code says whether the supervisor starts the service again (docs/cli.md).
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { fillDisk, mountImage } from "./disk-faults.js";
import { expectResponses, type HostFault, report, startWritten } from "./fault-report.js";
import type { HostService } from "./host-service.js";

interface StartFault {
  readonly name: string;
  readonly begin: () => void;
  readonly end: () => void;
  readonly flags?: readonly string[];
  readonly code: number;
  readonly says: RegExp;
}

const START_MS = 30_000;

/** Runs `arbor serve` until it ends by itself. */
function serve(data: string, flags: readonly string[]) {
  const args = ["serve", "--data", data, "--listen", "127.0.0.1:0", "--metrics-listen", "off", "--log-level", "silent"];
  return spawnSync(process.execPath, [...scriptArguments("src/main.ts"), ...args, ...flags], {
    cwd: PROJECT,
    env: environmentWithoutSettings(),
    encoding: "utf8",
    timeout: START_MS,
  });
}

function tryStart(service: HostService, { name, begin, end, flags = [], code, says }: StartFault): string {
  begin();
  const { status, signal, stderr } = serve(service.data, flags);
  if (status !== code) service.problems.push(`${name}: ended with ${status ?? signal} and not ${code}: ${stderr}`);
  if (!says.test(stderr) || !stderr.includes(service.data)) service.problems.push(`${name}: said ${stderr}`);
  end();
  return `${name} ${status}`;
}

export const startOnFaultyDisk: HostFault = async (directory) => {
  const mount = mountImage(directory, "64M");
  const image = join(directory, "disk");
  const service = await startWritten({ data: join(mount, "data") });
  const { data } = service;
  await service.stopWriters();
  await service.end("SIGTERM");
  const remount = (how: string) => execFileSync("mount", ["-o", `remount,${how}`, mount]);
  const unmount = () => execFileSync("umount", [mount]);
  const mountAgain = () => execFileSync("mount", ["-o", "loop", image, mount]);
  const NOTHING = /no installation in \S+: there is no such directory; mount its disk, /;
  const LOST = /the database of \S+ is lost: it has master\.key, and /;
  const database = join(data, "arbor.db");
  const endings = [
    { name: "read-only", begin: () => remount("ro"), end: () => remount("rw"), code: 8, says: /\(EROFS\)/ },
    {
      name: "full",
      begin: () => fillDisk(join(mount, "ballast")),
      end: () => rmSync(join(mount, "ballast")),
      code: 8,
      says: /no space left \(ENOSPC\)/,
    },
    { name: "not mounted", begin: unmount, end: mountAgain, flags: ["--no-create"], code: 6, says: NOTHING },
    {
      name: "not mounted, with the master key on another disk",
      begin() {
        unmount();
        mkdirSync(data, { mode: 0o700 });
        writeFileSync(join(data, "master.key"), `${"A".repeat(43)}=\n`, { mode: 0o600 });
      },
      end() {
        if (existsSync(database)) service.problems.push("a database was created beside a master key");
        rmSync(data, { recursive: true });
        mountAgain();
      },
      code: 6,
      says: LOST,
    },
    {
      name: "database gone",
      begin: () => renameSync(database, join(mount, "away")),
      end: () => renameSync(join(mount, "away"), database),
      code: 6,
      says: LOST,
    },
  ].map((fault) => tryStart(service, fault));

  await service.start();
  const answers = await service.ask();
  expectResponses(service, answers, { restWrite: /^OK$/, grpcWrite: /^OK$/, restRead: /^OK$/, readyz: /^200 ok/ });
  await service.end("SIGTERM");
  const lost = await service.compare();

  // The device loses all that it has, and what the kernel still knew of it is forgotten.
  execFileSync("sync");
  truncateSync(image, 0);
  writeFileSync("/proc/sys/vm/drop_caches", "3");
  const broken = { name: "broken", begin() {}, end() {}, code: 8, says: /\((EIO|EUCLEAN|EBADMSG)\)/ };
  endings.push(tryStart(service, broken));
  execFileSync("umount", ["--lazy", mount]);

  return report({ fault: "start on a faulty disk", service, answers, lost, recovery: endings.join(", ") });
};
