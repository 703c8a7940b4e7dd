// Records every module that `import` resolves from here on.
import { register } from "node:module";
import { MessageChannel } from "node:worker_threads";

const { port1, port2 } = new MessageChannel();
const urls = [];
let flushed = () => {};
port1.on("message", (url) => (url === "" ? flushed() : urls.push(url)));
port1.unref();
register("./resolve-hook.js", import.meta.url, { data: { port: port2 }, transferList: [port2] });

/** The URLs so far. */
export async function resolved() {
  port1.ref();
  const done = new Promise((resolve) => {
    flushed = resolve;
  });
  // The answer comes after everything the hooks sent before.
  port1.postMessage("flush");
  await done;
  port1.unref();
  return urls;
}
