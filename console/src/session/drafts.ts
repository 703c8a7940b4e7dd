// What a person has typed and not sent, in this tab. It outlives a login in between, and belongs to that person.
const PREFIX = "arbor-draft ";
const PERSON = "arbor-drafts-of";

export function readDraft<T>(key: string): T | undefined {
  const text = sessionStorage.getItem(PREFIX + key);
  return text === null ? undefined : (JSON.parse(text) as T);
}

export function storeDraft(key: string, value: unknown): void {
  sessionStorage.setItem(PREFIX + key, JSON.stringify(value));
}

export function dropDraft(key: string): void {
  sessionStorage.removeItem(PREFIX + key);
}

/** Drops all drafts that are not those of a person, whose drafts follow. */
export function dropDraftsOfOthers(person: string): void {
  if (sessionStorage.getItem(PERSON) === person) return;
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
  sessionStorage.setItem(PERSON, person);
}
