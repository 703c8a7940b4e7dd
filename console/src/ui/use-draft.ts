import { useEffect, useRef, useState } from "react";
import { dropDraft, readDraft, storeDraft } from "../session/drafts.js";

/**
 * A state that outlives a login in between, until it is dropped.
 *
 * @returns the value, its setter, and what drops it
 */
export function useDraft<T>(key: string, initial: T): readonly [T, (value: T) => void, () => void] {
  const [value, setValue] = useState<T>(() => readDraft(key) ?? initial);
  const isDropped = useRef(false);
  useEffect(() => {
    if (!isDropped.current) storeDraft(key, value);
  }, [key, value]);
  const drop = () => {
    isDropped.current = true;
    dropDraft(key);
  };
  return [value, setValue, drop] as const;
}
