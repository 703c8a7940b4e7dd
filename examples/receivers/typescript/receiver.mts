// Receives events and verifies them. See ../README.md for its variables.
import { createServer, type IncomingMessage } from "node:http";
import { EventRejected, eventVerifier } from "@arbor-platform/client";

// The largest body of an event, with some room for who has made the change.
const MAX_BYTES = 5 * 1024 * 1024;

const { ISSUER: issuer = "", GROUP: group = "", SUBSCRIPTION: subscription, PORT: port = "8085" } = process.env;
const { REQUIRE_ATTRIBUTES: required, TOLERANCE_SECONDS: tolerance = "300" } = process.env;
const verifyEvent = eventVerifier({
  ...{ issuer, group, requireAttributes: required === "true", toleranceSeconds: Number(tolerance) },
  ...(subscription && { subscription }),
});

const server = createServer(async (request, response) => {
  try {
    const event = await verifyEvent(request.headers, await readBody(request));
    // An event may arrive more than once, with the same id: handle it so that this does no harm.
    console.log(JSON.stringify({ id: event.id, type: event.type, subject: event.subject, repeated: event.repeated }));
    response.writeHead(200).end();
  } catch (error) {
    // What is not accepted is sent again for a day.
    const status = error instanceof EventRejected ? error.status : 500;
    response.writeHead(status).end(error instanceof Error ? error.message : undefined);
  }
});
server.listen(Number(port), "127.0.0.1", () => console.error(JSON.stringify(server.address())));

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new EventRejected(400, "the body is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
