// Upgrade on HTTP/1.1: it is ignored, and the connection goes on with the next request. Node's parser stops after such a
// request, so every byte behind it is at risk of being dropped or read as something else.
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { connect as connectTls } from "node:tls";
import { waitUntil } from "../support/wait-until.js";
import { type Running, SERVICE, startServer, TLS } from "./harness.js";

const GET_GROUP = `${SERVICE}/GetGroup`;
const H2C = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
const WEBSOCKET =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAA\r\nSec-WebSocket-Version: 13\r\n";

const get = (path: string, fields = "") => `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
const call = (uid: string, fields = "") => {
  const body = JSON.stringify({ uid });
  return `POST ${GET_GROUP} HTTP/1.1\r\nHost: a\r\n${fields}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
};
const inChunks = (uid: string, fields: string) => {
  const body = JSON.stringify({ uid });
  return (
    `POST ${GET_GROUP} HTTP/1.1\r\nHost: a\r\n${fields}Content-Type: application/json\r\n` +
    `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  );
};

interface Exchange {
  /** The URL or uid of every response, in their order. */
  readonly answers: readonly string[];
  readonly text: string;
  /** Whether the service closed the connection. */
  readonly closed: boolean;
}

/**
 * Sends each part when the ones before have arrived, and reads until the service closes, or for a moment after the last of
 * `expected` responses.
 */
function exchange(socket: Socket, parts: readonly string[], expected: number): Promise<Exchange> {
  return new Promise((resolve) => {
    const waiting = [...parts];
    let text = "";
    let isOver = false;
    let quiet: NodeJS.Timeout;
    const finish = (closed: boolean) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(quiet);
      socket.destroy();
      const bodies = text.split(/HTTP\/1\.1 \d/).slice(1);
      const answers = bodies.map((body) => /"(?:url|uid)":"([^"]*)"/.exec(body)?.[1] ?? body.slice(0, 2));
      resolve({ answers, text, closed });
    };
    const wait = () => {
      clearTimeout(quiet);
      const isComplete = waiting.length === 0 && text.split(/HTTP\/1\.1 [2-5]/).length > expected;
      quiet = setTimeout(finish, isComplete ? 80 : 5_000, false);
    };
    const send = () => {
      const part = waiting.shift();
      if (part === undefined || isOver) return;
      wait();
      socket.write(part, "latin1");
      setTimeout(send, 40);
    };
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      wait();
    });
    socket.on("error", () => finish(true));
    socket.on("close", () => finish(true));
    send();
  });
}

const over = {
  cleartext: async (port: number) => connect(port, "127.0.0.1"),
  TLS: async (port: number) =>
    connectTls({ port, host: "127.0.0.1", ca: TLS.cert, servername: "localhost", ALPNProtocols: ["http/1.1"] }),
};

for (const [name, open] of Object.entries(over)) {
  describe(`Upgrade over ${name}`, () => {
    let server: Running;
    before(async () => {
      server = await startServer(name === "TLS" ? { tls: TLS } : {});
    });
    after(() => server.stop());
    const send = async (parts: readonly string[], expected: number) =>
      exchange(await open(server.port), parts, expected);

    const whole = get("/1", H2C) + get("/2", WEBSOCKET) + get("/3") + call("4");
    const split = (at: number) => [whole.slice(0, at), whole.slice(at)];
    const rows: Readonly<Record<string, readonly string[]>> = {
      "each request by itself": [get("/1", H2C), get("/2", WEBSOCKET), get("/3"), call("4")],
      "all in one packet": [whole],
      "cut within the first request": split(20),
      "cut within the next request": split(get("/1", H2C).length + 7),
      "cut within the third": split(whole.length - call("4").length - 5),
      "cut within a body": split(whole.length - 3),
    };
    for (const [how, parts] of Object.entries(rows)) {
      it(`the connection stays open, and every request is answered in its order: ${how}`, async () => {
        const { answers, closed, text } = await send(parts, 4);
        assert.deepEqual({ answers, closed }, { answers: ["/1", "/2", "/3", "4"], closed: false }, text);
      });
    }

    it("a request before an Upgrade is answered before it", async () => {
      const { answers, closed } = await send([call("1") + get("/2", H2C) + call("3")], 3);
      assert.deepEqual({ answers, closed }, { answers: ["1", "/2", "3"], closed: false });
    });

    it("a response that takes long is waited for", async () => {
      let proceed = () => {};
      server.probe.gate = new Promise((resolve) => {
        proceed = resolve;
      });
      setTimeout(proceed, 150);
      const { answers, closed } = await send([call("slow") + get("/2", H2C), get("/3", H2C), call("4")], 4);
      assert.deepEqual({ answers, closed }, { answers: ["slow", "/2", "/3", "4"], closed: false });
    });

    it("a connection may send a hundred, and gets no listener more with each", async () => {
      const warnings: Error[] = [];
      const onWarning = (warning: Error) => warnings.push(warning);
      process.on("warning", onWarning);
      const { answers } = await send([Array.from({ length: 100 }, (_, i) => get(`/${i}`, H2C)).join("")], 100);
      process.off("warning", onWarning);
      assert.deepEqual(
        answers,
        Array.from({ length: 100 }, (_, i) => `/${i}`),
      );
      assert.deepEqual(warnings, []);
    });

    it("field values are passed on byte by byte", async () => {
      const authorization = "x\u00e4\u00ff y";
      const { answers } = await send([call("1", `${H2C}Authorization: ${authorization}\r\n`)], 1);
      assert.deepEqual(answers, ["1"]);
      assert.equal(server.probe.calls.at(-1)?.inbound.header("authorization"), authorization);
    });

    // A body must never be read as a request. Where Node reads it itself, the connection ends with the response.
    for (const [how, request] of Object.entries({
      "with a length": call("1", H2C),
      "in chunks": inChunks("1", H2C),
      "for another protocol": inChunks("1", WEBSOCKET),
      "with Expect": call("1", `${H2C}Expect: 100-continue\r\n`),
    })) {
      const hidden = get("/hidden");
      const nested = JSON.stringify({ uid: `1`, description: hidden });
      for (const [cutName, parts] of [
        ["in one packet", [request + get("/2")]],
        ["cut within the body", [request.slice(0, -4), request.slice(-4) + get("/2")]],
        ["with the next request apart", [request, get("/2")]],
      ] as const) {
        it(`a body after an Upgrade is a body: ${how}, ${cutName}`, async () => {
          const { answers, closed, text } = await send(parts, 2);
          const got = answers.filter((answer) => answer !== "00");
          assert.equal(got[0], "1", text);
          if (closed) assert.match(text, /^connection: close/im);
          assert.deepEqual(got.slice(1), closed ? [] : ["/2"], text);
        });
      }
      it(`a request hidden in such a body does not run: ${how}`, async () => {
        const head = request
          .slice(0, request.indexOf("\r\n\r\n"))
          .replace(/Content-Length: \d+|Transfer-Encoding: .*/, "");
        const { answers } = await send([`${head.trimEnd()}\r\nContent-Length: ${nested.length}\r\n\r\n${nested}`], 1);
        assert.ok(!answers.includes("/hidden"));
      });
    }

    for (const [fault, request, status] of [
      [
        "a transfer coding beside a length",
        get("/1", `${H2C}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n`),
        400,
      ],
      ["another transfer coding", get("/1", `${H2C}Transfer-Encoding: gzip, chunked\r\n`), 501],
      ["a folded field", get("/1", `${H2C}X-A: b\r\n c: d\r\n`), 400],
      ["HTTP/2.0", get("/1", H2C).replace("HTTP/1.1", "HTTP/2.0"), 505],
      ["no host", get("/1", H2C).replace("Host: a\r\n", ""), 400],
      ["two hosts", get("/1", `${H2C}Host: b\r\n`), 400],
    ] as const) {
      it(`what is refused without an Upgrade is refused with one: ${fault}`, async () => {
        const { text } = await send([request], 1);
        assert.equal(Number(text.slice(9, 12)), status, text);
      });
    }
  });
}

function isRefused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(false);
    });
    socket.on("error", () => resolve(true));
  });
}

describe("Upgrade while the service stops, and of peers that leave", () => {
  it("ends with the response", async () => {
    const server = await startServer();
    let proceed = () => {};
    server.probe.gate = new Promise((resolve) => {
      proceed = resolve;
    });
    const got = exchange(connect(server.port, "127.0.0.1"), [call("slow") + get("/2", H2C) + get("/3")], 1);
    await waitUntil(() => server.probe.calls.length > 0);
    const stopped = server.stop(5_000);
    await waitUntil(() => isRefused(server.port));
    proceed();
    const { answers, closed } = await got;
    assert.deepEqual({ answers, closed }, { answers: ["slow"], closed: true });
    await stopped;
  });

  it("a peer that resets the connection while an earlier response is awaited harms nobody", async () => {
    const server = await startServer();
    server.probe.gate = new Promise(() => {});
    for (let i = 0; i < 20; i++) {
      const socket = connect(server.port, "127.0.0.1");
      socket.on("error", () => {});
      await new Promise((resolve) => socket.write(call("slow") + get("/2", H2C), resolve));
      await new Promise((resolve) => setTimeout(resolve, 10));
      socket.resetAndDestroy();
    }
    const { answers } = await exchange(connect(server.port, "127.0.0.1"), [get("/1", H2C)], 1);
    assert.deepEqual(answers, ["/1"]);
    await server.stop();
  });
});
