// What people see while they sign in.
import type { WebAnswer } from "../../kernel/web.js";
import { ACCOUNT_NOT_FOUND, type Failure, LOGIN_OVER } from "./oauth-error.js";
import { type Html, html, type Page, pageAnswer } from "./page.js";
import type { Asker } from "./state.js";

/** What all pages have. */
export type Frame = Pick<Page, "host" | "cookie">;

/** Fields that a form sends besides those that people fill in. */
export type Hidden = readonly (readonly [name: string, value: string])[];

/** A link to sign in with a provider. */
export interface Choice {
  readonly title: string;
  readonly href: string;
}

/** The page to choose a provider on. */
export interface ProviderSelectionPage {
  readonly intro: Html;
  readonly title: string;
  readonly choices: readonly Choice[];
  /** What the form for the name of an organisation sends besides; no form unless set. */
  readonly hidden?: Hidden;
  /** The name of an organisation that was typed and cannot be used. */
  readonly unknownOrganisation?: string | undefined;
}

/** Choosing how to sign in. The choices are links, since a form could lead to no other site. */
export function providerSelectionPage(frame: Frame, page: ProviderSelectionPage): WebAnswer {
  const { title, intro, choices, hidden, unknownOrganisation } = page;
  const list = choices.map(
    ({ title, href }) => html`<li><a class="button" href="${href}">Continue with ${title}</a></li>`,
  );
  const body = html`${intro}
${list.length > 0 ? html`<ul class="choices">${list}</ul>` : undefined}
${hidden && organisationForm(hidden, unknownOrganisation)}`;
  return pageAnswer({ ...frame, title, body, status: unknownOrganisation === undefined ? 200 : 404 });
}

function organisationForm(hidden: Hidden, unknown: string | undefined): Html {
  const wrong =
    unknown === undefined
      ? undefined
      : html`<p class="wrong" id="wrong" role="alert">No verified organisation called “${unknown}” has its own login.
Check the name, or ask its owner.</p>`;
  const described = unknown === undefined ? "organisation-hint" : "organisation-hint wrong";
  return html`<h2>Through your organisation</h2>
<form method="get" action="/oauth">${hiddenInputs(hidden)}
<label for="organisation">Name of your organisation</label>
<p class="hint" id="organisation-hint">As it was verified, such as example.org</p>
${wrong}
<input type="text" id="organisation" name="organisation" required maxlength="255" autocomplete="organization"
 autocapitalize="none" spellcheck="false" aria-describedby="${described}" value="${unknown}">
<button class="button plain">Find its login</button>
</form>`;
}

/** Confirming a headless login with the code that the terminal shows. */
export function headlessPage(
  frame: Frame,
  { hidden, address, atMs, isWrong }: { hidden: Hidden; address: string; atMs: number; isWrong: boolean },
): WebAnswer {
  const body = html`<p>A terminal asks for access in your name. It shows a code: type it here to go on.</p>
<dl>
<dt>This browser</dt><dd>${address}</dd>
<dt>Time</dt><dd>${time(atMs)}</dd>
</dl>
<form method="post" action="/oauth">${hiddenInputs(hidden)}
${codeInput("Code in your terminal", html`Eight letters and digits, such as <span class="whole">ABCD-EFGH</span>`, { isWrong, value: "" })}
<button class="button">Continue</button>
</form>
<p class="hint after">If you did not start this in your own terminal just now, close this page: whoever sent you here would
get access in your name.</p>`;
  return pageAnswer({ ...frame, title: "Give a terminal access?", body, status: isWrong ? 400 : 200 });
}

/** Typing the code of a device. */
export function activatePage(
  frame: Frame,
  { hidden, value, isWrong }: { hidden: Hidden; value: string; isWrong: boolean },
): WebAnswer {
  const body = html`<p>A device or program shows you a code. Type it here, or check that it is the same.</p>
<form method="post" action="/activate">${hiddenInputs(hidden)}
${codeInput("Code on your device", html`Eight letters, such as <span class="whole">BCDF-GHJK</span>`, { isWrong, value })}
<button class="button">Continue</button>
</form>`;
  return pageAnswer({ ...frame, title: "Connect a device", body, status: isWrong ? 400 : 200 });
}

