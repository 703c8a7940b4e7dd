// One HTTP request and its whole response. A test that sends thousands spends most of its
// time in `fetch`, which costs several times as much.
import { Agent, type IncomingMessage, request } from "node:http";

const agent = new Agent({ keepAlive: true });

/** What is sent besides the URL. */
export interface HttpRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** What came back. */
export interface HttpResponse {
  readonly status: number;
  /** Whether it is a success. */
  readonly ok: boolean;
  readonly headers: Headers;
  readonly body: Buffer;
  /** The body as UTF-8. */
  readonly text: string;
}

/**
 * Sends it; follows no redirect and asks for no compression.
 *
 * @param url with `http:`
 * @throws Error of the socket when the response does not come, or not to its end
 */
export function sendHttp(url: string, sent: HttpRequest = {}): Promise<HttpResponse> {
  const { method = "GET", headers = {}, body } = sent;
  return new Promise((resolve, reject) => {
    const req = request(url, { method, headers, agent }, (res) => readResponse(res, resolve, reject));
    req.on("error", (error: NodeJS.ErrnoException) => {
      // The service may close an idle connection just when it is used again.
      if (req.reusedSocket && error.code === "ECONNRESET") sendHttp(url, sent).then(resolve, reject);
      else reject(error);
    });
    req.end(body);
  });
}

function readResponse(
  res: IncomingMessage,
  resolve: (response: HttpResponse) => void,
  reject: (error: Error) => void,
): void {
  const chunks: Buffer[] = [];
  res.on("data", (chunk: Buffer) => chunks.push(chunk));
  res.on("error", reject);
  res.on("end", () => {
    const status = res.statusCode ?? 0;
    const body = Buffer.concat(chunks);
    resolve({
      status,
      ok: status >= 200 && status < 300,
      // Made when they are read, which most tests do not.
      get headers() {
        const headers = new Headers();
        for (let i = 0; i < res.rawHeaders.length; i += 2)
          headers.append(res.rawHeaders[i] ?? "", res.rawHeaders[i + 1] ?? "");
        return headers;
      },
      body,
      text: body.toString(),
    });
  });
}
