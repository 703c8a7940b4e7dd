// What people see at the provider of the demo, in the frame of the service's own
// pages: no script, readable everywhere, usable by keyboard and screen reader.
import { html, renderPage } from "../../../issuer/oauth/page.js";
import type { WebAnswer } from "../../../kernel/web.js";
import { people } from "./people.js";

/**
 * Picking who to be. The choices are links, since the policy of the frame lets no form lead to another
 * site.
 *
 * @param host the name of the provider as people see it
 */
export function peoplePage(host: string): WebAnswer {
  const choices = people.map(
    ({ subject, name, about }) => html`<li><a class="button" href="?person=${subject}">${name}, ${about}</a></li>`,
  );
  const body = html`<p>This is the login of a demo on your own machine. It asks for no password.</p>
<ul class="choices">${choices}
<li><a class="button plain" href="?person=">Nobody: cancel the login</a></li></ul>`;
  return renderPage({ title: "Who are you?", body, host });
}

/** What cannot be done. */
export function wrongPage(host: string, status: number, text: string): WebAnswer {
  const body = html`<p>${text}</p><p>Go back to the program and start again.</p>`;
  return renderPage({ title: "This cannot be done", body, host, status });
}
