// What a statement needs of SQL, in words that docs/scaling.md lists. The statement is parsed by the parser of PostgreSQL
// itself. Whatever has no words here counts under its name in the parse tree, which is in no list: a feature that nobody
// thought of is found too. Blocks of PL/pgSQL are read with the statements that they build as texts.
import { parse, parsePlPgSQL } from "libpg-query";

/** Parts of a parse tree, and the words for them; parts of a kind without words of their own have none. */
const WORDS: Readonly<Record<string, string>> = {
  SelectStmt: "SELECT",
  "SelectStmt.distinctClause": "SELECT DISTINCT",
  // Without ON its only element has no kind.
  distinctClause: "SELECT DISTINCT",
  "SelectStmt.groupClause": "GROUP BY",
  "SelectStmt.sortClause": "ORDER BY",
  "SelectStmt.limitCount": "LIMIT",
  "SelectStmt.limitOffset": "OFFSET",
  "SelectStmt.withClause": "WITH",
  "SelectStmt.valuesLists": "VALUES",
  "op=SETOP_UNION": "UNION",
  "SelectStmt.all": "UNION ALL",
  "FuncCall.agg_distinct": "count(DISTINCT)",
  RangeSubselect: "FROM (SELECT)",
  RangeFunction: "FROM function()",
  "jointype=JOIN_INNER": "JOIN",
  "jointype=JOIN_LEFT": "LEFT JOIN",
  "subLinkType=ANY_SUBLINK": "IN (SELECT)",
  "subLinkType=ARRAY_SUBLINK": "ARRAY(SELECT)",
  "subLinkType=EXISTS_SUBLINK": "EXISTS",
  "subLinkType=EXPR_SUBLINK": "(SELECT)",
  RowExpr: "ROW",
  CaseExpr: "CASE",
  CoalesceExpr: "COALESCE",
  InsertStmt: "INSERT",
  UpdateStmt: "UPDATE",
  DeleteStmt: "DELETE",
  ReturningClause: "RETURNING",
  "action=ONCONFLICT_NOTHING": "ON CONFLICT DO NOTHING",
  "action=ONCONFLICT_UPDATE": "ON CONFLICT DO UPDATE",
  CreateStmt: "CREATE TABLE",
  AlterTableStmt: "ALTER TABLE",
  CreateSchemaStmt: "CREATE SCHEMA",
  IndexStmt: "CREATE INDEX",
  "IndexStmt.unique": "CREATE UNIQUE INDEX",
  "IndexStmt.whereClause": "CREATE INDEX WHERE",
  DropStmt: "DROP INDEX",
  "removeType=OBJECT_INDEX": "DROP INDEX",
  "contype=CONSTR_PRIMARY": "PRIMARY KEY",
  "contype=CONSTR_UNIQUE": "UNIQUE",
  "contype=CONSTR_FOREIGN": "FOREIGN KEY",
  "fk_del_action=c": "ON DELETE CASCADE",
  "contype=CONSTR_NOTNULL": "NOT NULL",
  "contype=CONSTR_DEFAULT": "DEFAULT",
  "IndexElem.opclass": "operator class",
  "op=SVFOP_CURRENT_USER": "current_user",
  DoStmt: "DO",
  CreateExtensionStmt: "CREATE EXTENSION",
  "subtype=AT_AddColumn": "ADD COLUMN",
  "subtype=AT_SetStatistics": "SET STATISTICS",
  "WithClause.recursive": "WITH RECURSIVE",
  "ctematerialized=CTEMaterializeAlways": "AS MATERIALIZED",
  TRANS_STMT_BEGIN: "BEGIN",
  TRANS_STMT_COMMIT: "COMMIT",
  TRANS_STMT_ROLLBACK: "ROLLBACK",
  ListenStmt: "LISTEN",
  NotifyStmt: "NOTIFY",
  CreateTrigStmt: "CREATE TRIGGER",
  CreateSeqStmt: "CREATE SEQUENCE",
  LockingClause: "row locks",
};

