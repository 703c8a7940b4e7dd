// A proxy before an OpenID Provider that takes RFC 9207 away: what discovery announces of it, and the `iss` of
// responses. So stand providers that do not know it yet, and gateways that do not pass it on.
import { type IncomingMessage, request, type ServerResponse } from "node:http";

const ANNOUNCEMENT = "authorization_response_iss_parameter_supported";

/**
 * Forwards a request and takes `iss` out of the response.
 *
 * @param port of the provider, on 127.0.0.1
 */
export function forwardWithoutIss(req: IncomingMessage, res: ServerResponse, port: number): void {
  const { method = "GET", url: path = "/", headers } = req;
  const forwarded = request({ host: "127.0.0.1", port, method, path, headers }, (response) => {
    const { location, ...rest } = response.headers;
    if (location !== undefined) rest.location = withoutIss(location);
    if (!path.startsWith("/.well-known/")) {
      res.writeHead(response.statusCode ?? 502, rest);
      response.pipe(res);
      return;
    }
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("end", () => {
      const { [ANNOUNCEMENT]: announced, ...metadata } = JSON.parse(Buffer.concat(chunks).toString()) as Record<
        string,
        unknown
      >;
      if (announced !== true) throw new Error("the provider does not announce RFC 9207: there is nothing to take away");
      const body = JSON.stringify(metadata);
      res.writeHead(200, { ...rest, "content-length": Buffer.byteLength(body) }).end(body);
    });
  });
  forwarded.on("error", () => res.destroy());
  req.pipe(forwarded);
}

function withoutIss(location: string): string {
  if (!URL.canParse(location)) return location;
  const url = new URL(location);
  url.searchParams.delete("iss");
  return url.href;
}
