import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { findBrowser, getBrowser, requireOwnForm } from "../../../src/issuer/oauth/browser.js";
import { renderConsentPage } from "../../../src/issuer/oauth/consent-page.js";
import { html } from "../../../src/issuer/oauth/html.js";
import { oauthError } from "../../../src/issuer/oauth/oauth-error.js";
import {
  renderActivatePage,
  renderApprovalPage,
  renderDeviceIntro,
  renderDonePage,
  renderExplicitPage,
  renderFailurePage,
  renderHeadlessPage,
  renderProviderSelection,
} from "../../../src/issuer/oauth/pages.js";
import type { WebRequest, WebResponse } from "../../../src/kernel/web.js";

const evil = `"><script>alert(1)</script><a href='x' onclick=y>&`;
const frame = { host: evil, cookie: "a=b" };
const hidden = [[evil, evil]] as const;
const asker = { clientId: evil, address: evil, atMs: 0 };

const pages: Readonly<Record<string, WebResponse>> = {
  selection: renderProviderSelection(frame, {
    title: evil,
    intro: renderDeviceIntro(asker),
    links: [{ title: evil, href: evil }],
    hidden,
    unknownOrganisation: evil,
  }),
  headless: renderHeadlessPage(frame, { hidden, address: evil, atMs: 0, isWrong: true }),
  explicit: renderExplicitPage(frame, {
    hidden,
    clientId: evil,
    terminal: { addresses: [evil, evil], atMs: 0 },
    address: evil,
    atMs: 0,
    isWrong: true,
  }),
  activate: renderActivatePage(frame, { hidden, value: evil, isWrong: true }),
  approval: renderApprovalPage(frame, { hidden, person: evil, asker, userCode: evil }),
  consent: renderConsentPage(frame, {
    person: evil,
    invites: [
      {
        invitedBy: { uid: evil, name: evil, email: evil, isHost: false },
        organisation: { name: evil, verified: false },
        groupName: evil,
        role: { name: evil, description: evil, capabilities: [evil] },
      },
    ],
    pending: {
      organisations: [true, false].map((isRemovable) => ({
        uid: "a".repeat(40),
        name: evil,
        verified: false,
        bindings: { count: 1, isMore: true },
        roles: [evil, evil],
        hasMoreRoles: true,
        isRemovable,
      })),
      others: { count: 2, isMore: true },
    },
    recipient: {
      to: { kind: "device", userCode: evil, asker },
      scope: { aud: [evil], cap: [evil], scopes: [evil] },
      isConsole: false,
      refresh: true,
      identity: evil,
    },
    hidden,
  }),
  done: renderDonePage(frame, evil, evil),
  failure: renderFailurePage(frame, { ...oauthError(evil, "x", 500), description: evil, retryAfterS: 5 }),
};

for (const [name, { headers = {}, body = "" }] of Object.entries(pages)) {
  test(`the ${name} page shows what others wrote as text alone`, () => {
    assert.doesNotMatch(body, /<script|<a href='x'/);
    assert.ok(body.includes("&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"));
    // Every quote in a tag begins or ends a value.
    for (const [tag] of body.replace(/<style>.*<\/style>/s, "").matchAll(/<[a-z][^>]*>/g)) {
      assert.match(tag, /^<[a-z][a-z0-9]*(?:\s+[a-z-]+(?:="[^"<>]*")?)*\s*>$/, tag);
    }
  });

  test(`the ${name} page has a language, a title, one heading and a label for every field`, () => {
    assert.match(body, /^<!doctype html>\n<html lang="en">/);
    assert.match(body, /<title>.+<\/title>/);
    assert.equal(body.split("<h1>").length, 2);
    const ids = new Set([...body.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const [, id = ""] of body.matchAll(/<(?:input [^>]*type="text"|select) id="([^"]+)"/g)) {
      assert.ok(body.includes(`<label for="${id}">`), id);
    }
    for (const [, list = ""] of body.matchAll(/aria-describedby="([^"]+)"/g)) {
      for (const id of list.split(" ")) assert.ok(ids.has(id), id);
    }
  });

  test(`the ${name} page allows nothing but its own style and forms to itself`, () => {
    const policy = String(headers["content-security-policy"]);
    const style = /<style>(.*)<\/style>/s.exec(body)?.[1] ?? "";
    const hash = createHash("sha256").update(style).digest("base64");
    assert.equal(
      policy,
      `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
    );
    assert.equal(headers["x-frame-options"], "DENY");
    assert.equal(headers["referrer-policy"], "no-referrer");
    assert.equal(headers["cache-control"], "no-store");
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.doesNotMatch(body, /<script|<link|<img|<iframe|javascript:|\son[a-z]+="/);
  });
}

test("markup in markup stands as it is, and text in it does not", () => {
  const inner = html`<b>${"<i>"}</b>`;
  assert.equal(html`<p>${inner}${[inner, inner]}${undefined}</p>`.markup, `<p>${"<b>&lt;i&gt;</b>".repeat(3)}</p>`);
});

function requestWith(cookies: Readonly<Record<string, string>>): WebRequest {
  return {
    method: "GET",
    path: "/",
    rest: "",
    query: new URLSearchParams(),
    remoteAddress: undefined,
    requestId: "request",
    traceId: "",
    header: () => undefined,
    cookie: (name) => cookies[name],
    form: async () => new URLSearchParams(),
    json: async () => ({}),
    bytes: async () => new Uint8Array(),
  };
}

test("the cookie belongs to this host, over TLS, out of reach of scripts and forms elsewhere", () => {
  const { cookie } = getBrowser(requestWith({}), true);
  assert.match(cookie, /^__Host-arbor-login=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/);
  const plain = getBrowser(requestWith({}), false).cookie;
  assert.match(plain, /^arbor-login=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/);
});

test("a browser is recognized by its cookie, and by no malformed cookie", () => {
  const secret = "s".repeat(43);
  const browser = findBrowser(requestWith({ "__Host-arbor-login": secret }), true);
  assert.ok(browser?.cookie.includes(secret));
  assert.deepEqual(browser, getBrowser(requestWith({ "__Host-arbor-login": secret }), true));
  assert.equal(findBrowser(requestWith({ "arbor-login": secret }), true), undefined);
  assert.equal(findBrowser(requestWith({ "__Host-arbor-login": "short" }), true), undefined);
  assert.equal(browser?.hash.includes(secret), false);
  assert.notEqual(browser?.hash, browser?.formSecret);
});

test("a form is accepted with the secret of its browser", () => {
  const browser = getBrowser(requestWith({}), true);
  const form = (value: string) => new URLSearchParams({ form: value });
  assert.equal(requireOwnForm(form(browser.formSecret), browser), browser);
  for (const value of ["", "x".repeat(43), browser.hash]) {
    assert.throws(() => requireOwnForm(form(value), browser), /Invalid argument: form: /);
  }
  assert.throws(() => requireOwnForm(form(""), undefined), /Invalid argument: form: /);
});
