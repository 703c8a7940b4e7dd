// What `arbor version` and `arbor docs` do.
import { VERSION } from "../../kernel/version.js";
import { CommandError, invalidFlag } from "../errors.js";
import { formatResponse } from "../output/format.js";
import { escapeControls, withStdout } from "../output/terminal.js";
import { type CommonFlags, createOutputFilter } from "./flags.js";
import { type ApiFlags, resolveApi, sendRequest } from "./service.js";

/** `arbor version`. A service that does not answer is told on standard error, and is no error. */
export async function versionCommand(flags: ApiFlags & Pick<CommonFlags, "output" | "jq">): Promise<void> {
  const api = resolveApi(flags);
  const service = await sendRequest({ method: "GET", api, path: "/version" }).then(
    ({ version }) => (typeof version === "string" ? version : undefined),
    (error: unknown) => {
      if (!(error instanceof CommandError)) throw error;
      process.stderr.write(`arbor: ${error.message}\n`);
      return undefined;
    },
  );
  const response = { client: VERSION, node: process.version, api, ...(service !== undefined && { service }) };
  await withStdout(
    ({ write, terminal }) => write(formatResponse(flags.output, response, () => Object.entries(response), terminal)),
    createOutputFilter(flags),
  );
}

/**
 * `arbor docs`.
 *
 * @param page the name of a page; the first page unless given
 * @throws CommandError INVALID_ARGUMENT for what cannot be the name of a page
 */
export async function docsCommand(
  page: string | undefined,
  { browser, ...flags }: ApiFlags & { readonly browser: boolean },
): Promise<void> {
  if (page !== undefined && !/^[a-z0-9]+(?:[-/][a-z0-9]+)*$/.test(page)) {
    throw invalidFlag("page", "must be the name of a page, such as registry or settings");
  }
  const url = `${resolveApi(flags)}/docs/${page === undefined ? "" : `${page}.html`}`;
  await withStdout(({ write }) => write(`${escapeControls(url)}\n`));
  if (!browser) return;
  const { default: open } = await import("open");
  // The address is printed, so a person can open it by hand.
  await open(url).catch(() => undefined);
}
