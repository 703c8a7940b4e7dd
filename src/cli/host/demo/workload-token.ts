// The OIDC token of the workload in a file, as platforms hand them to workloads:
// short-lived, and replaced long before it runs out.
import { replaceFile } from "../../remote/auth/replace-file.js";

/** How long a token lives, in seconds; and how often there is a new one, in milliseconds. */
const LIFE_S = 900;
const RENEW_MS = 300_000;

/**
 * Keeps a fresh token in a file that is its owner's alone.
 *
 * @param sign makes a token that lives so many seconds
 * @param onProblem told when the file could not be written; it is tried again
 * @returns what ends it; it resolves when nothing is written any more
 */
export async function keepFresh(
  file: string,
  sign: (lifeS: number) => Promise<string>,
  onProblem: (error: unknown) => void,
): Promise<{ stop(): Promise<void> }> {
  const renew = async () => replaceFile(file, `${await sign(LIFE_S)}\n`, 0o600);
  let writing = renew();
  await writing;
  const timer = setInterval(() => {
    writing = writing.then(renew).catch(onProblem);
  }, RENEW_MS);
  return {
    async stop() {
      clearInterval(timer);
      await writing;
    },
  };
}
