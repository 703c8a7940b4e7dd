const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/**
 * The value of a `grpc-timeout` header in milliseconds, NaN when it is malformed (gRPC over HTTP/2,
 * "Timeout": one to eight digits and a unit).
 */
export function grpcTimeoutMs(value: string): number {
  const digits = value.length - 1;
  const unit = unitMs[value.charAt(digits)];
  if (unit === undefined || digits < 1 || digits > 8) return Number.NaN;
  let amount = 0;
  for (let i = 0; i < digits; i++) {
    const digit = value.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return Number.NaN;
    amount = amount * 10 + digit;
  }
  return amount * unit;
}