/** Allowing or refusing what a device asks for. */
export function approvalPage(
  frame: Frame,
  { hidden, person, asker, userCode }: { hidden: Hidden; person: string; asker: Asker; userCode: string },
): WebAnswer {
  const body = html`<p>The device gets access in your name, with all your rights.</p>
<dl>
<dt>You are</dt><dd>${person}</dd>
${askerRows(asker)}
<dt>Code</dt><dd>${formatCode(userCode)}</dd>
</dl>
<p>Approve only if you started this yourself and the device shows this code.</p>
<form method="post" action="/activate">${hiddenInputs(hidden)}
<div class="buttons">
<button class="button plain" name="decision" value="deny">Deny</button>
<button class="button" name="decision" value="approve">Approve</button>
</div>
</form>`;
  return pageAnswer({ ...frame, title: "Give this device access?", body });
}

/** What a page says of a device's request before somebody signs in for it. */
export function deviceIntro(asker: Asker): Html {
  return html`<p>This device asks for access in your name:</p>
<dl>${askerRows(asker)}</dl>
<p>Sign in only if you started this yourself. You will be asked once more.</p>`;
}

/** The end of a login whose outcome is elsewhere. */
export function donePage(frame: Frame, title: string, text: string): WebAnswer {
  return pageAnswer({ ...frame, title, body: html`<p>${text}</p>` });
}

/** A failure, and what to do about it. */
export function failurePage(frame: Frame, { error, description, status, retryAfterS }: Failure): WebAnswer {
  const { title, advice } = adviceOf(error, status);
  const body = html`<p>${advice}</p>
<h2>Details</h2>
<p class="hint">${description} (${error}, ${String(status)})</p>`;
  return pageAnswer({ ...frame, title, body, status, retryAfterS });
}

function adviceOf(error: string, status: number): { title: string; advice: string } {
  if (error === ACCOUNT_NOT_FOUND) {
    return {
      title: "You have no account here",
      advice: `Ask somebody in your organisation for an invite, and sign in with it. If you have several accounts at the
login provider, try another.`,
    };
  }
  if (status === 429) return { title: "Too many attempts", advice: "Wait ten minutes, then start again." };
  if (status >= 500) {
    return {
      title: status === 500 ? "Something went wrong" : "The login provider does not answer",
      advice: "Try again in a minute. If it stays so, tell whoever runs this service.",
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

function askerRows({ clientId, address, atMs }: Asker): Html {
  return html`<dt>Program</dt><dd>${clientId}</dd>
<dt>Asked from</dt><dd>${address}</dd>
<dt>Asked at</dt><dd>${time(atMs)}</dd>`;
}

function codeInput(label: string, hint: Html, { isWrong, value }: { isWrong: boolean; value: string }): Html {
  const wrong = html`<p class="wrong" id="wrong" role="alert">That is not the code. Check it and try again.</p>`;
  const invalid = isWrong ? html` aria-invalid="true"` : undefined;
  return html`<label for="code">${label}</label>
<p class="hint" id="hint">${hint}</p>
${isWrong ? wrong : undefined}
<input class="code" type="text" id="code" name="user_code" required maxlength="16" autocomplete="off"
 autocapitalize="characters" spellcheck="false" aria-describedby="${isWrong ? "hint wrong" : "hint"}"${invalid}
 value="${value}">`;
}

/** The fields of a form that nobody sees. */
export function hiddenInputs(hidden: Hidden): readonly Html[] {
  return hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);
}

function time(ms: number): Html {
  const iso = new Date(ms).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`;
}

/** Formats a code of eight characters as people see it, in groups of four. */
export function formatCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}
