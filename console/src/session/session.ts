// Who is signed in. The service keeps the session: a cookie that scripts cannot read, and the half of this origin. From
// them `POST /console/session` mints API tokens, which live in the memory of a tab. Each request may be repeated: a lost
// answer ends no session.

import { dropDraftsOfOthers } from "./drafts.js";
import { readHalf } from "./half.js";
import { beginLogin, CALLBACK_PATH, forgetLogin, takeLoginResponse } from "./login.js";

export type SessionState =
  | { readonly kind: "starting" }
  | { readonly kind: "signed-in"; readonly id: string; readonly subject: string }
  /** Nobody is signed in. `problem` says why a login has failed; `ended`, whether somebody was signed in before. */
  | { readonly kind: "signed-out"; readonly ended: boolean; readonly problem?: string }
  /** The service could not be reached. */
  | { readonly kind: "unreachable"; readonly problem: string };

interface SessionAnswer {
  readonly accessToken: string;
  readonly expiresIn: number;
  readonly session: { readonly id: string; readonly renewal: "cookie" | "redirect"; readonly idpId?: string };
}

/** What a tab tells the others of the same browser. */
type TabMessage = "signed in" | "signed out";

interface Token {
  readonly text: string;
  readonly staleMs: number;
}

/** A token is renewed this long before it expires, in milliseconds. */
const RENEW_BEFORE_MS = 60_000;
const ATTEMPTS = 4;
const REQUEST_MS = 15_000;
/**
 * Whether this browser may have a session: how it is renewed, which is `cookie` or the uid of an organisation's identity
 * provider, and after a space its id. Without it nothing is asked for. It is no secret.
 */
const HINT = "arbor-session";
const BY_COOKIE = "cookie";

/** An answer that is not 200. */
class SessionError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

class Session {
  #state: SessionState = { kind: "starting" };
  #token: Token | undefined;
  #renewal: Promise<Token> | undefined;
  readonly #listeners = new Set<() => void>();
  readonly #tabs = new BroadcastChannel("arbor-console");

  constructor() {
    this.#tabs.onmessage = ({ data }: MessageEvent<TabMessage>) => {
      this.#token = undefined;
      void (data === "signed in" ? this.#followLogin() : this.#restore());
    };
  }

  get state(): SessionState {
    return this.#state;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /**
   * Goes on with the session of this browser, or with the login that has sent it back.
   *
   * @returns the path to show, where it is another than that of the page
   */
  async start(): Promise<string | undefined> {
    if (location.pathname === CALLBACK_PATH) return this.#completeLogin();
    await this.#restore();
    return undefined;
  }

  /**
   * Gets an API token.
   *
   * @param rejected a token that the service has rejected, which is not given again
   * @throws when nobody is signed in, or the service cannot be reached
   */
  async token(rejected?: string): Promise<string> {
    if (this.#state.kind === "signed-out") throw new SessionError(401, "nobody is signed in");
    const known = this.#token;
    if (known !== undefined && known.text !== rejected && Date.now() < known.staleMs) return known.text;
    return (await this.#renew()).text;
  }

  async signOut(): Promise<void> {
    await post({ end: true });
    this.#token = undefined;
    localStorage.removeItem(HINT);
    this.#set({ kind: "signed-out", ended: false });
    this.#tellTabs("signed out");
  }

  // Another tab has signed in. What it wrote to localStorage may arrive after its message, and a renewal that began before the
  // login ends without a session.
  async #followLogin(): Promise<void> {
    await this.#renewal?.catch(() => {});
    await this.#renewOrKeep();
  }

  async #restore(): Promise<void> {
    if (localStorage.getItem(HINT) === null) this.#set({ kind: "signed-out", ended: false });
    else await this.#renewOrKeep();
  }

  async #renewOrKeep(): Promise<void> {
    try {
      await this.#renew();
    } catch (error) {
      if (this.#state.kind === "starting" || this.#state.kind === "unreachable") {
        this.#set({ kind: "unreachable", problem: (error as Error).message });
      }
    }
  }

