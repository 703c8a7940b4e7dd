// Signs tokens in threads of libuv's pool, which files and compression use too. Organisations sign in turns, so that one
// with thousands of exchanges delays only its own.
import { resourceExhausted } from "../kernel/errors.js";
import { signJwt, type UnsignedJwt } from "../kernel/jws.js";
import { createSlots, type SlotLimits } from "../outbound/slots.js";

/** Signs a JWT for an organisation. @throws ApiError RESOURCE_EXHAUSTED when many of its JWTs wait */
export type Signer = (jwt: UnsignedJwt, organisation: string) => Promise<string>;

/** A signature takes a third of a millisecond, so 1,000 wait for a sixth of a second. */
const LIMITS: SlotLimits = {
  running: 3,
  runningPerAccount: 2,
  runningPerTarget: Number.POSITIVE_INFINITY,
  waiting: 20_000,
  waitingPerAccount: 1_000,
};
const RETRY_MS = 1_000;

export function createSigner(sign = signJwt, limits = LIMITS): Signer {
  const slots = createSlots(limits);
  return async (jwt, organisation) => {
    const never = new AbortController().signal;
    const release = await slots.acquire(organisation, "", never).catch(() => {
      throw resourceExhausted("too many tokens of this organisation are being signed", RETRY_MS, "rate");
    });
    try {
      return await sign(jwt);
    } finally {
      release();
    }
  };
}
