// The open transaction of a unit of work, which is where to begin reading the store. Each of its parts reads and writes some
// tables: `tx.table(groupKind)` those of a kind of resource, `tx.keys` and so on the others. A part is a class in a file of its
// own, in the folder of its feature, after the statements that it needs.
//
// - `tables` has the schema, built once for each database. A statement (statement.ts) is a function from a query builder and
//   the tables to a query. Each connection prepares it when it first runs. rows.ts builds those that most tables need.
// - A kind declares its table, parent, orders and quota (kind.ts), and `ListedTable` finds, changes, counts and lists its rows
//   (`lists`).
// - `sqlite` and `pg` open a database as a `Store` (store.ts), which runs units of work, and give a transaction the
//   connection that runs its statements.
// - `migrate`, `check`, `copy` and `backup` are what commands of the operator do. They read the schema and need no parts.
import { AuditChain } from "./audit/chain.js";
import { AuditCheckpoints } from "./audit/checkpoints.js";
import { AuditEvents } from "./audit/events.js";
import { Audit } from "./audit/log.js";
import { EventDeliveries } from "./events/deliveries.js";
import { EventPositions } from "./events/positions.js";
import { GrantReader } from "./iam/access.js";
import { AccessQuestions } from "./iam/access-questions.js";
import { AccessRequests } from "./iam/access-requests.js";
import { ScimMembers } from "./iam/scim-members.js";
import { ScimWork } from "./iam/scim-work.js";
import { Terms } from "./iam/terms.js";
import { Jobs, Settings } from "./installation.js";
import { Keys } from "./issuer/keys.js";
import { RefreshTokens } from "./issuer/refresh-tokens.js";
import { RevokedTokens } from "./issuer/revoked-tokens.js";
import { SealedValues } from "./issuer/sealed-values.js";
import { Tickets } from "./issuer/tickets.js";
import type { Kind } from "./kind.js";
import { NameWords } from "./name-words.js";
import { Registry } from "./registry/registry.js";
import type { Executor, Statement, Take } from "./statement.js";
import { Usage } from "./usage.js";

/** The open transaction of a unit of work, as callers of the store use it. */
export type Tx = Omit<Transaction, "revoke" | Exclude<keyof Executor, "changedRows">>;

/**
 * An open transaction on either database. Its stores are created when they are first used, because most
 * calls use one or two. After `revoke` every use throws: a statement sent after the commit would
 * otherwise silently become part of the next transaction on the connection.
 */
export class Transaction implements Executor {
  readonly counterSlots: number;
  readonly #connection: Executor;
  readonly #changedBefore: number;
  #open = true;
  #access: GrantReader | undefined;

  constructor(connection: Executor) {
    this.#connection = connection;
    this.counterSlots = connection.counterSlots;
    this.#changedBefore = connection.changedRows;
  }

  /** Makes every further use throw. Does not commit or roll back. */
  revoke(): void {
    this.#open = false;
  }

  get changedRows(): number {
    return this.#connection.changedRows - this.#changedBefore;
  }

  rows<Params extends object, Row, T = Row[]>(
    statement: Statement<Params, Row>,
    params: Params,
    take?: Take<Row, T>,
  ): Promise<T> {
    if (!this.#open) throw useAfterEndError();
    return this.#connection.rows(statement, params, take);
  }

  nowMs(): Promise<number> {
    if (!this.#open) throw useAfterEndError();
    return this.#connection.nowMs();
  }

  clockMs(): number {
    return this.#connection.clockMs();
  }

  pause(atOnce?: boolean): Promise<void> | undefined {
    if (!this.#open) throw useAfterEndError();
    return this.#connection.pause?.(atOnce);
  }

  /** The rows of a kind. */
  table<Rows>(kind: Kind<Rows>): Rows {
    return kind.open(this);
  }

  get access(): GrantReader {
    this.#access ??= new GrantReader(this);
    return this.#access;
  }

  get accessQuestions(): AccessQuestions {
    return new AccessQuestions(this);
  }

  get nameWords(): NameWords {
    return new NameWords(this);
  }

  get terms(): Terms {
    return new Terms(this);
  }

  get accessRequests(): AccessRequests {
    return new AccessRequests(this);
  }

  get keys(): Keys {
    return new Keys(this);
  }

  get registry(): Registry {
    return new Registry(this);
  }

  get usage(): Usage {
    return new Usage(this);
  }

  get tickets(): Tickets {
    return new Tickets(this);
  }

  get refreshTokens(): RefreshTokens {
    return new RefreshTokens(this);
  }

  get revokedTokens(): RevokedTokens {
    return new RevokedTokens(this);
  }

  get audit(): Audit {
    return new Audit(this);
  }

  get auditEvents(): AuditEvents {
    return new AuditEvents(this);
  }

  get auditChain(): AuditChain {
    return new AuditChain(this);
  }

  get auditCheckpoints(): AuditCheckpoints {
    return new AuditCheckpoints(this);
  }

  get eventPositions(): EventPositions {
    return new EventPositions(this);
  }

  get eventDeliveries(): EventDeliveries {
    return new EventDeliveries(this);
  }

  get jobs(): Jobs {
    return new Jobs(this);
  }

  get scimMembers(): ScimMembers {
    return new ScimMembers(this);
  }

  get scimWork(): ScimWork {
    return new ScimWork(this);
  }

  get sealed(): SealedValues {
    return new SealedValues(this);
  }

  get settings(): Settings {
    return new Settings(this);
  }
}

function useAfterEndError(): TypeError {
  return new TypeError("a transaction was used after its unit of work had settled");
}
