import { parseTemplate } from "../../src/transport/http/http-rule.js";
import { createRouteTable, type RouteTable } from "../../src/transport/rest/route-table.js";

/** A table whose targets are the routes themselves, each written as "METHOD template". */
export function tableOf(routes: readonly string[]): RouteTable<string> {
  return createRouteTable(
    routes.map((route) => {
      const [method = "", text = ""] = route.split(" ");
      return { method, template: parseTemplate(text, "t"), name: route, target: route };
    }),
  );
}

/** The route a request takes and what its variables capture, as "METHOD template [captures]", or "none". */
export function routeFound(routes: readonly string[], method: string, path: string): string {
  const match = tableOf(routes).find(method, path);
  return match === undefined ? "none" : `${match.target} [${match.captures.join(" ")}]`;
}
