// The viewer's own identity, the roles that others bound them to, and their sessions.
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import { Link } from "wouter";
import { type Binding, BindingsService } from "#gen/arbor/bindings/v1/bindings_pb.js";
import { type Session as Login, SessionsService } from "#gen/arbor/sessions/v1/sessions_pb.js";
import { TokensService } from "#gen/arbor/tokens/v1/tokens_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { readProblem } from "../../api/errors.js";
import { refresh } from "../../api/transport.js";
import { session } from "../../session/session.js";
import { useCaller, useSession } from "../../session/use-session.js";
import { Button, CopyButton } from "../../ui/button.js";
import { ConfirmDialog } from "../../ui/confirm-dialog.js";
import { ProblemNote } from "../../ui/field.js";
import { Empty, Failed, Loading, Page } from "../../ui/page.js";
import { Time } from "../../ui/time.js";
import { say } from "../../ui/toasts.js";

const SHOWN = 200;

export function AccountPage() {
  const caller = useCaller();
  const { data: me } = useQuery(Auth.method.validate);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const signOut = () => {
    setBusy(true);
    session.signOut().catch((error: Error) => {
      setBusy(false);
      setProblem(error.message);
    });
  };
  return (
    <Page
      title="Your account"
      actions={
        <Button isBusy={isBusy} onClick={signOut}>
          Sign out
        </Button>
      }
    >
      {problem !== undefined && (
        <p className="note wrong" role="alert">
          You are still signed in: {problem}
        </p>
      )}
      <dl className="facts">
        <dt>E-mail address</dt>
        <dd>{me?.email || <span className="soft">none that a provider has confirmed</span>}</dd>
        <dt>Name</dt>
        <dd className="foreign">{me?.profile?.name || <span className="soft">none</span>}</dd>
        <dt>Uid</dt>
        <dd>
          <code>{caller}</code> <CopyButton text={caller} what="your uid" />
        </dd>
      </dl>
      <OwnBindings pending />
      <OwnBindings pending={false} />
      <Sessions />
    </Page>
  );
}

function OwnBindings({ pending }: { readonly pending: boolean }) {
  const request = { pending, pageSize: SHOWN };
  const { data, error, refetch } = useQuery(BindingsService.method.listBindings, request);
  const [dropped, setDropped] = useState<Binding>();
  const accept = useMutation(BindingsService.method.acceptBinding);
  if (data === undefined) return error ? <Failed error={error} onRetry={() => void refetch()} /> : <Loading />;
  if (pending && data.bindings.length === 0) return null;

  async function acceptOne({ uid, organization }: Binding): Promise<void> {
    const accepted = await accept.mutateAsync({ uid }).catch(() => undefined);
    if (accepted === undefined) return;
    say(`You are in ${organization?.name} now.`);
    await refresh();
  }

  return (
    <section className="stack" aria-labelledby={`bindings-${pending}`}>
      <h2 id={`bindings-${pending}`}>{pending ? "Roles that wait for you" : "Your roles"}</h2>
      {pending && (
        <p>
          Others granted you these. Until you accept one, you are not a member of its organisation, and it sees no
          address of you.
        </p>
      )}
      <ProblemNote problem={accept.error ? readProblem(accept.error) : undefined} />
      {data.bindings.length === 0 && <Empty title="You have no roles" />}
      <ul className="plain stack">
        {data.bindings.map((binding) => (
          <li key={binding.uid} className="note">
            <div className="title-row">
              <span>
                <strong className="foreign">{binding.role?.name}</strong> in{" "}
                <Link href={`/groups/${binding.group?.uid}`} className="foreign">
                  {binding.group?.name}
                </Link>
                {binding.organization?.uid !== binding.group?.uid && (
                  <span className="soft foreign"> of {binding.organization?.name}</span>
                )}{" "}
                {binding.organization?.verified ? (
                  <span className="badge good">verified</span>
                ) : (
                  pending && <span className="badge warn">not verified: anybody can take this name</span>
                )}
                {binding.endTime !== undefined && (
                  <span className="soft">
                    {" "}
                    ends <Time at={binding.endTime} relative />
                  </span>
                )}
              </span>
              <div className="actions">
                {pending && (
                  <Button isSmall look="main" isBusy={accept.isPending} onClick={() => void acceptOne(binding)}>
                    Accept
                  </Button>
                )}
                <Button isSmall look="quiet" onClick={() => setDropped(binding)}>
                  Give up…<span className="visually-hidden"> {binding.role?.name}</span>
                </Button>
              </div>
            </div>
          </li>
        ))}
      </ul>
      {data.nextPageToken !== "" && <p className="soft">The first {SHOWN} are shown.</p>}
      {dropped !== undefined && <DropDialog binding={dropped} onClose={() => setDropped(undefined)} />}
    </section>
  );
}

