import { LRUCache } from "lru-cache";

/** How long what was fetched is used, in milliseconds. */
export interface ConfigurationTimes {
  /** Without asking again. */
  readonly freshMs: number;
  /** Between two attempts at a provider that fails. */
  readonly pauseMs: number;
  /** While the provider fails. */
  readonly staleMs: number;
}

const TIMES: ConfigurationTimes = { freshMs: 60_000, pauseMs: 10_000, staleMs: 60 * 60_000 };
/** How many organisations, and providers of each of them or of the operator, are kept. */
const MAX_ORGANISATIONS = 500;
const MAX_PROVIDERS = 20;

interface Partition<T> {
  readonly current: LRUCache<string, Promise<T>>;
  readonly last: LRUCache<string, { readonly value: T }>;
}

/**
 * Keeps what login providers publish of themselves, apart for each organisation and for the operator.
 *
 * @param fetchOf asks the provider
 * @returns a function of the organisation, undefined for the operator, and of what names the provider and
 * its settings. It rejects as `fetchOf` does when the provider has never answered within the last hour.
 */
export function createProviderConfigurations<P, T extends object>(fetchOf: (provider: P) => Promise<T>, times = TIMES) {
  const operator = newPartition<T>(times);
  const organisations = new LRUCache<string, Partition<T>>({ max: MAX_ORGANISATIONS });

  function partitionOf(organisation: string | undefined): Partition<T> {
    if (organisation === undefined) return operator;
    const found = organisations.get(organisation) ?? newPartition<T>(times);
    organisations.set(organisation, found);
    return found;
  }

  return (organisation: string | undefined, key: string, provider: P): Promise<T> => {
    const { current, last } = partitionOf(organisation);
    const found = current.get(key);
    if (found !== undefined) return found;
    const made = fetchOf(provider).then(
      (value) => {
        last.set(key, { value });
        return value;
      },
      (error: unknown) => {
        current.set(key, made, { ttl: times.pauseMs });
        const known = last.get(key);
        if (known === undefined) throw error;
        return known.value;
      },
    );
    current.set(key, made);
    return made;
  };
}

function newPartition<T>({ freshMs, staleMs }: ConfigurationTimes): Partition<T> {
  return {
    current: new LRUCache({ max: MAX_PROVIDERS, ttl: freshMs }),
    last: new LRUCache({ max: MAX_PROVIDERS, ttl: staleMs }),
  };
}