/** Parts that say no more than the statement that they are in. */
const PLAIN = new Set([
  ...["A_Const", "A_Expr", "A_Star", "AlterTableCmd", "Alias", "BoolExpr", "BooleanTest", "Boolean", "CaseWhen"],
  ...["CollateClause", "ColumnDef", "ColumnRef", "CommonTableExpr", "Constraint", "DefElem", "Float", "FuncCall"],
  ...["IndexElem", "InferClause", "Integer", "JoinExpr", "List", "NullTest", "OnConflictClause", "ParamRef"],
  ...["RangeVar", "ResTarget", "SetToDefault", "SortBy", "SQLValueFunction", "String", "SubLink", "TransactionStmt"],
  ...["TypeCast", "TypeName", "VariableSetStmt", "WithClause"],
]);

/** The fields of each kind that say no more than the kind. */
const FIELDS: Readonly<Record<string, string>> = {
  A_Const: "ival fval sval boolval isnull",
  A_Expr: "kind name lexpr rexpr rexpr_list_start rexpr_list_end",
  Alias: "aliasname colnames",
  AlterTableCmd: "subtype name def behavior",
  AlterTableStmt: "relation cmds objtype",
  BoolExpr: "boolop args",
  Boolean: "boolval",
  BooleanTest: "arg booltesttype",
  CaseExpr: "args defresult",
  CaseWhen: "expr result",
  CoalesceExpr: "args",
  CollateClause: "collname",
  ColumnDef: "colname typeName is_local collClause constraints",
  ColumnRef: "fields",
  CommonTableExpr: "ctename ctequery aliascolnames ctematerialized",
  Constraint:
    "contype conname keys raw_expr pktable fk_attrs pk_attrs fk_matchtype fk_upd_action fk_del_action initially_valid is_enforced",
  CreateSchemaStmt: "schemaname if_not_exists",
  CreateExtensionStmt: "extname if_not_exists",
  CreateStmt: "relation tableElts oncommit if_not_exists",
  DefElem: "defname arg defaction",
  DeleteStmt: "relation whereClause returningClause",
  DropStmt: "objects removeType behavior",
  Float: "fval",
  FuncCall: "funcname args agg_star funcformat",
  IndexElem: "name ordering nulls_ordering",
  IndexStmt: "idxname relation accessMethod indexParams",
  InferClause: "indexElems",
  InsertStmt: "relation cols selectStmt onConflictClause returningClause override",
  Integer: "ival",
  JoinExpr: "jointype larg rarg quals",
  List: "items",
  NullTest: "arg nulltesttype",
  OnConflictClause: "action infer targetList whereClause",
  ParamRef: "number",
  RangeFunction: "functions alias",
  RangeSubselect: "subquery alias",
  RangeVar: "schemaname relname inh relpersistence alias",
  ResTarget: "name val",
  ReturningClause: "exprs",
  RowExpr: "args row_format",
  SelectStmt: "targetList fromClause whereClause limitOption op larg rarg",
  SetToDefault: "",
  SQLValueFunction: "op typmod",
  SortBy: "node sortby_dir sortby_nulls",
  String: "sval",
  SubLink: "subLinkType testexpr subselect operName",
  TransactionStmt: "kind options",
  TypeCast: "arg typeName",
  TypeName: "names typemod arrayBounds",
  VariableSetStmt: "kind name args is_local",
  UpdateStmt: "relation targetList whereClause returningClause",
  WithClause: "ctes",
};

/** The kinds of objects that the tree has without the name of their kind, by their field. */
const KIND_OF_FIELD: Readonly<Record<string, string>> = {
  relation: "RangeVar",
  pktable: "RangeVar",
  typeName: "TypeName",
  collClause: "CollateClause",
  alias: "Alias",
  onConflictClause: "OnConflictClause",
  infer: "InferClause",
  withClause: "WithClause",
  returningClause: "ReturningClause",
};

