// SIGKILL at every step of a backup and of a restore.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type BackupStep, createBackup } from "../../../src/store/backup/create-backup.js";
import { backupFiles, readManifest } from "../../../src/store/backup/manifest.js";
import { type RestoreStep, restoreBackup } from "../../../src/store/backup/restore-backup.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import type { Store } from "../../../src/store/store.js";
import { spawn } from "../../support/child-process.js";
import { PROJECT, scriptArguments } from "../../support/project.js";
import { tempDir } from "../../support/temp-dir.js";
import { openWithMarker, readMarker, restoreRow } from "./backup-kit.js";

const backupSteps: readonly BackupStep[] = ["copy", "check", "digest", "key", "manifest", "done"];
const restoreSteps: readonly RestoreStep[] = ["verify", "copy", "change", "key", "database", "done"];

async function kill(command: string, step: string, from: string, to: string): Promise<void> {
  const args = [...scriptArguments("test/store/backup/killed.ts"), command, step, from, to];
  const child = spawn(process.execPath, args, { cwd: PROJECT, stdio: ["ignore", "ignore", "inherit"] });
  const [, signal] = await once(child, "close");
  assert.equal(signal, "SIGKILL", `killed as ${step} began`);
}

function restore(backup: string, data: string) {
  return restoreBackup({
    backup,
    manifest: readManifest(backup),
    data,
    masterKey: readFileSync(join(backup, backupFiles.masterKey)),
    writesMasterKey: true,
    checkMasterKey: () => {},
    auditRow: restoreRow,
    keepSessions: false,
  });
}

describe("kill -9", { concurrency: 3 }, () => {
  let [data, complete] = ["", ""];
  let store: Store;
  before(async () => {
    ({ data, store } = await openWithMarker());
    complete = join(tempDir(), "complete");
    const readMasterKey = () => readFileSync(join(data, "master.key"));
    await createBackup({ data, target: complete, readMasterKey });
  });
  after(() => store.close());

  for (const step of backupSteps) {
    it(`of a backup as ${step} begins leaves a whole backup or none, and the next backup replaces it`, async () => {
      const target = join(tempDir(), "backup");
      const to = join(tempDir(), "data");
      await kill("backup", step, data, target);
      if (step === "done") {
        await assert.rejects(createBackup({ data, target }), /is not empty: it has manifest.json/);
        await restore(target, to);
        assert.equal(readMarker(join(to, "arbor.db")), "0");
        return;
      }
      assert.throws(() => readManifest(target), /there is no complete backup/);
      await createBackup({ data, target });
      assert.deepEqual(readdirSync(target).sort(), [backupFiles.database, backupFiles.manifest]);
      assert.equal(readMarker(join(target, backupFiles.database)), "0");
    });
  }

  for (const step of restoreSteps) {
    it(`of a restore as ${step} begins leaves the whole database or none, and the next restore completes it`, async () => {
      const to = join(tempDir(), "data");
      await kill("restore", step, complete, to);
      const isDone = step === "done";
      assert.equal(existsSync(join(to, "arbor.db")), isDone);
      if (isDone) await assert.rejects(restore(complete, to), /is not empty: it has/);
      else {
        // A server must not create a database where the restore is about to put one.
        if (step !== "verify") assert.throws(() => openSqlite({ directory: to }), /a restore into .* was interrupted/);
        await restore(complete, to);
      }
      assert.equal(readMarker(join(to, "arbor.db")), "0");
      assert.deepEqual(readFileSync(join(to, "master.key")), readFileSync(join(data, "master.key")));
      const restored = openSqlite({ directory: to, exclusive: true });
      await restored.check();
      await restored.close();
    });
  }

  it("of a restore would let a server create a database, were its own directory and the key not in the way", async () => {
    const to = join(tempDir(), "data");
    await kill("restore", "database", complete, to);
    rmSync(join(to, "restore.partial"), { recursive: true });
    assert.throws(() => openSqlite({ directory: to }), /is lost: it has master\.key, and no arbor\.db/);
    rmSync(join(to, "master.key"));
    await openSqlite({ directory: to }).close();
    assert.equal(readMarker(join(to, "arbor.db")), undefined);
  });
});
