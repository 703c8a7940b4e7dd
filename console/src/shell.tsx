// What stands around every view: the top with the field to find things, and the tree of groups.
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { Button } from "./ui/button.js";
import { ErrorBoundary } from "./ui/error-boundary.js";
import { FindIcon, PersonIcon, TreeIcon } from "./ui/icons.js";
import { Toasts } from "./ui/toasts.js";

const GroupTree = lazy(async () => ({ default: (await import("./tree.js")).GroupTree }));
const importFindDialog = () => import("./find-dialog.js");
const FindDialog = lazy(async () => ({ default: (await importFindDialog()).FindDialog }));

/** When the dialog to find things is loaded, in milliseconds after the shell. */
const PRELOAD_MS = 1_000;

export function Shell({ children }: { readonly children: ReactNode }) {
  const [isFinding, setFinding] = useState(false);
  const [isTreeOpen, setTreeOpen] = useState(false);
  const [path] = useLocation();
  useFindKey(() => setFinding(true));
  // Whoever presses the key goes on typing, so the dialog is there by then. The first view comes before it.
  useEffect(() => {
    const timer = setTimeout(() => void importFindDialog(), PRELOAD_MS);
    return () => clearTimeout(timer);
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another path closes what lies over the view.
  useEffect(() => {
    setFinding(false);
    setTreeOpen(false);
  }, [path]);
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <header className="top">
        <Button
          className="to-tree"
          isSmall
          aria-expanded={isTreeOpen}
          aria-controls="tree"
          aria-label="Groups"
          onClick={() => setTreeOpen(!isTreeOpen)}
        >
          <TreeIcon />
        </Button>
        <Link href="/" className="brand">
          Arbor<span className="brand-word">&nbsp;console</span>
        </Link>
        <Button className="find" onClick={() => setFinding(true)} aria-keyshortcuts="/ Control+K Meta+K">
          <span className="actions">
            <FindIcon /> Find
          </span>
          <kbd>/</kbd>
        </Button>
        <Link href="/account" className="button quiet" aria-label="Your account">
          <PersonIcon />
        </Link>
      </header>
      <nav className={isTreeOpen ? "side open" : "side"} id="tree" aria-label="Groups">
        <ErrorBoundary>
          <Suspense>
            <GroupTree />
          </Suspense>
        </ErrorBoundary>
      </nav>
      <main className="main" id="main" tabIndex={-1}>
        <Offline />
        {children}
      </main>
      <Suspense>{isFinding && <FindDialog onClose={() => setFinding(false)} />}</Suspense>
      <Toasts />
    </div>
  );
}

function Offline() {
  const [isOnline, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const update = () => setOnline(navigator.onLine);
    addEventListener("online", update);
    addEventListener("offline", update);
    return () => {
      removeEventListener("online", update);
      removeEventListener("offline", update);
    };
  }, []);
  if (isOnline) return null;
  return (
    <div className="note warn" role="status">
      This browser is offline. What is shown may be old; changes wait until you are connected again.
    </div>
  );
}

// `/` as on many sites, except where a person types, and Control or Command with K everywhere.
function useFindKey(open: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = (event.target as Element).closest?.("input, textarea, select, [contenteditable]") !== null;
      const isSlash = event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey;
      const isCommand = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
      if (!isSlash && !isCommand) return;
      event.preventDefault();
      open();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
}
