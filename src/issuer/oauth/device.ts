// The device authorization grant (RFC 8628), from the request of the device to the decision of the person.
import { randomInt } from "node:crypto";
import { notFound } from "../../kernel/errors.js";
import type { WebRequest, WebResponse } from "../../kernel/web.js";
import type { Tx } from "../../store/transaction.js";
import { parseTokenGrant } from "../sts/token-request.js";
import { type Browser, findBrowser, getBrowser, LOGIN_MS, requireOwnForm } from "./browser.js";
import { hostOf, type LoginContext } from "./context.js";
import { loginOverError } from "./oauth-error.js";
import { redirect } from "./page.js";
import { formatCode, renderActivatePage, renderApprovalPage, renderDonePage } from "./pages.js";
import {
  isRefreshRequested,
  normalizeCode,
  parseTokenRequest,
  requireClientId,
  requireForeignAudience,
} from "./request.js";
import { buildJsonResponse, handleForm, renderErrorPage } from "./responses.js";
import { assertSmall, originOf, prepareStart } from "./start-limit.js";
import type { Authorization, DeviceRequest } from "./state.js";
import { createSecret } from "./tickets.js";

/** RFC 8628, section 6.1: consonants, so that no code is a word, without those that look like digits. */
const USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const USER_CODE_LENGTH = 8;

const DEVICE_S = 900;
const INTERVAL_S = 5;
/** How long an expired request is kept, so that the device gets expired_token, in milliseconds. */
const EXPIRED_RETENTION_MS = 10 * 60 * 1000;

/** `POST /oauth/device_authorization` (RFC 8628, section 3.1). */
export function authorizeDevice(context: LoginContext, request: WebRequest): Promise<WebResponse> {
  const { store, tickets, clock, origin } = context;
  return handleForm(request, async (form) => {
    const { audiences, issuer } = origin;
    const clientId = requireClientId(form);
    requireForeignAudience(clientId, origin);
    const tokenRequest = parseTokenRequest(form, audiences);
    parseTokenGrant(tokenRequest, audiences);
    assertSmall({ clientId, asked: tokenRequest });
    const nowMs = clock();
    const counted = originOf(request.remoteAddress, false);
    const start = await prepareStart(store, "device", counted, nowMs);
    const startCode = await prepareStart(store, "user-code", counted, nowMs);
    const expireTimeMs = nowMs + DEVICE_S * 1000;
    const deviceCode = createSecret();
    const userCode = await store.write(async (tx) => {
      const userCode = await createUniqueUserCode(context, tx, nowMs);
      const device: DeviceRequest = {
        asker: { clientId, address: request.remoteAddress ?? "unknown", atMs: nowMs },
        asked: tokenRequest,
        refresh: isRefreshRequested(form),
        userCode,
        expireTimeMs,
        forgetTimeMs: expireTimeMs + EXPIRED_RETENTION_MS,
        intervalMs: INTERVAL_S * 1000,
        polledMs: 0,
        decision: "none",
      };
      await tickets.start(tx, "device", deviceCode, device, device.forgetTimeMs, start);
      await tickets.start(tx, "user-code", userCode, { deviceCode }, expireTimeMs, startCode);
      return userCode;
    });
    const page = `${issuer}/activate`;
    return buildJsonResponse(200, {
      device_code: deviceCode,
      user_code: formatCode(userCode),
      verification_uri: page,
      verification_uri_complete: `${page}?user_code=${formatCode(userCode)}`,
      expires_in: DEVICE_S,
      interval: INTERVAL_S,
    });
  });
}

/** `GET /activate`: the page for the user code, or for the approval after the login. */
export async function showActivate(context: LoginContext, request: WebRequest): Promise<WebResponse> {
  const { store, tickets, clock, secure } = context;
  const approval = request.query.get("approval");
  if (approval === null) {
    const typed = normalizeCode(request.query.get("user_code") ?? "");
    return showCodeForm(context, getBrowser(request, secure), isUserCode(typed) ? formatCode(typed) : "", false);
  }
  const browser = findBrowser(request, secure);
  const found = await store.read((tx) => tickets.find(tx, "authorization", approval, clock()));
  if (browser === undefined || found?.stage !== "approval" || found.browser !== browser.hash) {
    return renderErrorPage(context, loginOverError());
  }
  const hidden = [["approval", approval] as const, ["form", browser.formSecret] as const];
  return renderApprovalPage({ host: hostOf(context), cookie: browser.cookie }, { ...found, hidden });
}

/** `POST /activate`: the person typed a user code, or decided on the request. */
export async function activate(context: LoginContext, request: WebRequest): Promise<WebResponse> {
  const form = await request.form();
  try {
    const browser = requireOwnForm(form, findBrowser(request, context.secure));
    return form.has("approval")
      ? await handleDecision(context, form, browser)
      : await confirmCode(context, request, form, browser);
  } catch (error) {
    return renderErrorPage(context, error);
  }
}

