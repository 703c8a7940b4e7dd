import { startServer, transports } from "./test/server/harness.js";
import http2 from "node:http2";
const o = http2.Http2ServerResponse.prototype.emit;
http2.Http2ServerResponse.prototype.emit = function (e: string, ...a: unknown[]) { console.log("res", e); return o.call(this, e, ...a); } as never;
const server = await startServer({ gateway: { handle(req, res) { console.log("gw"); res.on("close", () => console.log("closed", (res as {writableFinished: unknown}).writableFinished, res.writableEnded)); (res as import("node:http").ServerResponse).writeHead(200); res.write("abc"); } } });
const s = http2.connect(server.url);
const r = s.request({ ":method": "POST", ":path": "/x" }); r.on("error", console.log); r.end("x");
r.on("data", () => { r.close(8); setTimeout(() => { s.destroy(); server.stop(); }, 500); });
