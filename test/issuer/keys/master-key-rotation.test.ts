// The rotation of the master key, interrupted before each of its transactions, and the file that changes while it is used.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { formatSecretContext, noScim } from "../../../src/iam/identity-providers/identity-provider.js";
import { seedRoles } from "../../../src/iam/roles/builtin-roles.js";
import { openKeyRing } from "../../../src/issuer/keys/key-ring.js";
import {
  MASTER_KEY_CHECK,
  type MasterKeyFile,
  readMasterKey,
  sealForStore,
} from "../../../src/issuer/keys/master-key.js";
import { resealAll } from "../../../src/issuer/keys/master-key-rotation.js";
import { createTickets } from "../../../src/issuer/oauth/tickets.js";
import { builtinRoleUid } from "../../../src/kernel/ids.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import type { Store } from "../../../src/store/store.js";
import { newDataDir } from "../../support/data-dir.js";
import { childUid, groupRow, rootUid } from "../../support/rows.js";
import { memoryDir } from "../../support/temp-dir.js";

const key = (byte: number) => Buffer.alloc(32, byte).toString("base64");
const LOGINS = 120;
const PROVIDERS = 60;

function fileOf(...bytes: readonly number[]): string {
  const file = join(memoryDir(), "master.key");
  writeFileSync(file, `${bytes.map(key).join("\n")}\n`, { mode: 0o600 });
  return file;
}

let filled: Promise<string> | undefined;

// A store with more values of each kind than a transaction encrypts.
async function createStore(): Promise<Store> {
  filled ??= fillDirectory();
  return openSqlite({ directory: newDataDir(await filled) });
}

async function fillDirectory(): Promise<string> {
  const directory = newDataDir();
  const store = openSqlite({ directory });
  const masterKey = readMasterKey(fileOf(1), false);
  await openKeyRing({ store, masterKey, clock: Date.now, tokenAlgorithm: "ES256" });
  const tickets = createTickets(masterKey);
  const root = rootUid(1);
  await store.write(async (tx) => {
    await seedRoles(tx, 1);
    await tx.table(groupKind).insert(groupRow(root));
    for (let i = 0; i < PROVIDERS; i++) {
      const uid = childUid(root, i);
      const sealedSecret = masterKey.seal(Buffer.from(`secret ${i}`), formatSecretContext(uid));
      const values = {
        uid,
        groupUid: root,
        name: `p${i}`,
        description: "",
        defaultRole: builtinRoleUid("viewer"),
        scim: noScim,
      };
      const oidc = { issuer: "https://issuer.example", clientId: "x", additionalScopes: [], groupsClaim: "" };
      await tx
        .table(identityProviderKind)
        .insert({ ...values, oidc, lacksDefaultRole: false, sealedSecret, createTimeMs: 1, updateTimeMs: 1 });
    }
    for (let i = 0; i < LOGINS; i++) await tickets.put(tx, "code", `secret ${i}`, {} as never, Date.now() + 3_600_000);
  });
  await store.close();
  return directory;
}

// Opens everything with a key file of these keys.
async function openAll(store: Store, ...bytes: readonly number[]): Promise<void> {
  const masterKey = readMasterKey(fileOf(...bytes), false);
  await openKeyRing({ store, masterKey, clock: Date.now, tokenAlgorithm: "ES256" });
  await store.read(async (tx) => {
    const rows = await tx.sealed.listClientSecrets("", PROVIDERS + 1);
    assert.equal(rows.length, PROVIDERS);
    for (const [i, { uid, sealed }] of rows.entries()) {
      assert.equal(masterKey.unseal(sealed, formatSecretContext(uid)).toString(), `secret ${i}`);
    }
    const tickets = createTickets(masterKey);
    for (let i = 0; i < LOGINS; i++) assert.deepEqual(await tickets.find(tx, "code", `secret ${i}`, Date.now()), {});
  });
}

// Fails the write with this number and all after it, as the end of the process does.
function failingAt(store: Store, number: number): Store {
  let writes = 0;
  return {
    ...store,
    write: (unit, options) => (writes++ < number ? store.write(unit, options) : Promise.reject(new Error("killed"))),
  };
}

test("interrupted before each transaction, everything opens with both keys, and a repetition completes it", async () => {
  let isComplete = false;
  let interruptions = 0;
  for (let writes = 0; !isComplete; writes++) {
    const store = await createStore();
    const both = readMasterKey(fileOf(2, 1), false);
    let audited = 0;
    const onCheck = async () => void audited++;
    try {
      await resealAll(failingAt(store, writes), both, onCheck);
      isComplete = true;
    } catch (error) {
      assert.equal((error as Error).message, "killed");
      interruptions++;
      assert.equal(audited, writes === 0 ? 0 : 1);
      await openAll(store, 2, 1);
      // Control: the old key is still needed.
      await assert.rejects(openAll(store, 2), /does not open what is stored/);
      const { check } = await resealAll(store, both, onCheck);
      assert.equal(check, writes === 0);
    }
    assert.equal(audited, 1);
    await openAll(store, 2);
    const again = await resealAll(store, both, onCheck);
    assert.deepEqual(again, { keys: 0, clientSecrets: 0, logins: 0, check: false });
    assert.equal(audited, 1);
    await store.close();
  }
  // The check value; keys; two batches of client secrets and three of logins.
  assert.equal(interruptions, 7);
});

