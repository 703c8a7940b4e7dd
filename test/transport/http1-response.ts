/** A response of HTTP/1.1 in its parts; the head in lower case. */
export function parseHttp1(text: string): { status: number; head: string; body: string } {
  const split = text.indexOf("\r\n\r\n");
  return { status: Number(text.slice(9, 12)), head: text.slice(0, split).toLowerCase(), body: text.slice(split + 4) };
}

/** The body of an error without details but its own. */
export const errorBody = (code: number, message: string, reason = "INVALID_ARGUMENT") => ({
  code,
  message,
  details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "iam.test" }],
});

export const EXACTLY_ONE_HOST = "Invalid argument: exactly one host header is required";
export const INVALID_HOST = "Invalid argument: host must be a valid host name with an optional port";
