// The web console as an OAuth client. It is the only one whose code goes to an origin of this service and not to a program
// on the person's machine, so other rules hold for it (docs/adr/0031-console-sessions.md).
import { CONSOLE_PATH } from "../../kernel/web.js";
import type { Destination } from "../oauth/state.js";

/** The `client_id` of the console, which no other program may use. */
export const CONSOLE_CLIENT_ID = "console";

interface ConsoleOrigin {
  readonly baseUrl: string;
}

/** The only redirect URI of the console. It follows from the settings, never from the Host header. */
export function buildConsoleRedirectUri({ baseUrl }: ConsoleOrigin): string {
  return `${new URL(baseUrl).origin}${CONSOLE_PATH}/callback`;
}

/** Whether the outcome of a login goes to the console. */
export function isForConsole(to: Destination, origin: ConsoleOrigin): boolean {
  return to.kind === "code" && to.clientId === CONSOLE_CLIENT_ID && to.redirectUri === buildConsoleRedirectUri(origin);
}
