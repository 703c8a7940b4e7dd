// `arbor-platform/server`: runs the platform in another program, which may mount services beside it.
import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { resolveSettings, type SettingName, SettingsError } from "../config/config.js";
import { describeUnknownKey, findOtherVariables } from "../config/names.js";
import { type FormerSettingName, listAcceptedNames } from "../config/settings.js";
import { mount as mountService } from "../pipeline/mount.js";
import type { Mount, MountOptions } from "../pipeline/mount-options.js";
import { startApp } from "./app.js";

export { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
export { SettingsError } from "../config/config.js";
export type { Principal } from "../kernel/principal.js";
export {
  type Mount,
  type MountAccess,
  type MountHttpRule,
  type MountOptions,
  principalKey,
} from "../pipeline/mount-options.js";

export interface ServeOptions {
  /**
   * The flags of `arbor serve` in camelCase. Other settings are read from the environment, such as `ARBOR_LISTEN`, and
   * from the file in `ARBOR_CONFIG`.
   */
  readonly settings?: { readonly [K in SettingName | FormerSettingName]?: string | boolean };
  /** Services to serve beside the platform's own; see {@link mount}. */
  readonly mounts?: readonly Mount[];
}

/**
 * Mounts a service. Its handlers run outside any transaction and may await anything. Errors reach callers as from
 * connect's own servers, and nothing is recorded in the audit log. The caller is in the context values under
 * `principalKey`. A method without an implementation fails with UNIMPLEMENTED.
 *
 * @param impl as for `router.service(desc, impl)`; its methods are called on it
 * @throws TypeError when the service has no package, or `access` or `http` names a method that it does not have; naming
 * the method, when it has no access rule or one that cannot be checked, or takes a stream and has a scope or an HTTP rule
 * @example mount(BookService, books, { access: "authenticated", http: { getBook: { get: "/v1/{name=books/*}" } } })
 */
export function mount<S extends DescService>(
  desc: S,
  impl: Partial<ServiceImpl<S>>,
  options: MountOptions<S> = {},
): Mount {
  return mountService(desc, impl, options);
}

/** A running server. */
export interface RunningServer {
  /** The URL of the address on which it listens. */
  readonly url: string;
  /** Stops accepting, lets calls in flight finish, and closes the store. */
  stop(): Promise<void>;
}

/**
 * Opens the data directory or the database and serves the platform. The program handles signals and uncaught errors
 * itself.
 *
 * @throws SettingsError naming every wrong setting; TypeError when a mounted service would take calls of another;
 * Error when the installation cannot be opened or the address is taken
 */
export async function serve({ settings = {}, mounts = [] }: ServeOptions = {}): Promise<RunningServer> {
  const accepted = new Set(listAcceptedNames());
  const unknown = Object.keys(settings).filter((name) => !accepted.has(name));
  if (unknown.length > 0) throw new SettingsError(unknown.map((name) => `settings.${describeUnknownKey(name)}`));
  const { ARBOR_CONFIG: file } = process.env;
  const resolved = resolveSettings({ flags: settings, env: process.env, ...(file && { file }), checkFiles: true });
  const { ignored: ignoredVariables } = findOtherVariables(process.env);
  const app = await startApp({ settings: resolved, ignoredVariables, mounts });
  return { url: app.url, stop: app.stop };
}
