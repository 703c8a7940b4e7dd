// Calls of the API: Connect with binary messages, at the origin that served the page.
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { session } from "../session/session.js";

// A token that was revoked, or signed by a key that is gone, is renewed once.
const authorize: Interceptor = (next) => async (request) => {
  const token = await session.token();
  request.header.set("authorization", `Bearer ${token}`);
  try {
    return await next(request);
  } catch (error) {
    if (ConnectError.from(error).code !== Code.Unauthenticated) throw error;
    request.header.set("authorization", `Bearer ${await session.token(token)}`);
    return next(request);
  }
};

export const transport = createConnectTransport({
  baseUrl: location.origin,
  useBinaryFormat: true,
  defaultTimeoutMs: 30_000,
  interceptors: [authorize],
});

const ATTEMPTS = 3;

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      // A page of a list that is not shown is read again, not kept.
      gcTime: 60_000,
      retry: (count, error) => count < ATTEMPTS - 1 && mayPass(error),
      refetchOnWindowFocus: "always",
    },
    mutations: { retry: false },
  },
});

// What one person was shown is not shown to the next. This listener is there before any view.
let person = "";
session.subscribe(() => {
  const { state } = session;
  const next = state.kind === "signed-in" ? state.subject : person;
  if (next !== person) queries.clear();
  person = next;
});

/** Whether the same call may succeed a moment later. */
function mayPass(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return code === Code.Unavailable || code === Code.Aborted || (code === Code.Unknown && navigator.onLine);
}

let treeVersion = 0;
const treeListeners = new Set<() => void>();

/** Forgets what lists, pages and the tree have shown, after a change of groups. */
export function refreshGroups(): Promise<void> {
  treeVersion++;
  for (const listener of treeListeners) listener();
  return refresh();
}

/** Counts changes of groups: the tree, which reads children once, is read anew with each. */
export function useTreeVersion(): number {
  return useSyncExternalStore(
    (listener) => {
      treeListeners.add(listener);
      return () => treeListeners.delete(listener);
    },
    () => treeVersion,
  );
}

/** Forgets what lists and pages have shown, after a change. */
export function refresh(): Promise<void> {
  return queries.invalidateQueries();
}
