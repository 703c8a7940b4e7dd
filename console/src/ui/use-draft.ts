import { useEffect, useState } from "react";

/**
 * A state that outlives a login in between: it lies in sessionStorage until it is dropped.
 *
 * @returns the value, its setter, and what drops it
 */
export function useDraft<T>(key: string, initial: T): readonly [T, (value: T) => void, () => void] {
  const name = `arbor-draft ${key}`;
  const [value, setValue] = useState<T>(() => readDraft(name) ?? initial);
  useEffect(() => {
    sessionStorage.setItem(name, JSON.stringify(value));
  }, [name, value]);
  return [value, setValue, () => sessionStorage.removeItem(name)] as const;
}

function readDraft<T>(name: string): T | undefined {
  const text = sessionStorage.getItem(name);
  return text === null ? undefined : (JSON.parse(text) as T);
}
