// Times at which no token is valid. Verifiers differ in how far clocks may differ and how long tokens live.

/** The limits of a verifier, in seconds. */
export interface TimeLimits {
  readonly leewayS: number;
  readonly maxLifeS: number;
}

/** Times of a token, in epoch seconds. */
export interface Times {
  readonly iat?: number | undefined;
  readonly nbf?: number;
  readonly exp?: number;
}

/** Times that are wrong. */
export interface WrongTimes {
  readonly differs: string;
  /** Why the verifier of other issuers' tokens rejects them. */
  readonly rule: string;
  /**
   * The claims that differ from those of a token that was issued at `nowS` or some seconds before.
   *
   * @param beyondS how far beyond the limit they are; 0 and less are within it
   */
  make(nowS: number, beyondS: number, limits: TimeLimits): Times;
}

export const EXPIRED = "has expired";
const LONG = "lives longer than allowed";
const NOT_YET = "is not valid yet";
const FUTURE = "was issued in the future";
const TEN_YEARS_S = 315_360_000;

/** Those with a limit. */
export const wrongTimes: readonly WrongTimes[] = [
  {
    differs: "has expired",
    rule: EXPIRED,
    make: (nowS, beyondS, { leewayS }) => ({ iat: nowS - leewayS - beyondS - 600, exp: nowS - leewayS - beyondS }),
  },
  {
    differs: "begins in the future",
    rule: NOT_YET,
    make: (nowS, beyondS, { leewayS }) => ({ nbf: nowS + leewayS + beyondS }),
  },
  {
    differs: "was issued in the future",
    rule: FUTURE,
    make: (nowS, beyondS, { leewayS }) => {
      const iat = nowS + leewayS + beyondS;
      return { iat, exp: iat + 600 };
    },
  },
  {
    differs: "expired before it was issued",
    rule: "expired before it was issued",
    make: (nowS, beyondS) => ({ iat: nowS, exp: nowS - Math.min(beyondS, 10) }),
  },
  {
    differs: "lives too long",
    rule: LONG,
    make: (nowS, beyondS, { maxLifeS }) => ({ iat: nowS - 10, exp: nowS - 10 + maxLifeS + beyondS }),
  },
  {
    differs: "was issued too long ago, and lives",
    rule: LONG,
    make: (nowS, beyondS, { maxLifeS }) => ({ iat: nowS + 600 - maxLifeS - beyondS, exp: nowS + 600 }),
  },
  {
    differs: "has too long to live, and does not say since when it does",
    rule: LONG,
    make: (nowS, beyondS, { maxLifeS }) => ({ iat: undefined, exp: nowS + maxLifeS + beyondS }),
  },
];

const farTime = (differs: string, rule: string, make: (nowS: number) => Times): WrongTimes => ({ differs, rule, make });

/** Those far from every limit. */
export const farTimes: readonly WrongTimes[] = [
  farTime("expired long ago", EXPIRED, (nowS) => ({ iat: nowS - 9_999, exp: nowS - 8_888 })),
  farTime("expired in 1970", EXPIRED, () => ({ iat: undefined, exp: 0 })),
  farTime("expired before 1970", EXPIRED, () => ({ iat: undefined, exp: -1 })),
  farTime("expired as long before 1970", EXPIRED, (nowS) => ({ iat: undefined, exp: -nowS })),
  farTime("begins in ten years", NOT_YET, (nowS) => ({ nbf: nowS + TEN_YEARS_S })),
  farTime("begins in 2^53 seconds", NOT_YET, () => ({ nbf: 2 ** 53 })),
  farTime("was issued in ten years", FUTURE, (nowS) => {
    return { iat: nowS + TEN_YEARS_S, exp: nowS + TEN_YEARS_S + 600 };
  }),
  farTime("was issued in milliseconds", FUTURE, (nowS) => ({ iat: nowS * 1_000 })),
  farTime("was issued in 2^53 seconds", FUTURE, () => ({ iat: 2 ** 53 })),
  farTime("lives for ten years", LONG, (nowS) => ({ exp: nowS + TEN_YEARS_S })),
  farTime("expires in milliseconds", LONG, (nowS) => ({ exp: (nowS + 600) * 1_000 })),
  farTime("expires in 2^53 seconds", LONG, () => ({ exp: 2 ** 53 })),
  farTime("lives for ever", LONG, () => ({ exp: 1e308 })),
  farTime("was issued in 1970", LONG, () => ({ iat: 0 })),
  farTime("was issued before 1970", LONG, () => ({ iat: -1 })),
  farTime("was issued at the beginning of time", LONG, () => ({ iat: -1e308 })),
];
