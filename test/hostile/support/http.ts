// Requests over HTTP/1.1 from a chosen address, judged by their status alone.
import { Agent, request } from "node:http";
import { api } from "./world.js";

const TIMEOUT_MS = 10_000;
const CREATE_GROUP = "/chainguard.platform.iam.v2beta1.GroupsService/CreateGroup";
/** How many groups are created at a time. */
const WIDTH = 32;

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly localAddress: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly agent?: Agent | undefined;
}

function send(url: string, { body, ...sent }: Sent): Promise<number> {
  const { port } = new URL(url);
  const length = body && { "content-length": String(body.length) };
  return new Promise((resolve) => {
    const req = request({ host: "127.0.0.1", port, ...sent, headers: { ...sent.headers, ...length } });
    req.setTimeout(TIMEOUT_MS, () => req.destroy());
    req.on("error", () => resolve(0));
    req.on("response", (res) => {
      res.resume();
      res.on("close", () => resolve(res.statusCode ?? 0));
    });
    req.end(body);
  });
}

/** Posts a body, on a connection of its own unless an agent is given; resolves with the status, 0 when there is none. */
export function post(
  url: string,
  path: string,
  localAddress: string,
  body: Buffer,
  headers: Readonly<Record<string, string>>,
  agent?: Agent,
): Promise<number> {
  return send(url, { method: "POST", path, localAddress, headers, body, agent });
}

/** Gets a path and reads it to its end; resolves with the status, 0 when there is none. */
export function get(
  url: string,
  path: string,
  localAddress: string,
  token: string | undefined,
  agent?: Agent,
): Promise<number> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return send(url, { method: "GET", path, localAddress, headers, agent });
}

/**
 * Creates groups of one name until there are `count` or the service refuses one; resolves with how many there are.
 *
 * @param parent empty for root groups
 */
export async function createGroups(
  { url, token, address }: { readonly url: string; readonly token: string; readonly address: string },
  parent: string,
  count: number,
  group: { readonly name: string; readonly description?: string },
): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: WIDTH });
  const body = Buffer.from(JSON.stringify({ parent, group }));
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  // A round before may have made them.
  const scope = parent === "" ? "" : `&uidp.children_of=${parent}`;
  const { totalCount = 0 } = await api(url, token, "GET", `/iam/v2beta1/groups?page_size=1&name=${group.name}${scope}`);
  let started = Number(totalCount);
  let made = started;
  let isRefused = false;
  const lane = async () => {
    while (!isRefused && started++ < count) {
      const sent = { method: "POST", path: CREATE_GROUP, localAddress: address, headers, body, agent };
      if ((await send(url, sent)) === 200) made++;
      else isRefused = true;
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, lane));
  agent.destroy();
  return made;
}
