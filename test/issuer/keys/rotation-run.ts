// Rotates keys under load: clients call with tokens of any age, others verify them with the public keys they keep,
// and no token may be rejected.
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { generateTokenKey } from "../../../src/issuer/keys/key-generation.js";
import { rotateKey } from "../../../src/issuer/keys/key-states.js";
import { spawn } from "../../support/child-process.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { scriptArguments } from "../../support/project.js";

/** What to run. */
export interface RotationRun {
  readonly seconds: number;
  readonly rotationS: number;
  readonly maxAgeS: number;
  /** Settings of each node besides; all on one database. */
  readonly nodes?: readonly Readonly<Record<string, string>>[];
  /** Between two calls of one client, in milliseconds; 4 unless given. */
  readonly pauseMs?: number;
  /** Control: new keys are used before they are published, so some tokens must be rejected. */
  readonly control?: boolean;
}

/** The counts of a run. */
export interface RotationResult {
  /** The keys that signed. */
  readonly keys: number;
  /** Accepted calls, and tokens that others accepted. */
  readonly rest: number;
  readonly grpc: number;
  readonly elsewhere: number;
  /** The age of the oldest token that was accepted, in seconds. */
  readonly oldestS: number;
  readonly rejected: number;
  /** Whatever else went wrong. */
  readonly problems: readonly string[];
}

/** Who issues the tokens, and for whom, whatever node does. */
const ISSUER = "http://arbor.example";
/** One token of each node is made that often, in milliseconds. */
const SIGN_MS = 50;

interface Token {
  readonly text: string;
  readonly madeMs: number;
}

/** Runs it. */
export async function runRotation(run: RotationRun): Promise<RotationResult> {
  const { seconds, rotationS, maxAgeS, nodes = [{}], control = false, pauseMs = 4 } = run;
  const values = { keyRotation: control ? 30 * 86_400 : rotationS, jwksMaxAge: maxAgeS };
  const services: Harness[] = [];
  for (const node of nodes) services.push(await startHarness({ baseUrl: ISSUER, ...node }, { values }));
  const [first] = services;
  if (first === undefined) throw new TypeError("a run needs a node");
  const { identity, group } = await first.organisation("rotation.example");
  const tally = { rest: 0, grpc: 0, elsewhere: 0, rejected: 0, oldestS: 0 };
  const problems: string[] = [];
  const kids = new Set<string>();
  const tokens: Token[] = [];
  const endMs = performance.now() + seconds * 1000;
  const running = () => performance.now() < endMs;

  const pick = () => tokens[Math.floor(Math.random() * tokens.length)] as Token;
  function count(what: "rest" | "grpc" | "elsewhere", { madeMs }: Token, rejection: boolean): void {
    if (rejection) tally.rejected++;
    else {
      tally[what]++;
      tally.oldestS = Math.max(tally.oldestS, Math.round((performance.now() - madeMs) / 1000));
    }
  }

  async function signOnEach(): Promise<void> {
    for (const service of services) {
      kids.add(service.app.installation.keys.getSigningKey().kid);
      tokens.push({ text: await service.token(identity), madeMs: performance.now() });
    }
  }

  async function keepSigning(): Promise<void> {
    for (; running(); await sleep(SIGN_MS)) await signOnEach();
  }

  async function callRest({ url }: Harness): Promise<void> {
    while (running()) {
      const token = pick();
      const headers = { authorization: `Bearer ${token.text}` };
      try {
        const { status } = await fetch(`${url}/iam/v2beta1/groups/${group}`, { headers });
        if (status === 200 || status === 401) count("rest", token, status === 401);
        else problems.push(`REST: ${status}`);
      } catch (error) {
        problems.push(`REST: ${error}`);
      }
      await sleep(pauseMs);
    }
  }

  async function callGrpc({ url }: Harness): Promise<void> {
    const client = createClient(GroupsService, createGrpcTransport({ baseUrl: url }));
    while (running()) {
      const token = pick();
      try {
        await client.getGroup({ uid: group }, { headers: { authorization: `Bearer ${token.text}` } });
        count("grpc", token, false);
      } catch (error) {
        if (error instanceof ConnectError && error.code === Code.Unauthenticated) count("grpc", token, true);
        else problems.push(`gRPC: ${error}`);
      }
      await sleep(pauseMs);
    }
  }

  // Every other token is the newest there is: the one whose key others may not know yet.
  async function verifyElsewhere({ url }: Harness): Promise<void> {
    const verifier = startVerifier(url, maxAgeS, seconds);
    for (let i = 0; running(); i++) {
      const token = i % 2 ? pick() : (tokens.at(-1) as Token);
      const response = await verifier.verify(token.text);
      if (response === "accepted" || response.startsWith("rejected"))
        count("elsewhere", token, response !== "accepted");
      else problems.push(`elsewhere: ${response}`);
      await sleep(pauseMs);
    }
    verifier.close();
  }

  async function rotateAtOnce({ app: { installation } }: Harness): Promise<void> {
    while (running()) {
      await sleep(rotationS * 1000);
      const row = await generateTokenKey("ES256", installation.masterKey, installation.clock());
      await installation.store.write((tx) => rotateKey(tx, row));
    }
  }

  try {
    await signOnEach();
    const clients = services.flatMap((service) => [callRest(service), callGrpc(service), verifyElsewhere(service)]);
    await Promise.all([keepSigning(), ...clients, ...(control ? [rotateAtOnce(first)] : [])]);
  } finally {
    for (const service of services) await service.stop();
  }
  return { ...tally, keys: kids.size, problems };
}

function startVerifier(url: string, maxAgeS: number, seconds: number) {
  const args = [
    ...scriptArguments("test/issuer/keys/verifying-process.ts"),
    `${url}/.well-known/jwks.json`,
    String(maxAgeS * 1000),
    ISSUER,
  ];
  const timeout = (seconds + 120) * 1000;
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"], timeout });
  const responses = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async verify(token: string): Promise<string> {
      child.stdin.write(`${token}\n`);
      return (await responses.next()).value ?? "the process ended";
    },
    close: () => child.stdin.end(),
  };
}
