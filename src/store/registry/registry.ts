// What a registry reports of its images and is configured with: events, contents of manifests, deployments, settings, and
// the names of organisations in its paths.
import { deleteRows, deleteSome, insertRow, putRow, selectRows, sweepRows } from "../rows.js";
import { TransactionPart } from "../statement.js";
import type { DeploymentRow, ManifestRow, RegistryNameRow, RegistrySettingsRow } from "../tables/registry.js";

const findEvent = selectRows("registryEvents", ["id"]);
const insertEvent = insertRow("registryEvents");
const sweepEvents = sweepRows("registryEvents", "id", "timeMs");
const findManifest = selectRows("manifests", ["repoUid", "digest"]);
const putManifest = putRow("manifests", "repoUid", "digest");
const deleteManifests = deleteSome("manifests", "repoUid", ["repoUid", "digest"], ["digest"]);
const findDeployment = selectRows("deployments", ["repoUid"]);
const putDeployment = putRow("deployments", "repoUid");
const deleteDeployment = deleteRows("deployments", "repoUid");
const findSettings = selectRows("registrySettings", ["groupUid"]);
const putSettings = putRow("registrySettings", "groupUid");
const deleteSettings = deleteRows("registrySettings", "groupUid");
const allNames = selectRows("registryNames", []);
const nameOfGroup = selectRows("registryNames", ["groupUid"]);
const groupOfName = selectRows("registryNames", ["name"]);
const putName = putRow("registryNames", "name");

/** How many manifests a part of a deletion deletes: some milliseconds on SQLite. */
const DELETE_BATCH = 64;

/** Events of a registry, contents of its manifests, and its settings. */
export class Registry extends TransactionPart {
  /** Records an event of a registry; false when it is already recorded. */
  async recordEvent(id: string, timeMs: number): Promise<boolean> {
    if (await this.has(findEvent, { id })) return false;
    await this.run(insertEvent, { id, timeMs });
    return true;
  }

  /** Deletes up to `limit` events older than `timeMs`; returns how many, fewer than `limit` when none are left. */
  sweep(timeMs: number, limit: number): Promise<number> {
    return this.countOf(sweepEvents, { bound: timeMs, limit });
  }

  findManifest(repoUid: string, digest: string): Promise<ManifestRow | undefined> {
    return this.first(findManifest, { repoUid, digest });
  }

  putManifest(row: ManifestRow): Promise<void> {
    return this.run(putManifest, row);
  }

  /** Deletes some manifests of a repo; resolves to how many, which is zero when none is left. */
  async deleteManifests(repoUid: string): Promise<number> {
    return (await this.all(deleteManifests, { repoUid, limit: DELETE_BATCH })).length;
  }

  findDeployment(repoUid: string): Promise<DeploymentRow | undefined> {
    return this.first(findDeployment, { repoUid });
  }

  /** Inserts or replaces a deployment. */
  putDeployment(row: DeploymentRow): Promise<void> {
    return this.run(putDeployment, row);
  }

  deleteDeployment(repoUid: string): Promise<void> {
    return this.run(deleteDeployment, { repoUid });
  }

  findSettings(groupUid: string): Promise<RegistrySettingsRow | undefined> {
    return this.first(findSettings, { groupUid });
  }

  /** Inserts or replaces the settings of a group. */
  putSettings(row: RegistrySettingsRow): Promise<void> {
    return this.run(putSettings, row);
  }

  deleteSettings(groupUid: string): Promise<void> {
    return this.run(deleteSettings, { groupUid });
  }

  /** The names of all organisations in paths of the registry, those of deleted organisations included. */
  listNames(): Promise<RegistryNameRow[]> {
    return this.all(allNames, {});
  }

  /** The name of a root group in paths of the registry; undefined where it was never verified. */
  findName(groupUid: string): Promise<RegistryNameRow | undefined> {
    return this.first(nameOfGroup, { groupUid });
  }

  /** The root group, which may be deleted, with this name in paths of the registry. */
  findByName(name: string): Promise<RegistryNameRow | undefined> {
    return this.first(groupOfName, { name });
  }

  /** Records a name, or replaces the row of the same name. */
  putName(row: RegistryNameRow): Promise<void> {
    return this.run(putName, row);
  }
}
