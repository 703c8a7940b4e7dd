// Makes or restores a backup and ends with SIGKILL as a step begins. Arguments: `backup` or `restore`, the step, the
// directory that is read, the directory that is written.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createBackup } from "../../../src/store/backup/create-backup.js";
import { readManifest } from "../../../src/store/backup/manifest.js";
import { restoreBackup } from "../../../src/store/backup/restore-backup.js";
import { restoreRow } from "./backup-kit.js";

const [command, last, from = "", to = ""] = process.argv.slice(2);
const onStep = (step: string) => {
  if (step === last) process.kill(process.pid, "SIGKILL");
};
if (command === "backup") {
  await createBackup({ data: from, target: to, onStep, readMasterKey: () => readFileSync(join(from, "master.key")) });
} else {
  await restoreBackup({
    backup: from,
    manifest: readManifest(from),
    data: to,
    masterKey: readFileSync(join(from, "backup.key")),
    writesMasterKey: true,
    checkMasterKey: () => {},
    auditRow: restoreRow,
    keepSessions: false,
    onStep,
  });
}
