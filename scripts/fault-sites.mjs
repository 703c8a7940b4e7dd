// Finds places in the source where a fault of behaviour can be put: a check skipped, a comparison turned, a field lost.
import { join } from "node:path";
import { SyntaxKind } from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";

/**
 * @typedef FaultSite
 * @property {string} file such as `src/issuer/tokens.ts`
 * @property {number} line
 * @property {"check skipped" | "comparison turned" | "field lost"} kind
 * @property {string} code what the fault changes
 * @property {number} start where it stands in the text of the file
 * @property {number} end
 * @property {string} replacement
 */

const TURNED = new Map([
  ["===", "!=="],
  ["!==", "==="],
  ["<", ">="],
  [">=", "<"],
  [">", "<="],
  ["<=", ">"],
]);

/**
 * @param {string} root a checkout
 * @param {readonly string[]} files
 * @returns {FaultSite[]} those of each file, in their order
 */
export function findFaultSites(root, files) {
  const api = new API({ cwd: root });
  try {
    const [project] = api.updateSnapshot({ openProjects: [join(root, "tsconfig.json")] }).getProjects();
    return files.flatMap((file) => sitesIn(file, project.program.getSourceFile(join(root, file))));
  } finally {
    api.close();
  }
}

function sitesIn(file, source) {
  const sites = [];
  const add = (kind, node, replacement, end = node.end) => {
    const start = node.getStart(source);
    const line = source.text.slice(0, start).split("\n").length;
    const code = source.text.slice(start, node.end).replace(/\s+/g, " ");
    sites.push({ file, line, kind, code, start, end, replacement });
  };
  const visit = (node) => {
    if (node.kind === SyntaxKind.IfStatement && leaves(node.thenStatement)) {
      add("check skipped", node.expression, `false && (${textOf(node.expression, source)})`);
    } else if (node.kind === SyntaxKind.BinaryExpression) {
      const turned = TURNED.get(textOf(node.operatorToken, source));
      // The type of a value tells the compiler more than the program.
      if (turned !== undefined && node.left.kind !== SyntaxKind.TypeOfExpression) {
        add("comparison turned", node, `${textOf(node.left, source)} ${turned} ${textOf(node.right, source)}`);
      }
    } else if (node.kind === SyntaxKind.ObjectLiteralExpression && isReturned(node)) {
      for (const property of node.properties) {
        const isField = [SyntaxKind.PropertyAssignment, SyntaxKind.ShorthandPropertyAssignment].includes(property.kind);
        if (isField) add("field lost", property, "", endWithComma(property, source));
      }
    }
    node.forEachChild(visit);
  };
  visit(source);
  return sites;
}

const textOf = (node, source) => source.text.slice(node.getStart(source), node.end);

function endWithComma({ end }, { text }) {
  return text[end] === "," ? end + 1 : end;
}

function leaves(statement) {
  const last = statement.kind === SyntaxKind.Block ? statement.statements.at(-1) : statement;
  return last !== undefined && [SyntaxKind.ReturnStatement, SyntaxKind.ThrowStatement].includes(last.kind);
}

function isReturned({ parent }) {
  const inner = parent.kind === SyntaxKind.ParenthesizedExpression ? parent.parent : parent;
  return [SyntaxKind.ReturnStatement, SyntaxKind.ArrowFunction].includes(inner.kind);
}