// What a process stores that read the file before a rotation, which ends just before the transaction that stores it.
type LateWriter = (store: Store, masterKey: MasterKeyFile, rotate: () => Promise<unknown>) => Promise<unknown>;
const lateWriters: Record<string, LateWriter> = {
  async "a login"(store, masterKey, rotate) {
    await rotate();
    const tickets = createTickets(masterKey);
    await store.write((tx) => tickets.put(tx, "code", "late", {} as never, Date.now() + 60_000));
  },
  async "a client secret"(store, masterKey, rotate) {
    await rotate();
    await store.write(async (tx) => {
      const [row] = await tx.sealed.listClientSecrets("", 1);
      assert.ok(row);
      const context = formatSecretContext(row.uid);
      await tx.sealed.setClientSecret(row.uid, await sealForStore(tx, masterKey, Buffer.from("secret 0"), context));
    });
  },
  async "the next signing key"(store, masterKey, rotate) {
    const dayMs = 24 * 3_600_000;
    const schedule = { pending: 1_000, active: dayMs, verify: dayMs };
    let nowMs = Date.now();
    const ring = await openKeyRing({ store, masterKey, clock: () => nowMs, tokenAlgorithm: "ES256" });
    await ring.advanceKeys(schedule);
    nowMs += dayMs;
    const changes = await ring.advanceKeys(schedule, async (unit) => {
      await rotate();
      return store.write(unit);
    });
    assert.deepEqual(
      changes.map(({ state }) => state),
      ["pending"],
    );
  },
};

const rotateTo = (store: Store, ...bytes: readonly number[]) =>
  resealAll(store, readMasterKey(fileOf(...bytes), false), async () => {});

for (const [what, write] of Object.entries(lateWriters)) {
  test(`a process that has not read the file of a rotation stores ${what}: nothing needs the old key`, async () => {
    const store = await createStore();
    const file = fileOf(1);
    await write(store, readMasterKey(file, false), async () => {
      writeFileSync(file, `${key(2)}\n${key(1)}\n`);
      await rotateTo(store, 2, 1);
    });
    await openAll(store, 2);
    await store.close();
  });

  test(`a process whose file lacks the key of the store cannot store ${what}`, async () => {
    const store = await createStore();
    const late = write(store, readMasterKey(fileOf(1), false), () => rotateTo(store, 2, 1));
    await assert.rejects(late, /does not open what is stored \(master-key-check\)/);
    await openAll(store, 2);
    await store.close();
  });
}

test("control: what is stored without the key of the store needs the old key", async () => {
  const store = await createStore();
  const late = readMasterKey(fileOf(1), false);
  await rotateTo(store, 2, 1);
  await store.write(async (tx) => {
    const [row] = await tx.sealed.listClientSecrets("", 1);
    assert.ok(row);
    await tx.sealed.setClientSecret(row.uid, late.seal(Buffer.from("secret 0"), formatSecretContext(row.uid)));
  });
  await assert.rejects(openAll(store, 2), /does not open what is stored/);
  await store.close();
});

test("a value that a new key has encrypted makes a key file be read again", () => {
  const file = fileOf(1);
  const server = readMasterKey(file, false);
  const old = server.seal(Buffer.from("old"), "c");
  writeFileSync(file, `${key(2)}\n${key(1)}\n`);
  const sealed = readMasterKey(file, false).seal(Buffer.from("new"), "c");
  assert.equal(server.unseal(sealed, "c").toString(), "new");
  assert.equal(server.unseal(old, "c").toString(), "old");
  assert.equal(server.size, 2);
  const check = server.seal(Buffer.from(MASTER_KEY_CHECK), MASTER_KEY_CHECK);
  assert.equal(server.resealLike(check, sealed, "c"), sealed);
  const changed = server.resealLike(check, old, "c");
  assert.equal(readMasterKey(fileOf(2), false).unseal(changed, "c").toString(), "old");
});

test("a file that does not open what is stored is not used", () => {
  const file = fileOf(1);
  const server = readMasterKey(file, false);
  const check = server.seal(Buffer.from(MASTER_KEY_CHECK), MASTER_KEY_CHECK);
  assert.equal(server.reload(check), false);
  writeFileSync(file, `${key(3)}\n`);
  assert.throws(() => server.reload(check), /does not open what is stored \(master-key-check\)/);
  assert.equal(server.unseal(check, MASTER_KEY_CHECK).toString(), MASTER_KEY_CHECK);
  const foreign = readMasterKey(fileOf(4), false).seal(Buffer.from("x"), "c");
  assert.throws(() => server.unseal(foreign, "c"), /does not open what is stored \(c\)/);
  assert.equal(server.unseal(check, MASTER_KEY_CHECK).toString(), MASTER_KEY_CHECK, "the keys before stay");
  writeFileSync(file, "no key\n");
  assert.throws(() => server.reload(check), /must hold lines of 32 bytes/);
  writeFileSync(file, `${key(3)}\n${key(1)}\n`);
  assert.equal(server.reload(check), true);
  assert.equal(server.size, 2);
});
