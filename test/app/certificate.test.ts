// What replaces the certificate that is served, and what the log says of what does not.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { readCertificate, watchCertificate } from "../../src/app/reload.js";
import { resolveSettings } from "../../src/config/config.js";
import type { TlsContent } from "../../src/config/tls.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { tempDir } from "../support/temp-dir.js";
import { copyTlsFile, TLS_FILES } from "../support/tls-files.js";
import { waitUntil } from "../support/wait-until.js";

const contentOf = (name: string) => readFileSync(new URL(name, TLS_FILES));
const [FIRST, SECOND] = [contentOf("cert.pem"), contentOf("other-cert.pem")];

// The validity of the two overlaps: the second begins and ends some days after the first.
const ONLY_FIRST = Date.UTC(2026, 10, 21);
const BOTH = Date.UTC(2026, 11, 1);
const ONLY_SECOND = Date.UTC(2126, 9, 28);
const NONE = Date.UTC(2127, 0, 1);

const KEPT = "the TLS certificate cannot be replaced: the one before stays in use";
const REPLACED = "the TLS certificate was replaced";
const EXPIRED = "has expired: it was valid until";

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly problem?: string;
}

/** Watches a pair of files; `nowMs` is what the clock says at first. */
function startWatch(prefix: "" | "other-", nowMs: number, checkMs?: number) {
  const directory = tempDir();
  const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  const write = (next: "" | "other-") => {
    copyTlsFile(`${next}cert.pem`, cert);
    copyTlsFile(`${next}key.pem`, key);
  };
  write(prefix);
  // The flag names one, the environment the other.
  const settings = resolveSettings({ flags: { tlsCert: cert }, env: { ARBOR_TLS_KEY: key }, checkFiles: true });
  const current = readCertificate(settings);
  assert.ok(current !== undefined);
  const lines: Line[] = [];
  const now = { ms: nowMs };
  const served: TlsContent[] = [current];
  const watch = watchCertificate({
    ...{ settings, current, clock: () => now.ms, ...(checkMs && { checkMs }) },
    replace: (content) => void served.push(content),
    logger: createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) }),
  });
  return { watch, cert, key, write, now, lines, findServed: () => served.at(-1)?.cert };
}

test("an expired certificate does not replace a valid one, and replaces one that has expired too", async () => {
  const { watch, cert, write, now, lines, findServed } = startWatch("other-", ONLY_SECOND);
  write("");
  await watch.reload();
  assert.deepEqual(findServed(), SECOND);
  assert.deepEqual([lines[0]?.level, lines[0]?.msg], ["error", KEPT]);
  assert.match(lines[0]?.problem ?? "", new RegExp(`^--tls-cert: ${cert} ${EXPIRED} Oct 27 22:34:35 2126 GMT$`));
  now.ms = NONE;
  await watch.reload();
  watch.stop();
  assert.deepEqual(findServed(), FIRST);
  assert.deepEqual([lines[1]?.level, lines[1]?.msg], ["info", REPLACED]);
  assert.equal(lines[2]?.level, "warn");
  assert.match(lines[2]?.msg ?? "", new RegExp(`^the TLS certificate that is served ${EXPIRED}`));
});

test("a certificate that is not yet valid replaces a valid one when it is valid itself", async () => {
  const { watch, cert, write, now, lines, findServed } = startWatch("", ONLY_FIRST);
  write("other-");
  await watch.reload();
  assert.deepEqual(findServed(), FIRST);
  assert.equal(lines[0]?.problem, `--tls-cert: ${cert} is not valid before Nov 23 13:04:20 2026 GMT`);
  now.ms = BOTH;
  await watch.reload();
  watch.stop();
  assert.deepEqual(findServed(), SECOND);
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    [KEPT, REPLACED],
  );
});

test("what does not replace the certificate is logged once, and looked at again until it does", async () => {
  const { watch, write, now, lines, findServed } = startWatch("", ONLY_FIRST, 10);
  write("other-");
  await waitUntil(() => lines.length > 0);
  await delay(200);
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    [KEPT],
  );
  now.ms = BOTH;
  await waitUntil(() => lines.length >= 2);
  watch.stop();
  assert.deepEqual(findServed(), SECOND);
});

test("an expired certificate is served at the start, with a warning", () => {
  const { watch, lines } = startWatch("", NONE);
  watch.stop();
  assert.deepEqual(
    lines.map(({ level }) => level),
    ["warn"],
  );
  // The control: a valid one has none.
  const valid = startWatch("", BOTH);
  valid.watch.stop();
  assert.deepEqual(valid.lines, []);
});

const WHOLE = "must contain whole blocks in PEM: one of them has no beginning or no end";
const NO_KEY = "must contain a private key in PEM without a passphrase";

const faults: readonly {
  readonly reason: string;
  readonly damage: (cert: string, key: string) => void;
  readonly problem: (cert: string, key: string) => string;
}[] = [
  {
    reason: "a truncated chain",
    damage: (cert) => writeFileSync(cert, Buffer.concat([SECOND, FIRST.subarray(0, 200)])),
    problem: (cert) => `--tls-cert: ${cert} ${WHOLE}`,
  },
  {
    reason: "a truncated certificate",
    damage: (cert) => writeFileSync(cert, SECOND.subarray(0, 200)),
    problem: (cert) => `--tls-cert: ${cert} must contain a certificate in PEM`,
  },
  {
    reason: "a truncated key",
    damage: (_, key) => writeFileSync(key, contentOf("other-key.pem").subarray(0, 100)),
    problem: (_, key) => `ARBOR_TLS_KEY: ${key} ${NO_KEY}`,
  },
  {
    reason: "an empty key",
    damage: (_, key) => writeFileSync(key, ""),
    problem: (_, key) => `ARBOR_TLS_KEY: ${key} ${NO_KEY}`,
  },
  {
    reason: "the key of another certificate",
    damage: (cert) => writeFileSync(cert, FIRST),
    problem: (cert, key) => `ARBOR_TLS_KEY: ${key} is not the key of the certificate ${cert}, which --tls-cert names`,
  },
  {
    reason: "no certificate",
    damage: (cert) => rmSync(cert),
    problem: (cert) => `--tls-cert: cannot read ${cert}: no such file`,
  },
  {
    reason: "a directory, and an empty certificate",
    damage: (cert, key) => {
      writeFileSync(cert, "");
      rmSync(key);
      mkdirSync(key);
    },
    problem: (cert, key) =>
      `--tls-cert: ${cert} must contain a certificate in PEM\nARBOR_TLS_KEY: cannot read ${key}: is a directory`,
  },
];

for (const { reason, damage, problem } of faults) {
  test(`${reason} is logged with what named it, and as at the start`, async () => {
    const { watch, cert, key, write, lines, findServed } = startWatch("", BOTH);
    write("other-");
    damage(cert, key);
    await watch.reload();
    assert.deepEqual([lines[0]?.level, lines[0]?.msg, lines[0]?.problem], ["error", KEPT, problem(cert, key)]);
    assert.deepEqual(findServed(), FIRST);
    const start = () => resolveSettings({ flags: { tlsCert: cert }, env: { ARBOR_TLS_KEY: key }, checkFiles: true });
    assert.throws(start, { message: problem(cert, key) });
    // The control: the whole pair replaces it.
    rmSync(key, { recursive: true });
    write("other-");
    await watch.reload();
    watch.stop();
    assert.deepEqual(findServed(), SECOND);
    assert.equal(lines[1]?.msg, REPLACED);
  });
}
