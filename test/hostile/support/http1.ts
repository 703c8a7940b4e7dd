// HTTP/1 by hand, since clients refuse to send much of what attackers do.
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

const RESPONSE_MS = 5_000;
const HOST = "Host: 127.0.0.1\r\n";

/** A request as bytes and how it is to be answered; status 0: the connection ends without a response. */
export interface Http1Form {
  readonly name: string;
  readonly text: string;
  readonly status: number;
}

const form = (name: string, status: number, line: string, rest = ""): Http1Form => ({
  name,
  status,
  text: `${line}\r\n${HOST}${rest}\r\n`,
});

/** Request lines with versions that HTTP/1.1 connections do not carry, and some that they do. */
export const HTTP_FORMS: readonly Http1Form[] = [
  form("GET in HTTP/2.0", 505, "GET / HTTP/2.0"),
  form("a REST path in HTTP/2.0", 505, "GET /iam/v2beta1/groups HTTP/2.0"),
  form("/healthz in HTTP/2.0", 505, "GET /healthz HTTP/2.0"),
  form("an absolute target in HTTP/2.0", 505, "GET http://127.0.0.1/ HTTP/2.0"),
  form("OPTIONS * in HTTP/2.0", 505, "OPTIONS * HTTP/2.0"),
  form("POST in HTTP/2.0", 505, "POST /oauth/token HTTP/2.0", "Content-Length: 0\r\n"),
  form(
    "a gRPC call in HTTP/2.0",
    505,
    "POST /a.B/C HTTP/2.0",
    "Content-Type: application/grpc\r\nContent-Length: 0\r\n",
  ),
  form(
    "an expectation in HTTP/2.0",
    505,
    "POST /oauth/token HTTP/2.0",
    "Content-Length: 9\r\nExpect: 100-continue\r\n",
  ),
  form(
    "a large expectation in HTTP/2.0",
    505,
    "POST / HTTP/2.0",
    "Content-Length: 99999999\r\nExpect: 100-continue\r\n",
  ),
  form("an odd expectation in HTTP/2.0", 505, "GET / HTTP/2.0", "Expect: tea\r\n"),
  form("an upgrade in HTTP/2.0", 505, "GET / HTTP/2.0", "Connection: Upgrade\r\nUpgrade: h2c\r\n"),
  form("HTTP/3.0", 400, "GET / HTTP/3.0"),
  form("HTTP/1.7", 400, "GET / HTTP/1.7"),
  form("/healthz in HTTP/1.1", 200, "GET /healthz HTTP/1.1"),
];

/** Sends bytes and reads the status of the first response; 0 when the connection ends without one. */
export function readStatus(url: string, bytes: string | Buffer, localAddress: string): Promise<number> {
  return exchangeBytes(url, bytes, localAddress).then(({ statuses: [status = 0] }) => status);
}

/** What came back for some bytes. */
export interface RawResponse {
  /** The statuses of all responses, in order. */
  readonly statuses: readonly number[];
  readonly text: string;
}

/**
 * Sends bytes and reads until the other end closes, a whole response is there, or nothing comes.
 *
 * @param all reads until the other end closes, answers or not
 */
export function exchangeBytes(
  url: string,
  bytes: string | Buffer,
  localAddress: string,
  all = false,
): Promise<RawResponse> {
  const { port, protocol } = new URL(url);
  return new Promise((resolve) => {
    let text = "";
    const to = { host: "127.0.0.1", port: Number(port), localAddress };
    const socket: Socket =
      protocol === "https:"
        ? connectTls({ ...to, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] })
        : connect(to);
    const finish = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ statuses: [...text.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status)), text });
    };
    const timer = setTimeout(finish, RESPONSE_MS);
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      text += chunk;
      if (!all && text.includes("\r\n\r\n")) finish();
    });
    socket.on("error", finish);
    socket.on("close", finish);
    socket.write(bytes);
  });
}
