// The demo as a whole: a service like any other, a provider to sign in with, and
// an organisation that uses both.
import { join } from "node:path";
import { type App, startApp } from "../../../app/app.js";
import { connectTo, exchangedToken } from "../../../client/index.js";
import { isLoopback, resolveSettings, SettingsError, settings } from "../../../config/config.js";
import { resolveOrigin } from "../../../config/origin.js";
import { replaceFile } from "../../remote/auth/replace-file.js";
import { type DemoDirectory, markDemoDirectory, openDemoDirectory } from "./demo-directory.js";
import { ensureRoot, fillOrganisation, type SampleOrganisation } from "./organisation.js";
import { alice, WORKLOAD_SUBJECT } from "./people.js";
import { type DemoProvider, startDemoProvider } from "./provider.js";
import { keepFresh } from "./workload-token.js";

/** What the provider knows the service as. */
const CLIENT_ID = "arbor";
/** How long what Alice sets the organisation up with lives, in seconds. */
const SETUP_S = 60;

/** How to start the demo. */
export interface DemoOptions {
  /** The absolute path of the directory it is kept in; made if missing. */
  readonly data: string;
  /** The address of the service, such as `127.0.0.1:8080`. */
  readonly listen: string;
}

/** A running demo. */
export interface Demo {
  /** Where the service is. */
  readonly url: string;
  /** Where the provider is. */
  readonly issuer: string;
  readonly data: string;
  /** The file that always holds an OIDC token of the workload. */
  readonly workloadToken: string;
  readonly organisation: SampleOrganisation;
  stop(): Promise<void>;
}

/**
 * Starts the service, the provider, and makes whatever of the sample organisation is not there yet.
 *
 * @throws SettingsError for an address that is not of this machine alone
 * @throws Error when an address is taken, or the directory holds something that is no demo
 */
export async function startDemo({ data, listen }: DemoOptions): Promise<Demo> {
  requireThisMachine(listen);
  const place = await openDemoDirectory(data);
  const started: { stop(): Promise<void> }[] = [];
  const stop = async () => {
    for (const one of started.splice(0).reverse()) await one.stop();
  };
  try {
    const provider = await startProvider(place);
    started.push(provider);
    const { issuer } = provider;
    const { app, url } = await startService(place, issuer, listen);
    started.push(app);
    provider.serve(CLIENT_ID, `${url}/oauth/callback`);
    const organisation = await organisationIn(app, url, provider);
    const workloadToken = join(data, "ci.token");
    const claims = { sub: WORKLOAD_SUBJECT, aud: url };
    const onProblem = (error: unknown) => process.stderr.write(`arbor: ${workloadToken}: ${error}\n`);
    started.push(await keepFresh(workloadToken, (lifeS) => provider.sign(claims, lifeS), onProblem));
    return { url, issuer, data, workloadToken, organisation, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function requireThisMachine(listen: string): void {
  try {
    const { host } = settings.listen.parse(listen);
    // Node's HTTP/2 client leaves out the brackets of IPv6 addresses, so `arbor iam` would not get there.
    if (isLoopback(host) && !host.includes(":")) return;
  } catch (error) {
    throw new SettingsError([`--listen ${(error as Error).message}`]);
  }
  const rule = "--listen must be 127.0.0.1 or localhost with a port";
  throw new SettingsError([`${rule}: the demo asks nobody for a password, so it is for this machine alone`]);
}

async function startProvider(place: DemoDirectory): Promise<DemoProvider> {
  const { directory, providerPort } = place;
  const provider = await startDemoProvider(providerPort).catch((error: unknown) => {
    const advice = `the login provider of the demo in ${directory}. Perhaps that demo runs already`;
    throw inUse(error) ? new Error(`127.0.0.1:${providerPort} is taken, which is ${advice}`) : error;
  });
  await markDemoDirectory(place, provider.port);
  return provider;
}

async function startService(
  { directory }: DemoDirectory,
  issuer: string,
  listen: string,
): Promise<{ app: App; url: string }> {
  const loginProviders = join(directory, "login-providers.json");
  const provider = { name: "demo", title: "the demo's login", issuer, clientId: CLIENT_ID };
  await replaceFile(loginProviders, `${JSON.stringify([provider], undefined, 2)}\n`, 0o600);
  const flags = { data: directory, listen, loginProviders, trustedIssuers: issuer, logLevel: "warn", accessLog: false };
  // Nothing from the environment, which may be meant for a service in earnest.
  const resolved = resolveSettings({ flags, env: {} });
  const app = await startApp({ settings: resolved }).catch((error: unknown) => {
    throw inUse(error) ? new Error(`${listen} is taken: choose another with --listen, such as 127.0.0.1:0`) : error;
  });
  return { app, url: resolveOrigin(resolved, { ...resolved.listen, port: Number(new URL(app.url).port) }).baseUrl };
}

async function organisationIn(app: App, url: string, provider: DemoProvider): Promise<SampleOrganisation> {
  const { store, clock } = app.installation;
  const { issuer } = provider;
  const root = await ensureRoot(store, issuer, clock());
  const upstream = () => provider.sign({ sub: alice.subject, aud: CLIENT_ID }, SETUP_S);
  // Without an identity to assume, people become themselves.
  const token = exchangedToken({ issuer: url, identity: "", audience: url, upstream });
  const connection = connectTo({ baseUrl: url, token });
  try {
    return await fillOrganisation(connection, root, issuer);
  } finally {
    connection.close();
  }
}

function inUse(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EADDRINUSE";
}
