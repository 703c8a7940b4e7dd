// When old rows of the audit log may be deleted.
import type { Store } from "../store/port.js";
import { isOlder, OLDEST_VERSION } from "../store/version.js";

/** Versions before this one know no checkpoints: their `arbor audit verify` rejects a log whose beginning was deleted. */
const FIRST_VERSION = "0.6.0";

/** Finds why nothing may be deleted yet; undefined where it may. */
export async function findRetentionObstacle({ read }: Pick<Store, "read">): Promise<string | undefined> {
  const oldest = await read((tx) => tx.settings.get(OLDEST_VERSION));
  if (oldest !== undefined && !isOlder(oldest, FIRST_VERSION)) return undefined;
  const versions = oldest === undefined ? "any version" : `version ${oldest}`;
  return `${versions} of Arbor may open the database, and those before ${FIRST_VERSION} know no checkpoints; run arbor migrate --contract once no older server runs`;
}
