// The pages that people see while they sign in.
import type { WebResponse } from "../../kernel/web.js";
import { type Html, html } from "./html.js";
import { ACCOUNT_NOT_FOUND, LOGIN_OVER, type OAuthError } from "./oauth-error.js";
import { type HtmlPage, renderPage } from "./page.js";
import type { DeviceClient, WaitingTerminal } from "./state.js";

/** The properties that all pages have. */
export type PageFrame = Pick<HtmlPage, "host" | "cookie">;

/** Hidden fields of a form. */
export type Hidden = readonly (readonly [name: string, value: string])[];

/** A link that starts the login with a provider. */
export interface ProviderLink {
  readonly title: string;
  readonly href: string;
}

export interface ProviderSelectionPage {
  readonly intro: Html;
  readonly title: string;
  readonly links: readonly ProviderLink[];
  /** The hidden fields of the form for an organisation's name; without them the page has no such form. */
  readonly hidden?: Hidden;
  /** An organisation name that a person typed and that has no provider. */
  readonly unknownOrganisation?: string | undefined;
}

/** Renders the provider selection page. Providers are links, because a form could not lead to another site. */
export function renderProviderSelection(frame: PageFrame, page: ProviderSelectionPage): WebResponse {
  const { title, intro, links, hidden, unknownOrganisation } = page;
  const list = links.map(
    ({ title, href }) => html`<li><a class="button" href="${href}">Continue with ${title}</a></li>`,
  );
  const body = html`${intro}
${list.length > 0 ? html`<ul class="choices">${list}</ul>` : undefined}
${hidden && renderOrganisationForm(hidden, unknownOrganisation)}`;
  return renderPage({ ...frame, title, body, status: unknownOrganisation === undefined ? 200 : 404 });
}

function renderOrganisationForm(hidden: Hidden, unknown: string | undefined): Html {
  const wrong =
    unknown === undefined
      ? undefined
      : html`<p class="wrong" id="wrong" role="alert">No verified organisation called “${unknown}” has its own login.
Check the name, or ask its owner.</p>`;
  const described = unknown === undefined ? "organisation-hint" : "organisation-hint wrong";
  return html`<h2>Through your organisation</h2>
<form method="get" action="/oauth">${renderHiddenInputs(hidden)}
<label for="organisation">Name of your organisation</label>
<p class="hint" id="organisation-hint">As it was verified, such as example.org</p>
${wrong}
<input type="text" id="organisation" name="organisation" required maxlength="255" autocomplete="organization"
 autocapitalize="none" spellcheck="false" aria-describedby="${described}" value="${unknown}">
<button class="button plain">Find its login</button>
</form>`;
}

/** Renders the page that asks for the code of a headless login. */
export function renderHeadlessPage(
  frame: PageFrame,
  { hidden, address, atMs, isWrong }: { hidden: Hidden; address: string; atMs: number; isWrong: boolean },
): WebResponse {
  const body = html`<p>A terminal asks for access in your name. It shows a code: type it here to go on.</p>
<dl>
<dt>This browser</dt><dd>${address}</dd>
<dt>Time</dt><dd>${renderTime(atMs)}</dd>
</dl>
<form method="post" action="/oauth">${renderHiddenInputs(hidden)}
${renderCodeInput("Code in your terminal", html`Eight letters and digits, such as <span class="whole">ABCD-EFGH</span>`, { isWrong, value: "" })}
<button class="button">Continue</button>
</form>
<p class="hint after">If you did not start this in your own terminal just now, close this page. Otherwise the person who sent you here
gets access in your name.</p>`;
  return renderPage({ ...frame, title: "Give a terminal access?", body, status: isWrong ? 400 : 200 });
}

/** The words that a person types to confirm a headless login whose program shows no code. */
export const CONFIRMATION = "give access";

/** Renders the page that asks for a confirmation in words, for a headless login whose program shows no code. */
export function renderExplicitPage(
  frame: PageFrame,
  page: {
    readonly hidden: Hidden;
    readonly clientId: string | undefined;
    /** The terminal that waits; undefined before its first poll. */
    readonly terminal: WaitingTerminal | undefined;
    /** The address of the browser. */
    readonly address: string;
    readonly atMs: number;
    readonly isWrong: boolean;
  },
): WebResponse {
  const { hidden, clientId, terminal, address, atMs, isWrong } = page;
  const wrong = html`<p class="wrong" id="wrong" role="alert">Those are not the words. Nothing was given access.</p>`;
  const invalid = isWrong ? html` aria-invalid="true"` : undefined;
  const unnamed = html`unknown <span class="note">(it does not name itself)</span>`;
  const named = html`${clientId} <span class="note">(a name that nobody has verified)</span>`;
  const unknown = html`unknown <span class="note">(no program waits yet; reload this page once yours does)</span>`;
  const body = html`<p>A program on another computer asks for access in your name. It shows no code, so only you can tell whether it
is yours.</p>
<dl>
<dt>Program</dt><dd>${clientId === undefined ? unnamed : named}</dd>
<dt>It may act</dt><dd>in your name</dd>
<dt>Rights</dt><dd>all of them</dd>
<dt>Requested from</dt><dd>${terminal?.addresses.join(", ") ?? unknown}</dd>
<dt>${terminal === undefined ? "Time" : "Requested at"}</dt><dd>${renderTime(terminal?.atMs ?? atMs)}</dd>
<dt>This browser</dt><dd>${address}</dd>
</dl>
<p><strong>If somebody sent you here, close this page.</strong> They would get access in your name and could do whatever you can.</p>
<form method="post" action="/oauth">${renderHiddenInputs(hidden)}
<label for="confirmation">Type “${CONFIRMATION}” to go on</label>
<p class="hint" id="hint">Only if you started this yourself just now, on the computer that asks</p>
${isWrong ? wrong : undefined}
<input type="text" id="confirmation" name="confirmation" required maxlength="32" autocomplete="off"
 autocapitalize="none" spellcheck="false" aria-describedby="${isWrong ? "hint wrong" : "hint"}"${invalid}>
<button class="button">Continue</button>
</form>`;
  return renderPage({ ...frame, title: "Give another computer access?", body, status: isWrong ? 400 : 200 });
}

