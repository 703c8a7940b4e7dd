// What callers say they would rather have: weighted lists in headers (RFC 9110,
// sections 12.4.2, 12.5.1 and 12.5.3).

/** A content coding of responses. */
export type Coding = "br" | "gzip";

/**
 * The coding to send a response in; undefined for none. Never a refusal: who accepts nothing that we
 * have gets the response as it is.
 */
export function codingFor(acceptEncoding: string | undefined): Coding | undefined {
  if (acceptEncoding === undefined) return undefined;
  const weights = weightsOf(acceptEncoding);
  const other = weights.get("*") ?? 0;
  const br = weights.get("br") ?? other;
  const gzip = weights.get("gzip") ?? weights.get("x-gzip") ?? other;
  const best = Math.max(br, gzip);
  // Not mentioned, the plain form is only what is left when nothing else will do.
  const plain = weights.get("identity") ?? other;
  if (best === 0 || best < plain) return undefined;
  return br === best ? "br" : "gzip";
}

/** Whether a stream should be sent as events: they are asked for by name, and not less than lines. */
export function prefersEvents(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const weights = weightsOf(accept);
  const events = weights.get("text/event-stream") ?? 0;
  return events > 0 && events >= (weights.get("application/x-ndjson") ?? 0);
}

// An entry with a malformed weight is passed over; of two of the same name the greater counts.
function weightsOf(list: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const entry of list.toLowerCase().split(",")) {
    const [name = "", ...parameters] = entry.split(";").map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    if (name === "" || (q !== undefined && !WEIGHT.test(q))) continue;
    const weight = q === undefined ? 1 : Number(q);
    weights.set(name, Math.max(weight, weights.get(name) ?? 0));
  }
  return weights;
}

const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;