  #renew(): Promise<Token> {
    this.#renewal ??= this.#renewAgain().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  // Another tab may have got another cookie for the same session while the first request was on its way, or may have signed
  // in again meanwhile.
  async #renewAgain(): Promise<Token> {
    for (let attempt = 1; ; attempt++) {
      const hint = localStorage.getItem(HINT);
      try {
        return await this.#request({});
      } catch (error) {
        if (!isRejected(error)) throw error;
        const isSame = localStorage.getItem(HINT) === hint;
        if (attempt > 1 && (isSame || attempt === ATTEMPTS)) {
          await this.#noteEnd();
          throw error;
        }
      }
    }
  }

  async #completeLogin(): Promise<string | undefined> {
    const response = takeLoginResponse();
    if (response.kind === "unknown") {
      // Such as a bookmark of this page. Who is signed in stays so.
      await this.#restore();
      return "/console/";
    }
    if (response.kind === "failed") {
      forgetLogin();
      const { silent, reason } = response;
      this.#set({ kind: "signed-out", ended: silent, ...(!silent && { problem: reason }) });
      return response.backTo;
    }
    const { code, verifier, backTo } = response;
    try {
      await this.#request({ code, codeVerifier: verifier });
      forgetLogin();
      this.#tellTabs("signed in");
    } catch (error) {
      if (!(error instanceof SessionError)) {
        // A reload of the page tries again.
        this.#set({ kind: "unreachable", problem: (error as Error).message });
        return undefined;
      }
      forgetLogin();
      this.#set({ kind: "signed-out", ended: false, problem: error.message });
    }
    return backTo;
  }

  async #request(body: object): Promise<Token> {
    const { accessToken, expiresIn, session } = await post(body);
    const renewal = session.renewal === "redirect" ? (session.idpId ?? BY_COOKIE) : BY_COOKIE;
    localStorage.setItem(HINT, `${renewal} ${session.id}`);
    const lifeMs = expiresIn * 1000;
    // A session that ends with its token is used to its end: a renewal cannot give a longer one.
    const earlyMs = renewal === BY_COOKIE ? Math.min(RENEW_BEFORE_MS, lifeMs / 2) : 0;
    this.#token = { text: accessToken, staleMs: Date.now() + lifeMs - earlyMs };
    const subject = subjectOf(accessToken);
    dropDraftsOfOthers(subject);
    this.#set({ kind: "signed-in", id: session.id, subject });
    return this.#token;
  }

  async #noteEnd(): Promise<void> {
    const [renewal = BY_COOKIE] = localStorage.getItem(HINT)?.split(" ") ?? [];
    this.#token = undefined;
    localStorage.removeItem(HINT);
    if (renewal !== BY_COOKIE) {
      // The organisation's provider says whether the person may go on. Drafts lie in sessionStorage.
      await beginLogin({ idpId: renewal, prompt: "none" });
      return;
    }
    this.#set({ kind: "signed-out", ended: true });
  }

  #tellTabs(message: TabMessage): void {
    this.#tabs.postMessage(message);
  }

  #set(state: SessionState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

function isRejected(error: unknown): boolean {
  return error instanceof SessionError && error.status === 401;
}

/** The session of this tab. */
export const session = new Session();

// Only answers that say that the request itself is wrong end the attempts.
async function post(body: object): Promise<SessionAnswer> {
  const half = await readHalf();
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await fetch("/console/session", {
        method: "POST",
        headers: { "content-type": "application/json", "arbor-console-key": half },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(REQUEST_MS),
      });
      const answer = (await response.json()) as SessionAnswer & { message?: string };
      if (response.ok) return answer;
      throw new SessionError(response.status, answer.message ?? `the service responded with ${response.status}`);
    } catch (error) {
      const isFinal = error instanceof SessionError && error.status < 500 && error.status !== 429;
      if (isFinal || attempt === ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, 300 * 3 ** (attempt - 1) * (0.5 + Math.random())));
    }
  }
}

// The uid of the person. The service alone verifies the token; here it says what to show.
function subjectOf(token: string): string {
  const [, claims = ""] = token.split(".");
  const text = atob(claims.replaceAll("-", "+").replaceAll("_", "/"));
  return (JSON.parse(text) as { sub: string }).sub;
}