/** Renders the page that asks for the user code of a device. */
export function renderActivatePage(
  frame: PageFrame,
  { hidden, value, isWrong }: { hidden: Hidden; value: string; isWrong: boolean },
): WebResponse {
  const body = html`<p>A device or program shows you a code. Type it here, or check that it is the same.</p>
<form method="post" action="/activate">${renderHiddenInputs(hidden)}
${renderCodeInput("Code on your device", html`Eight letters, such as <span class="whole">BCDF-GHJK</span>`, { isWrong, value })}
<button class="button">Continue</button>
</form>`;
  return renderPage({ ...frame, title: "Connect a device", body, status: isWrong ? 400 : 200 });
}

/** Renders the page that approves or denies the request of a device. */
export function renderApprovalPage(
  frame: PageFrame,
  { hidden, person, asker, userCode }: { hidden: Hidden; person: string; asker: DeviceClient; userCode: string },
): WebResponse {
  const body = html`<p>The device gets access in your name, with all your rights.</p>
<dl>
<dt>You are</dt><dd>${person}</dd>
${renderDeviceRows(asker)}
<dt>Code</dt><dd>${formatCode(userCode)}</dd>
</dl>
<p>Approve only if you started this yourself and the device shows this code.</p>
<form method="post" action="/activate">${renderHiddenInputs(hidden)}
<div class="buttons">
<button class="button plain" name="decision" value="deny">Deny</button>
<button class="button" name="decision" value="approve">Approve</button>
</div>
</form>`;
  return renderPage({ ...frame, title: "Give this device access?", body });
}

/** Renders the request of a device on the provider selection page. */
export function renderDeviceIntro(asker: DeviceClient): Html {
  return html`<p>This device asks for access in your name:</p>
<dl>${renderDeviceRows(asker)}</dl>
<p>Sign in only if you started this yourself. You will be asked once more.</p>`;
}

/** Renders the last page of a login whose outcome goes to a terminal or a device. */
export function renderDonePage(frame: PageFrame, title: string, text: string): WebResponse {
  return renderPage({ ...frame, title, body: html`<p>${text}</p>` });
}

/** Renders an error with advice. */
export function renderFailurePage(frame: PageFrame, failure: OAuthError): WebResponse {
  const { error, description, status, retryAfterS, rejection } = failure;
  const { title, advice } = findAdvice(error, status);
  const body = html`<p>${advice}</p>
<h2>Details</h2>
<p class="hint">${description} (${error}, ${String(status)})</p>`;
  return { ...renderPage({ ...frame, title, body, status, retryAfterS }), rejection };
}

function findAdvice(error: string, status: number): { title: string; advice: string } {
  if (error === ACCOUNT_NOT_FOUND) {
    return {
      title: "You have no account here",
      advice: `Ask somebody in your organisation for an invite, and sign in with it. If you have several accounts at the
login provider, try another.`,
    };
  }
  if (status === 429) return { title: "Too many attempts", advice: "Wait a few minutes, then try again." };
  if (status >= 500) {
    return {
      title: status === 500 ? "Something went wrong" : "The login provider does not answer",
      advice: "Try again in a minute. If it stays so, tell the operator of this service.",
    };
  }
  if (error === "access_denied") {
    return {
      title: "Not signed in",
      advice: "Nothing was given access. Go back to the program and start again if you want to sign in after all.",
    };
  }
  if (error === LOGIN_OVER) {
    return { title: "This login is over", advice: "Go back to the program and start again." };
  }
  return {
    title: "This cannot be done",
    advice: `Go back to the program and start again. If it happens again, the program needs an update or its settings
are wrong.`,
  };
}

function renderDeviceRows({ clientId, address, atMs }: DeviceClient): Html {
  return html`<dt>Program</dt><dd>${clientId}</dd>
<dt>Requested from</dt><dd>${address}</dd>
<dt>Requested at</dt><dd>${renderTime(atMs)}</dd>`;
}

function renderCodeInput(label: string, hint: Html, { isWrong, value }: { isWrong: boolean; value: string }): Html {
  const wrong = html`<p class="wrong" id="wrong" role="alert">That is not the code. Check it and try again.</p>`;
  const invalid = isWrong ? html` aria-invalid="true"` : undefined;
  return html`<label for="code">${label}</label>
<p class="hint" id="hint">${hint}</p>
${isWrong ? wrong : undefined}
<input class="code" type="text" id="code" name="user_code" required maxlength="16" autocomplete="off"
 autocapitalize="characters" spellcheck="false" aria-describedby="${isWrong ? "hint wrong" : "hint"}"${invalid}
 value="${value}">`;
}

export function renderHiddenInputs(hidden: Hidden): readonly Html[] {
  return hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);
}

function renderTime(ms: number): Html {
  const iso = new Date(ms).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`;
}

/** Formats a code of eight characters in two groups of four. */
export function formatCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}
