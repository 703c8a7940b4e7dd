// A directory, a shell and a server in which the commands of the documentation run as they stand.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Ended, type Running, run } from "../cli/remote/auth/process.js";
import { freePort } from "../support/free-port.js";
import { scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";

const ARBOR = [process.execPath, ...scriptArguments("src/main.ts")].map((part) => `'${part}'`).join(" ");

export type DocsWorld = Awaited<ReturnType<typeof createDocsWorld>>;

/** @param settings variables of the server, and of the commands on its host */
export async function createDocsWorld(settings: Readonly<Record<string, string>> = {}) {
  const directory = tempDir();
  const listen = `127.0.0.1:${await freePort()}`;
  const data = join(directory, "data");
  const api = `http://${listen}`;
  const programs = join(directory, "bin");
  for (const folder of ["backups", "bin"]) mkdirSync(join(directory, folder));
  writeFileSync(join(programs, "arbor"), `#!/bin/sh\nexec ${ARBOR} "$@"\n`, { mode: 0o755 });
  const env = {
    ARBOR_DATA: data,
    ARBOR_LISTEN: listen,
    ARBOR_API: api,
    ARBOR_CREDENTIALS: join(directory, "credentials.json"),
    ARBOR_LOG_LEVEL: "error",
    PATH: `${programs}${delimiter}${process.env.PATH}`,
    ...settings,
  };
  const places = [
    ["http://127.0.0.1:8080", api],
    ["/var/backups/arbor", join(directory, "backups")],
    ["/var/lib/arbor", data],
  ] as const;
  let owner: { readonly TOKEN: string; readonly ORG: string } | undefined;

  /** @param more variables in place of those that are set */
  function runShell(commands: string, more: Readonly<Record<string, string>> = {}): Running {
    const script = [
      "set -euo pipefail",
      `cd '${directory}'`,
      'curl() { command curl --silent --show-error --fail-with-body "$@"; }',
      // Where the pages suppose that things are.
      places.reduce(
        (text, [onPage, here]) => text.replaceAll(onPage, here),
        commands.replaceAll("npm run -s arbor -- ", "arbor "),
      ),
    ].join("\n");
    return run("bash", ["-c", script], { ...env, ...(owner && { ...owner, ARBOR_TOKEN: owner.TOKEN }), ...more });
  }

  return {
    api,
    directory,
    data,
    run: runShell,
    /** What commands print, with the places of the pages. */
    asOnPage: (printed: string) => places.reduce((text, [onPage, here]) => text.replaceAll(here, onPage), printed),
    async bootstrap(): Promise<void> {
      const { stdout } = await succeed(runShell("arbor bootstrap --org acme.example --json"));
      const { token, group } = JSON.parse(stdout) as { token: string; group: string };
      owner = { TOKEN: token, ORG: group };
    },
    async serve(): Promise<Running> {
      const server = run("bash", ["-c", `exec ${ARBOR} serve`], env);
      await waitUntil(async () => (await fetch(`${api}/readyz`).catch(() => undefined))?.status === 200);
      return server;
    },
  };
}

export async function succeed(running: Running): Promise<Ended> {
  const ended = await running.ended;
  assert.equal(ended.code, 0, ended.stderr + ended.stdout);
  return ended;
}
