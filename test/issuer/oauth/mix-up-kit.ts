// An attacker with a login provider of an organisation of her own. When Arbor sends somebody to it, it sends them on
// to the honest provider, in a login that the attacker began there herself; what comes back to Arbor looks like the
// response of her provider, and if Arbor believes that, it brings her the code.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { bootstrap } from "../../../src/iam/operator/bootstrap.js";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { Agent, codeRequest, type LoginKit, newPkce, postForm, type Seen } from "./login-kit.js";

/** The attacker and what she got. */
export interface Attacker {
  readonly issuer: string;
  /** What Arbor brought to her token endpoint: codes, with the verifiers of their logins. */
  readonly stolen: readonly URLSearchParams[];
  /** Chooses the redirect URI at the honest provider; the one in the request unless changed. */
  redirectUri: string | undefined;
  /** Registers the provider with an organisation of hers; the uid of the provider. */
  join(kit: LoginKit): Promise<string>;
  /** Ends the login that she began with what she stole; what she gets from Arbor in exchange. */
  redeem(kit: LoginKit): Promise<{ readonly page: Seen | undefined; readonly accessToken: unknown }>;
  stop(): Promise<void>;
}

/** Starts her provider. */
export async function startAttacker(): Promise<Attacker> {
  const stolen: URLSearchParams[] = [];
  const { verifier, challenge } = newPkce();
  const hers = new Agent();
  let arbor = "";
  let startUrl = new URL("http://never.invalid/");

  // Her own login with the honest provider, up to the way there.
  async function begin(): Promise<URL> {
    const request = new URLSearchParams(codeRequest(challenge, { connection: "test" }));
    const url = await hers.locationOf(`${arbor}/oauth?${request}`);
    startUrl = new URL(url);
    const changed = new URL(url);
    if (attacker.redirectUri !== undefined) changed.searchParams.set("redirect_uri", attacker.redirectUri);
    return changed;
  }

  const server = createServer((req, res) => {
    const { pathname, searchParams } = new URL(req.url ?? "/", attacker.issuer);
    if (pathname === "/authorize") {
      void begin().then((honest) => {
        honest.searchParams.set("state", searchParams.get("state") ?? "");
        res.writeHead(303, { location: honest.href }).end();
      });
      return;
    }
    if (pathname === "/token") {
      let body = "";
      req.setEncoding("utf8").on("data", (chunk: string) => {
        body += chunk;
      });
      req.on("end", () => {
        stolen.push(new URLSearchParams(body));
        res.writeHead(400, { "content-type": "application/json" }).end('{"error":"invalid_grant"}');
      });
      return;
    }
    const metadata = {
      issuer: attacker.issuer,
      authorization_endpoint: `${attacker.issuer}/authorize`,
      token_endpoint: `${attacker.issuer}/token`,
      jwks_uri: `${attacker.issuer}/jwks`,
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
    };
    const response = pathname === "/jwks" ? { keys: [] } : metadata;
    res.setHeader("content-type", "application/json").end(JSON.stringify(response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  const attacker: Attacker = {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stolen,
    redirectUri: undefined,
    join(kit) {
      arbor = kit.url;
      const nowMs = kit.deps.clock();
      return kit.store.write(async (tx) => {
        const { group } = await bootstrap(tx, { org: "mallory.example" }, randomIds, nowMs);
        const uid = randomIds.newUid(group);
        await tx.table(identityProviderKind).insert({
          uid,
          groupUid: group,
          name: "Mallory",
          description: "",
          defaultRole: builtinRoleUid("viewer"),
          oidc: { issuer: attacker.issuer, clientId: "arbor", pkceEnabled: true },
          lacksDefaultRole: false,
          sealedSecret: "",
          scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" },
          createTimeMs: nowMs,
          updateTimeMs: nowMs,
        });
        return uid;
      });
    },
    async redeem(kit) {
      const code = stolen.at(-1)?.get("code");
      if (!code) return { page: undefined, accessToken: undefined };
      const { searchParams } = startUrl;
      const callback = new URL(searchParams.get("redirect_uri") ?? "");
      callback.searchParams.set("code", code);
      callback.searchParams.set("state", searchParams.get("state") ?? "");
      const page = await hers.decide(await hers.get(callback.href));
      const { body } = await postForm(`${kit.url}/oauth/token`, {
        grant_type: "authorization_code",
        client_id: "arbor-cli",
        redirect_uri: codeRequest("").redirect_uri ?? "",
        code: page.program?.get("code") ?? "none",
        code_verifier: verifier,
      });
      return { page, accessToken: body.access_token };
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return attacker;
}
