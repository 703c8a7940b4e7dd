// The directory of a demo. What identities and people are known by names the
// provider's port, so a demo that is started again needs the same.
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../../remote/auth/replace-file.js";

const MARK = "demo.json";

/** The directory of a demo. */
export interface DemoDirectory {
  /** Its absolute path. */
  readonly directory: string;
  /** The port of the provider; 0 in a new directory. */
  readonly providerPort: number;
}

/**
 * Opens a directory, which must be empty, a demo's, or not there yet. Anything else may be an
 * installation in earnest, and nobody may get an owner there who signs in without a password.
 *
 * @throws Error when it holds something else
 */
export async function openDemoDirectory(directory: string): Promise<DemoDirectory> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const names = await readdir(directory);
  if (names.length === 0) return { directory, providerPort: 0 };
  const providerPort = names.includes(MARK) ? portIn(await readFile(join(directory, MARK), "utf8")) : undefined;
  if (providerPort !== undefined) return { directory, providerPort };
  throw new Error(`${directory} holds something that is no demo: choose an empty directory, or none, with --data`);
}

/** Marks the directory as a demo's, and remembers the port of its provider. */
export async function markDemoDirectory({ directory }: DemoDirectory, providerPort: number): Promise<void> {
  await replaceFile(join(directory, MARK), `${JSON.stringify({ providerPort })}\n`, 0o600);
}

function portIn(text: string): number | undefined {
  try {
    const { providerPort } = JSON.parse(text) as { readonly providerPort?: unknown };
    return Number.isInteger(providerPort) ? (providerPort as number) : undefined;
  } catch {
    return undefined;
  }
}
