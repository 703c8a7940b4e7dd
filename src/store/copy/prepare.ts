// What must hold before a copy begins: the source is an installation in the form of this version, and the target is
// empty or an unfinished copy of the same installation.
import { sha256 } from "../../kernel/digest.js";
import { failedPrecondition } from "../../kernel/errors.js";
import { assertNoUnknownObjects } from "../check/objects.js";
import { type CopyMark, formatMark, parseMark } from "../copy-mark.js";
import { dataMigrations } from "../migrate/data-migrations.js";
import { listSchemaMigrations } from "../migrate/schema-migrations.js";
import {
  buildCreation,
  expansionNeeded,
  needsContracting,
  needsExpanding,
  readState,
  readStateAsync,
} from "../migrate/state.js";
import { noInstallation } from "../sqlite/data-directory.js";
import { assertMayOpen, OLDEST_VERSION, VERSION } from "../version.js";
import type { CopySource, CopyTarget } from "./databases.js";

/**
 * Rejects a source that this version cannot copy.
 *
 * @throws ApiError FAILED_PRECONDITION with the command that makes it ready
 */
export async function assertCopyable({ name, dialect, state, query }: CopySource): Promise<void> {
  if (state.isEmpty) throw noInstallation(name, "it has no tables of one");
  assertMayOpen(state.oldestVersion);
  // A newer version may have expanded it, and this one does not know what that added.
  if (state.lastSchemaMs > (listSchemaMigrations(dialect, 0).at(-1)?.createdMs ?? 0)) {
    throw failedPrecondition(
      "DATABASE_VERSION",
      `a newer version of arbor than ${VERSION} has expanded the database: copy it with that version`,
    );
  }
  if (needsExpanding(state)) throw expansionNeeded();
  if (needsContracting(state)) {
    throw failedPrecondition(
      "DATABASE_VERSION",
      "the database has rows in the form of an older version: run `arbor migrate --contract` with the same settings " +
        "(docs/upgrade.md)",
    );
  }
  await assertNoUnknownObjects(name, dialect, query);
}

/**
 * Identifies the installation in a source. Its copies have the same value.
 *
 * @param checkName the setting whose value was sealed when the installation was created
 */
export async function identifySource(source: CopySource, checkName: string): Promise<string> {
  const check = await source.setting(checkName);
  if (check === undefined) throw noInstallation(source.name, "it was never completed");
  return sha256(check).toString("hex").slice(0, 32);
}

/**
 * Creates the tables of an empty target with the mark, or finds the mark of the same copy.
 *
 * @returns whether an earlier copy began
 * @throws ApiError FAILED_PRECONDITION when the target has anything else, also triggers and the like
 */
export async function prepareTarget(target: CopyTarget, mark: CopyMark): Promise<boolean> {
  const { dialect } = target;
  const state = await readStateAsync(readState(dialect, dataMigrations), target.query);
  if (!state.isEmpty) assertSameCopy(parseMark(state.oldestVersion), target.name, mark);
  else {
    // Fails where a server has created the tables since.
    await target.changeSchema([
      ...buildCreation(dialect, dataMigrations),
      `UPDATE settings SET value = '${formatMark(mark).replaceAll("'", "''")}' WHERE name = '${OLDEST_VERSION}'`,
    ]);
  }
  await assertNoUnknownObjects(target.name, dialect, target.query);
  return !state.isEmpty;
}

function assertSameCopy(found: CopyMark | undefined, name: string, mark: CopyMark): void {
  const createNotEmptyError = (why: string) => failedPrecondition("TARGET_NOT_EMPTY", `--to: ${name} ${why}`);
  if (found === undefined) {
    throw createNotEmptyError(
      "has an installation: choose an empty target, or compare both with `arbor copy --verify`",
    );
  }
  if (found.source !== mark.source) {
    throw createNotEmptyError(
      `is an unfinished copy of another installation, ${found.from}: empty it, or name another target`,
    );
  }
  if (found.version !== mark.version) {
    throw createNotEmptyError(
      `is an unfinished copy by version ${found.version}: go on with that version, or empty it`,
    );
  }
}
