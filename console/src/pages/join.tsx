// Accepts an invite. The decision itself is made on the page of the login, which shows who invites whom into what.
import { type FormEvent, useEffect, useState } from "react";
import { readInviteCode } from "../api/invites.js";
import { beginLogin } from "../session/login.js";
import { Button } from "../ui/button.js";
import { TextField } from "../ui/field.js";
import { Page } from "../ui/page.js";

export function JoinPage() {
  const [code, setCode] = useState(() => readInviteCode(location.hash));
  const [wrong, setWrong] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const [isLink] = useState(() => location.hash.length > 1);
  // The code stays neither in the address nor in the history.
  useEffect(() => history.replaceState(null, "", location.pathname), []);

  function join(event: FormEvent): void {
    event.preventDefault();
    const invite = readInviteCode(code);
    if (invite === "") {
      setWrong("Paste the code of the invite, or its link");
      return;
    }
    setBusy(true);
    void beginLogin({ invite, backTo: "/console/account" });
  }

  return (
    <main className="centre">
      <Page title="Join an organisation">
        <p>
          {isLink ? "You were invited. " : ""}Sign in to see who invites you, into which group and with which role. You
          join only if you agree there.
        </p>
        <form onSubmit={join} noValidate>
          {!isLink && (
            <TextField
              label="Invite"
              hint="The code or the link that you were sent"
              wrong={wrong}
              value={code}
              onChange={(event) => setCode(event.target.value)}
            />
          )}
          <div className="actions">
            <Button type="submit" look="main" isBusy={isBusy}>
              Sign in and look at the invite
            </Button>
          </div>
        </form>
      </Page>
    </main>
  );
}
