import { useSyncExternalStore } from "react";
import { type SessionState, session } from "./session.js";

/** The state of the session, kept current. */
export function useSession(): SessionState {
  return useSyncExternalStore(session.subscribe, () => session.state);
}

/** The uid of the person who is signed in. */
export function useCaller(): string {
  const state = useSession();
  return state.kind === "signed-in" ? state.subject : "";
}
