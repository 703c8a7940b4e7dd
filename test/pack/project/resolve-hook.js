// Runs on the thread of the module hooks.
let port;

/** Takes the port to report to. */
export function initialize(data) {
  port = data.port;
  port.on("message", () => port.postMessage(""));
  port.unref();
}

/** Resolves as usual, and reports. */
export async function resolve(specifier, context, next) {
  const result = await next(specifier, context);
  port.postMessage(result.url);
  return result;
}
