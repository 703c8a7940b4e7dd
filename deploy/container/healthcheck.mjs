// Whether the service in this container is ready: ends with 0 if it is, with 1 and the reason otherwise. It reads where
// the service listens from the same environment variables. With other settings give the URL as an argument.
import { get as getHttp } from "node:http";
import { get as getHttps } from "node:https";

const { ARBOR_LISTEN = "127.0.0.1:8080", ARBOR_TLS_CERT = "" } = process.env;
const url = new URL(process.argv[2] ?? `${ARBOR_TLS_CERT === "" ? "http" : "https"}://${ARBOR_LISTEN}/readyz`);
if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
if (url.hostname === "[::]") url.hostname = "[::1]";

const get = url.protocol === "https:" ? getHttps : getHttp;
// The certificate names the service, not this address, and the request stays within the container.
const request = get(url, { rejectUnauthorized: false, timeout: 4000 }, (response) => {
  response.resume();
  if (response.statusCode !== 200) fail(`${url} answers ${response.statusCode}`);
});
request.on("timeout", () => request.destroy(new Error("no answer within 4 seconds")));
request.on("error", (error) => fail(`${url}: ${error.message}`));

function fail(reason) {
  console.error(reason);
  process.exitCode = 1;
}
