import { type ComponentType, lazy, Suspense } from "react";
import { Route, Switch, useLocation } from "wouter";
import { JoinPage } from "./pages/join.js";
import { SignInPage, UnreachablePage } from "./pages/sign-in.js";
import { useCaller, useSession } from "./session/use-session.js";
import { Shell } from "./shell.js";
import { ErrorBoundary } from "./ui/error-boundary.js";
import { Loading, Page } from "./ui/page.js";

// A view is loaded when it is opened.
const OrganisationsPage = lazy(async () => ({ default: (await import("./pages/organisations.js")).OrganisationsPage }));
const GroupPage = lazy(async () => ({ default: (await import("./pages/group/group.js")).GroupPage }));
const IdentityPage = lazy(async () => ({ default: (await import("./pages/identity/identity.js")).IdentityPage }));
const AccountPage = lazy(async () => ({ default: (await import("./pages/account/account.js")).AccountPage }));
const FindPage = lazy(async () => ({ default: (await import("./pages/find.js")).FindPage }));

const views: readonly (readonly [path: string, view: ComponentType<{ readonly uid: string }>])[] = [
  ["/groups/*", GroupPage],
  ["/identities/*", IdentityPage],
];

export function App() {
  const state = useSession();
  const subject = useCaller();
  if (state.kind === "unreachable") return <UnreachablePage problem={state.problem} />;
  return (
    <Switch>
      {/* An invite is accepted with a login, so its page needs nobody to be signed in. */}
      <Route path="/join">
        <JoinPage />
      </Route>
      {/* Another person may sign in in another tab: nothing of the first stays. */}
      <Route>{state.kind === "signed-out" ? <SignInPage state={state} /> : <SignedIn key={subject} />}</Route>
    </Switch>
  );
}

function SignedIn() {
  const [path] = useLocation();
  return (
    <Shell>
      <ErrorBoundary key={path}>
        <Suspense fallback={<Loading />}>
          <Switch>
            <Route path="/">
              <OrganisationsPage />
            </Route>
            {views.map(([path, View]) => (
              <Route path={path} key={path}>
                {(params: { readonly "*": string }) => <View uid={params["*"]} key={params["*"]} />}
              </Route>
            ))}
            <Route path="/find">
              <FindPage />
            </Route>
            <Route path="/account">
              <AccountPage />
            </Route>
            <Route>
              <Page title="There is no such page">
                <p>
                  The address leads to no view of the console. Find what you look for with the key / or the field above.
                </p>
              </Page>
            </Route>
          </Switch>
        </Suspense>
      </ErrorBoundary>
    </Shell>
  );
}
