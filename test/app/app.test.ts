// What is left of a service that cannot be started.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { startApp } from "../../src/app/app.js";
import { resolveSettings } from "../../src/config/config.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { freePort } from "../support/free-port.js";
import { tempDir } from "../support/temp-dir.js";

const logger = createLogger("silent");

function settingsOf(data: string, port: number) {
  return resolveSettings({ flags: { data, listen: `127.0.0.1:${port}`, accessLog: false }, env: {} });
}

test("a service whose last write at start fails leaves neither its port nor its store open", async () => {
  const data = tempDir();
  const first = await startApp({ settings: settingsOf(data, 0), logger });
  await first.stop();
  const plant = (sql: string) => {
    const database = openDatabase(join(data, "arbor.db"));
    database.exec(sql);
    database.close();
  };
  plant(`CREATE TRIGGER planted BEFORE INSERT ON settings WHEN NEW.name = 'origin'
    BEGIN SELECT RAISE(ABORT, 'planted fault'); END`);
  const port = await freePort();
  const settings = settingsOf(data, port);
  await assert.rejects(startApp({ settings, logger }), /planted fault/);
  await assert.rejects(fetch(`http://127.0.0.1:${port}/healthz`), "nothing listens");

  plant("DROP TRIGGER planted");
  const second = await startApp({ settings, logger });
  assert.equal((await fetch(`${second.url}/healthz`)).status, 200);
  await second.stop();
});

test("a service whose address is taken leaves its store closed", async () => {
  const data = tempDir();
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const settings = settingsOf(data, (other.address() as AddressInfo).port);
  await assert.rejects(startApp({ settings, logger }), { code: "EADDRINUSE" });
  other.close();
  await once(other, "close");
  const app = await startApp({ settings, logger });
  await app.stop();
});