async function confirmCode(
  context: LoginContext,
  request: WebRequest,
  form: URLSearchParams,
  browser: Browser,
): Promise<WebResponse> {
  const { store, tickets, clock, userCodes } = context;
  const code = normalizeCode(form.get("user_code") ?? "");
  const wrong = notFound({ displayName: "device", type: "auth.chainguard.dev/Device" }, "", "there is no such code");
  const key = createSecret();
  const nowMs = clock();
  const start = await prepareStart(store, "authorization", originOf(request.remoteAddress, browser.isKnown), nowMs);
  const confirm = () =>
    store.write(async (tx) => {
      const device = await findPendingDevice(context, tx, code, nowMs);
      if (device === undefined) throw wrong;
      const { asker, asked: tokenRequest, refresh, forgetTimeMs, expireTimeMs } = device.request;
      const to = { kind: "device", userCode: code, asker } as const;
      const login = { to, asked: tokenRequest, refresh, register: true };
      const confirmed = { stage: "confirmed", browser: browser.hash, request: login, named: {} } as const;
      await tickets.start(tx, "authorization", key, confirmed, nowMs + LOGIN_MS, start);
      // A device for which somebody signs in is kept longer than others of its address.
      const kept = originOf(asker.address, true);
      await tickets.put(tx, "device", device.code, device.request, forgetTimeMs, kept);
      await tickets.put(tx, "user-code", code, { deviceCode: device.code }, expireTimeMs, kept);
    });
  try {
    await userCodes.run({ remoteAddress: request.remoteAddress, name: browser.hash }, confirm);
  } catch (error) {
    if (error === wrong) return showCodeForm(context, browser, "", true);
    throw error;
  }
  return redirect(`/oauth?continue=${key}`, browser.cookie);
}

async function handleDecision(context: LoginContext, form: URLSearchParams, browser: Browser): Promise<WebResponse> {
  const { store, tickets, clock } = context;
  const key = form.get("approval") ?? "";
  const isApproved = form.get("decision") === "approve";
  const isDone = await store.write(async (tx) => {
    const nowMs = clock();
    const found = await tickets.find(tx, "authorization", key, nowMs);
    if (found?.stage !== "approval" || found.browser !== browser.hash) return false;
    await tickets.delete(tx, key);
    return recordDecision(context, tx, found, isApproved, nowMs);
  });
  if (!isDone) return renderErrorPage(context, loginOverError());
  const frame = { host: hostOf(context) };
  return isApproved
    ? renderDonePage(frame, "Approved", "The device has access now. You can close this page and go back to it.")
    : renderDonePage(frame, "Denied", "The device gets no access. You can close this page.");
}

async function recordDecision(
  context: LoginContext,
  tx: Tx,
  { userCode, outcome }: Extract<Authorization, { stage: "approval" }>,
  isApproved: boolean,
  nowMs: number,
): Promise<boolean> {
  const { tickets } = context;
  const device = await findPendingDevice(context, tx, userCode, nowMs);
  if (device === undefined) return false;
  const { code, request } = device;
  const decision = isApproved ? outcome : "denied";
  await tickets.put(tx, "device", code, { ...request, decision }, request.forgetTimeMs);
  await tickets.delete(tx, userCode);
  return true;
}

// The user code is deleted with the decision, and expires with the request.
async function findPendingDevice(
  { tickets }: LoginContext,
  tx: Tx,
  userCode: string,
  nowMs: number,
): Promise<{ readonly code: string; readonly request: DeviceRequest } | undefined> {
  const found = isUserCode(userCode) ? await tickets.find(tx, "user-code", userCode, nowMs) : undefined;
  const request = found && (await tickets.find(tx, "device", found.deviceCode, nowMs));
  return found && request && { code: found.deviceCode, request };
}

async function createUniqueUserCode({ tickets }: LoginContext, tx: Tx, nowMs: number): Promise<string> {
  for (;;) {
    const code = createUserCode();
    if ((await tickets.find(tx, "user-code", code, nowMs)) === undefined) return code;
  }
}

function showCodeForm(context: LoginContext, browser: Browser, value: string, isWrong: boolean): WebResponse {
  const hidden = [["form", browser.formSecret] as const];
  return renderActivatePage({ host: hostOf(context), cookie: browser.cookie }, { hidden, value, isWrong });
}

/** Creates a user code: 8 letters, of which there are 20. */
export function createUserCode(): string {
  return Array.from({ length: USER_CODE_LENGTH }, () => USER_CODE_LETTERS[randomInt(USER_CODE_LETTERS.length)]).join(
    "",
  );
}

/** Whether `code`, as {@link normalizeCode} returns it, has the form of a user code. */
export function isUserCode(code: string): boolean {
  return code.length === USER_CODE_LENGTH && [...code].every((letter) => USER_CODE_LETTERS.includes(letter));
}