interface DropDialogProps {
  readonly binding: Binding;
  readonly onClose: () => void;
}

function DropDialog({ binding: { uid, role, group }, onClose }: DropDialogProps) {
  const drop = useMutation(BindingsService.method.dropBinding);
  return (
    <ConfirmDialog
      title="Give up this role?"
      label="Give up the role"
      run={() => drop.mutateAsync({ uid })}
      done="You gave up the role."
      action={{ method: "DELETE", path: `/bindings/v1/bindings/${uid}`, arbor: ["auth", "bindings", "drop", uid] }}
      onClose={onClose}
    >
      <p>
        You are no longer <span className="foreign">{role?.name}</span> in{" "}
        <span className="foreign">{group?.name}</span>. You cannot take it back: somebody must grant it again.
      </p>
    </ConfirmDialog>
  );
}

function Sessions() {
  const caller = useCaller();
  const state = useSession();
  const own = state.kind === "signed-in" ? state.id : "";
  const [isEndingAll, setEndingAll] = useState(false);
  const { data, error, refetch } = useQuery(SessionsService.method.listSessions, { pageSize: SHOWN });
  const revoke = useMutation(SessionsService.method.revokeSession);
  const revokeAll = useMutation(TokensService.method.revokeTokens);
  if (data === undefined) return error ? <Failed error={error} onRetry={() => void refetch()} /> : <Loading />;

  async function end({ id }: Login): Promise<void> {
    if (id === own) return session.signOut();
    const done = await revoke.mutateAsync({ id }).catch(() => undefined);
    if (done !== undefined) await refresh();
  }

  async function endAll(): Promise<void> {
    await revokeAll.mutateAsync({ uid: caller });
    await session.signOut();
  }

  return (
    <section className="stack" aria-labelledby="sessions">
      <h2 id="sessions">Your sessions</h2>
      <p>Where you are signed in: browsers, and machines on which you use the command line.</p>
      <ProblemNote problem={revoke.error ? readProblem(revoke.error) : undefined} />
      <ul className="plain stack">
        {data.sessions.map((one) => (
          <li key={one.id} className="note">
            <div className="title-row">
              <span>
                {one.client === "console" ? "The console" : one.client || "The command line or another program"}, since{" "}
                <Time at={one.createTime} />, until <Time at={one.expireTime} />{" "}
                {one.id === own && <span className="badge good">this browser</span>}
              </span>
              <div className="actions">
                <Button isSmall look="quiet" isBusy={revoke.isPending} onClick={() => void end(one)}>
                  {one.id === own ? "Sign out" : "End"}
                </Button>
              </div>
            </div>
          </li>
        ))}
      </ul>
      <div className="actions">
        <Button look="danger" onClick={() => setEndingAll(true)}>
          Sign out everywhere…
        </Button>
      </div>
      {isEndingAll && (
        <ConfirmDialog
          title="Sign out everywhere?"
          label="Sign out everywhere"
          run={endAll}
          action={{
            method: "POST",
            path: `/tokens/v1/identities/${caller}:revokeTokens`,
            body: {},
            arbor: ["iam", "identities", "revoke-tokens"],
          }}
          onClose={() => setEndingAll(false)}
        >
          <p>
            All your sessions end, here and on other machines, and all your tokens are refused from the next call on.
          </p>
        </ConfirmDialog>
      )}
    </section>
  );
}
