import { useState } from "react";
import { beginLogin } from "../session/login.js";
import type { SessionState } from "../session/session.js";
import { Button } from "../ui/button.js";
import { Page } from "../ui/page.js";

interface SignInPageProps {
  readonly state: Extract<SessionState, { kind: "signed-out" }>;
}

export function SignInPage({ state: { ended, problem } }: SignInPageProps) {
  const [isBusy, setBusy] = useState(false);
  const signIn = (prompt?: "select_account") => {
    setBusy(true);
    void beginLogin(prompt === undefined ? {} : { prompt });
  };
  return (
    <main className="centre">
      <Page title="Arbor console">
        {ended && (
          <div className="note warn" role="status">
            Your session has ended. Sign in again: you come back to this page, and what you typed is kept.
          </div>
        )}
        {problem !== undefined && (
          <div className="note wrong" role="alert">
            <p>You could not be signed in: {problem}.</p>
          </div>
        )}
        <p>See and change who may do what in your organisations.</p>
        <div className="actions">
          <Button look="main" isBusy={isBusy} onClick={() => signIn()}>
            Sign in
          </Button>
          {problem !== undefined && (
            <Button isBusy={isBusy} onClick={() => signIn("select_account")}>
              Sign in as somebody else
            </Button>
          )}
        </div>
        <p className="soft">
          You have the link of an invite? Open it to join an organisation. New here without one? Ask an owner of your
          organisation for an invite.
        </p>
      </Page>
    </main>
  );
}

export function UnreachablePage({ problem }: { readonly problem: string }) {
  return (
    <main className="centre">
      <Page title="The service cannot be reached">
        <p>You are not signed out: try again when the service or your connection is back.</p>
        <p className="soft">{problem}</p>
        <div className="actions">
          <Button look="main" onClick={() => location.reload()}>
            Try again
          </Button>
        </div>
      </Page>
    </main>
  );
}
