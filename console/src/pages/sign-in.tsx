import { type FormEvent, useState } from "react";
import { beginLogin, type LoginOptions } from "../session/login.js";
import type { SessionState } from "../session/session.js";
import { Button } from "../ui/button.js";
import { TextField } from "../ui/field.js";
import { Page } from "../ui/page.js";

interface SignInPageProps {
  readonly state: Extract<SessionState, { kind: "signed-out" }>;
}

export function SignInPage({ state: { ended, problem } }: SignInPageProps) {
  const [isBusy, setBusy] = useState(false);
  const signIn = (options: LoginOptions = {}) => {
    setBusy(true);
    void beginLogin(options);
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
            <Button isBusy={isBusy} onClick={() => signIn({ prompt: "select_account" })}>
              Sign in as somebody else
            </Button>
          )}
        </div>
        <OrganisationLogin isBusy={isBusy} onSignIn={signIn} />
        <p className="soft">
          You have the link of an invite? Open it to join an organisation. New here without one? Ask an owner of your
          organisation for an invite.
        </p>
      </Page>
    </main>
  );
}

interface OrganisationLoginProps {
  readonly isBusy: boolean;
  readonly onSignIn: (options: LoginOptions) => void;
}

/** Signs in with the identity provider of an organisation. */
function OrganisationLogin({ isBusy, onSignIn }: OrganisationLoginProps) {
  const [name, setName] = useState("");
  const [isTried, setTried] = useState(false);

  function submit(event: FormEvent): void {
    event.preventDefault();
    setTried(true);
    if (name.trim() !== "") onSignIn({ idpId: name.trim() });
  }

  return (
    <details className="commands">
      <summary>Sign in with your organisation</summary>
      <form className="padded" onSubmit={submit} noValidate>
        <TextField
          label="Organisation"
          hint="Its name, such as acme.example, if it has an identity provider of its own"
          wrong={isTried && name.trim() === "" ? "The name of your organisation is needed" : undefined}
          value={name}
          onChange={({ target }) => setName(target.value)}
        />
        <div className="actions">
          <Button type="submit" isBusy={isBusy}>
            Continue
          </Button>
        </div>
      </form>
    </details>
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