/** Values of enumerations that say no more than the kind they are in. */
const PLAIN_VALUES = new Set([
  ...["op=SETOP_NONE", "limitOption=LIMIT_OPTION_COUNT", "limitOption=LIMIT_OPTION_DEFAULT"],
  ...["boolop=AND_EXPR", "boolop=OR_EXPR", "boolop=NOT_EXPR", "nulltesttype=IS_NULL", "nulltesttype=IS_NOT_NULL"],
  ...["booltesttype=IS_TRUE", "booltesttype=IS_NOT_TRUE", "override=OVERRIDING_NOT_SET"],
  ...[
    "funcformat=COERCE_EXPLICIT_CALL",
    "funcformat=COERCE_SQL_SYNTAX",
    "row_format=COERCE_IMPLICIT_CAST",
    "ctematerialized=CTEMaterializeDefault",
  ],
  ...["ordering=SORTBY_DEFAULT", "nulls_ordering=SORTBY_NULLS_DEFAULT", "sortby_nulls=SORTBY_NULLS_DEFAULT"],
  ...["sortby_dir=SORTBY_ASC", "sortby_dir=SORTBY_DESC", "sortby_dir=SORTBY_DEFAULT", "relpersistence=p"],
  ...["oncommit=ONCOMMIT_NOOP", "behavior=DROP_RESTRICT", "objtype=OBJECT_TABLE", "subtype=AT_AddConstraint"],
  ...["fk_matchtype=s", "fk_upd_action=a", "fk_del_action=a", "defaction=DEFELEM_UNSPEC"],
]);

/** Fields with names and values that people chose. */
const NAMES = new Set(
  "sval fval relname schemaname colname conname idxname ctename aliasname name defname extname".split(" "),
);

type Tree = Readonly<Record<string, unknown>>;

const namesIn = (nodes: unknown) =>
  (nodes as readonly { readonly String: { readonly sval: string } }[]).map((node) => node.String.sval);

/** Finds what the statements of a text need, in the words of the list. */
export async function findFeatures(sql: string): Promise<Set<string>> {
  const found = new Set<string>();
  const blocks: string[] = [];
  const { stmts = [] } = (await parse(sql)) as { readonly stmts?: readonly { readonly stmt: Tree }[] };
  for (const { stmt } of stmts) visit(stmt, "");
  for (const block of blocks)
    for (const text of await listTextsOfBlock(block)) for (const word of await findFeatures(text)) found.add(word);
  return found;

  function visit(value: unknown, field: string): void {
    if (Array.isArray(value)) for (const one of value) visit(one, field);
    else if (typeof value === "object" && value !== null) {
      const [[kind, fields] = ["", {}], ...others] = Object.entries(value);
      const isNamed = others.length === 0 && /^[A-Z]/.test(kind) && typeof fields === "object";
      if (isNamed) visitNode(kind, fields as Tree);
      // What a function in FROM has no column definitions of.
      else if (kind === "") return;
      // A constant without a kind of its own, such as `ival: { ival: 1 }`.
      else if (["ival", "fval", "sval", "boolval"].includes(field)) return;
      else visitNode(KIND_OF_FIELD[field] ?? (/^[lr]arg$/.test(field) ? "SelectStmt" : field), value as Tree);
    } else if (typeof value === "string" && !NAMES.has(field)) {
      const name = `${field}=${value}`;
      if (field === "accessMethod") found.add(`USING ${value}`);
      else if (field !== "kind" && !PLAIN_VALUES.has(name)) found.add(WORDS[name] ?? name);
    }
  }

  function visitNode(kind: string, node: Tree): void {
    if (WORDS[kind] !== undefined) found.add(WORDS[kind]);
    else if (!PLAIN.has(kind)) found.add(kind);
    for (const word of listWordsOf(kind, node)) found.add(word);
    if (kind === "DoStmt") {
      blocks.push(...(node.args as readonly Tree[]).map((arg) => findText((arg.DefElem as Tree).arg)));
      return;
    }
    const known = (FIELDS[kind] ?? "").split(" ");
    for (const [field, value] of Object.entries(node)) {
      if (/^(location|stmt_location|stmt_len|list_start|list_end)$/.test(field)) continue;
      const name = `${kind}.${field}`;
      if (WORDS[name] !== undefined) found.add(WORDS[name]);
      else if (!known.includes(field)) found.add(name);
      visit(value, field);
    }
  }
}

