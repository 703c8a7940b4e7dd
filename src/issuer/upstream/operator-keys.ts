// The keys of issuers that the operator gives, so that nothing is discovered: from files, which are read again, or from a
// URL. An issuer in a network of its own, such as a cluster, needs no request at all.
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { describeContent, describeReadError } from "../../kernel/files.js";
import { type IssuerKeySource, isKeyUrl, parseKeyFile } from "../../kernel/issuer-keys.js";
import { parseJwks, type UsableKeys } from "./jwks.js";

/** What came of reading a file again. */
export interface KeyFileCheck extends IssuerKeySource {
  readonly hasChanged: boolean;
  /** Why it cannot be used: the keys before stay in use. */
  readonly problem?: string;
}

/** The keys that the operator gives. */
export interface OperatorKeys {
  /** Whether any are in files. */
  readonly hasFiles: boolean;
  /** The keys of an issuer whose keys are in a file. */
  find(issuer: string): UsableKeys | undefined;
  /** The URL of the JWK Set of an issuer that has one here. */
  urlOf(issuer: string): string | undefined;
  /** Reads the files again. Does not throw. */
  reload(): Promise<readonly KeyFileCheck[]>;
}

/**
 * Reads the files.
 *
 * @throws Error naming each file that cannot be used
 */
export function readOperatorKeys(sources: readonly IssuerKeySource[]): OperatorKeys {
  const urls = new Map(sources.filter(isKeyUrl).map(({ issuer, source }) => [issuer, source]));
  const files = new Map<string, { readonly content: Buffer; readonly keys: UsableKeys }>();
  const fileSources = sources.filter((one) => !isKeyUrl(one));

  // Whether the content is another than before.
  function use({ issuer }: IssuerKeySource, content: Buffer): boolean {
    if (files.get(issuer)?.content.equals(content)) return false;
    const keys = parseJwks(parseKeyFile(content));
    if (!keys.any) throw new Error("must hold a key that can be used");
    files.set(issuer, { content, keys });
    return true;
  }

  const problems: string[] = [];
  for (const one of fileSources) {
    try {
      use(one, readFileSync(one.source));
    } catch (error) {
      problems.push(`--issuer-keys: ${describeProblem(one.source, error)}`);
    }
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
  return {
    hasFiles: fileSources.length > 0,
    find: (issuer) => files.get(issuer)?.keys,
    urlOf: (issuer) => urls.get(issuer),
    reload: () =>
      Promise.all(
        fileSources.map(async (one) => {
          try {
            return { ...one, hasChanged: use(one, await readFile(one.source)) };
          } catch (error) {
            return { ...one, hasChanged: false, problem: describeProblem(one.source, error) };
          }
        }),
      ),
  };
}

function describeProblem(file: string, error: unknown): string {
  const isContent = error instanceof Error && !("code" in error);
  return isContent ? describeContent(file, error).join("; ") : describeReadError(file, error);
}
