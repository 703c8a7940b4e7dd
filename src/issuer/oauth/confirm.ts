// Confirming a headless login: whoever goes on with it sees the terminal.
import { Code } from "@connectrpc/connect";
import { ApiError, invalidArgument, permissionDenied } from "../../kernel/errors.js";
import type { WebAnswer, WebRequest } from "../../kernel/web.js";
import { addressKey } from "../sts/refusals.js";
import { type Browser, knownBrowserOf, LOGIN_MS, requireOwnForm } from "./browser.js";
import type { LoginContext } from "./context.js";
import { refusedPage } from "./deliver.js";
import { hostOf } from "./deps.js";
import { loginOver } from "./failure.js";
import { isHeadlessOpen, lockHeadlessSession, requireHeadlessKey } from "./headless.js";
import { redirect } from "./page.js";
import { headlessPage } from "./pages.js";
import { parametersBut } from "./parameters.js";
import { destinationOf, loginRequestOf, namedProviderIn } from "./request.js";
import { confirmationCode, typedCode } from "./short-codes.js";
import { newSecret } from "./tickets.js";

/** `POST /oauth`: the code of a headless login was typed. */
export async function confirmHeadless(context: LoginContext, request: WebRequest): Promise<WebAnswer> {
  const { store, tickets, clock, secure, codeGuesses, startLimit } = context;
  const form = await request.form();
  try {
    const browser = requireOwnForm(form, knownBrowserOf(request, secure));
    const to = destinationOf(form);
    if (to.kind !== "headless") {
      throw invalidArgument({ field: "headless_code", description: "headless_code is required" });
    }
    const login = loginRequestOf(form, to, context.origin().audiences);
    const code = confirmationCode(requireHeadlessKey(to.key));
    const wrong = permissionDenied("this code");
    try {
      await codeGuesses.guard([`${addressKey(request.remoteAddress)} ${to.key}`], () => {
        if (typedCode(form.get("user_code") ?? "") !== code) throw wrong;
      });
    } catch (error) {
      if (error === wrong) return await askForConfirmation(context, request, form, to.key, browser, true);
      // Whoever guesses here does not see the terminal: nobody should go on with this.
      if (isExhausted(error)) await store.write((tx) => lockHeadlessSession(tx, to.key, clock()));
      throw error;
    }
    const key = newSecret();
    const confirmed = {
      stage: "confirmed",
      browser: browser.hash,
      request: login,
      named: namedProviderIn(form),
    } as const;
    startLimit.start(request.remoteAddress, confirmed);
    await store.write((tx) => tickets.put(tx, "authorization", key, confirmed, clock() + LOGIN_MS));
    return redirect(`/oauth?continue=${key}`, browser.cookie);
  } catch (error) {
    return refusedPage(context, error);
  }
}

/**
 * The page that asks for the code that the terminal shows.
 *
 * @param parameters of the request; the form repeats them
 * @param key the public key of the terminal
 */
export async function askForConfirmation(
  context: LoginContext,
  request: WebRequest,
  parameters: URLSearchParams,
  key: string,
  browser: Browser,
  isWrong: boolean,
): Promise<WebAnswer> {
  const { store, clock } = context;
  if (!(await store.read((tx) => isHeadlessOpen(tx, key, clock())))) return refusedPage(context, loginOver());
  const hidden = [...parametersBut(parameters, ["form", "user_code"]), ["form", browser.formSecret] as const];
  const address = request.remoteAddress ?? "unknown";
  return headlessPage({ host: hostOf(context), cookie: browser.cookie }, { hidden, address, atMs: clock(), isWrong });
}

function isExhausted(error: unknown): boolean {
  return error instanceof ApiError && error.code === Code.ResourceExhausted;
}