/** The words that depend on what a part of the tree names. */
function listWordsOf(kind: string, node: Tree): string[] {
  switch (kind) {
    case "FuncCall": {
      const name = namesIn(node.funcname).join(".").replace("pg_catalog.", "");
      const [setting] = (node.args ?? []) as readonly Tree[];
      return [`${name}()`, ...(/^(set_config|current_setting)$/.test(name) ? [`setting ${findText(setting)}`] : [])];
    }
    case "VariableSetStmt":
      return [node.is_local === true ? "SET LOCAL" : "SET", `setting ${node.name}`];
    case "TransactionStmt": {
      const options = (node.options ?? []) as readonly Tree[];
      return [WORDS[String(node.kind)] ?? String(node.kind), ...options.map(describeOption)];
    }
    case "TypeName": {
      const name = namesIn(node.names).join(".").replace("pg_catalog.", "");
      return [`type ${name}`, ...(node.arrayBounds === undefined ? [] : ["arrays"])];
    }
    case "CollateClause":
      return [`COLLATE "${namesIn(node.collname).join(".")}"`];
    case "RangeVar":
      return String(node.relname).startsWith("pg_") ? [`catalog ${node.relname}`] : [];
    case "CreateStmt":
    case "AlterTableStmt":
      return listSequences(node);
    case "A_Expr":
      return [describeOperator(node)];
    default:
      return [];
  }
}

/** The columns of a table that number their rows. */
function listSequences(node: Tree): string[] {
  const { schemaname, relname } = node.relation as Tree;
  const table = [schemaname, relname].filter((name) => name !== undefined).join(".");
  const parts = (node.tableElts ?? node.cmds ?? []) as readonly Tree[];
  return parts.flatMap((part) => {
    const { ColumnDef: column } = ((part.AlterTableCmd as Tree | undefined)?.def ?? part) as Tree;
    const { colname, typeName, constraints = [] } = (column ?? {}) as Tree;
    const isSerial = typeName !== undefined && namesIn((typeName as Tree).names).some((name) => /serial/.test(name));
    const isNumbered = isSerial || JSON.stringify(constraints).includes("CONSTR_IDENTITY");
    return isNumbered ? [`sequence ${table}.${colname}`] : [];
  });
}

function describeOption(option: Tree): string {
  const { defname, arg } = option.DefElem as Tree;
  if (defname === "transaction_isolation") return `ISOLATION LEVEL ${findText(arg).toUpperCase()}`;
  return defname === "transaction_read_only" ? "READ ONLY" : String(defname);
}

function describeOperator(node: Tree): string {
  const operator = namesIn(node.name).join(".");
  const special = { AEXPR_IN: "IN", AEXPR_BETWEEN: "BETWEEN", AEXPR_NULLIF: "NULLIF", AEXPR_LIKE: "LIKE" };
  if (node.kind === "AEXPR_OP") return operator;
  if (node.kind === "AEXPR_OP_ANY") return `${operator} ANY`;
  return special[node.kind as keyof typeof special] ?? String(node.kind);
}

/** The first text in a part of the tree; the empty text where there is none. */
function findText(part: unknown): string {
  if (typeof part !== "object" || part === null) return "";
  const { sval } = part as Tree;
  if (typeof sval === "string") return sval;
  return Object.values(part).map(findText).find(Boolean) ?? "";
}

/** The statements of a block, those that it builds as texts too, and its expressions as statements. */
async function listTextsOfBlock(block: string): Promise<string[]> {
  const found: string[] = [];
  const definition = `CREATE FUNCTION block() RETURNS void LANGUAGE plpgsql AS $block$${block}$block$`;
  visit(await parsePlPgSQL(definition), false);
  return found;

  function visit(value: unknown, isBuilt: boolean): void {
    if (typeof value !== "object" || value === null) return;
    for (const [field, inner] of Object.entries(value)) {
      if (field === "PLpgSQL_expr") add(inner as { readonly query: string; readonly parseMode: number }, isBuilt);
      else visit(inner, isBuilt || field === "PLpgSQL_stmt_dynexecute");
    }
  }

  function add({ query, parseMode }: { readonly query: string; readonly parseMode: number }, isBuilt: boolean): void {
    // The parser returns white space of the block as escapes.
    const text = query.replace(/\\[nrt]/g, " ");
    found.push(parseMode === 0 ? text : `SELECT ${text}`);
    // Texts in quotes of more than a word are statements, with a name in place of what `format` inserts.
    if (!isBuilt) return;
    for (const [, built = ""] of text.matchAll(/'((?:[^']|'')+)'/g))
      if (built.includes(" ")) found.push(built.replace(/%[IsL]/g, "x"));
  }
}
