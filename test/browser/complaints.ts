import type { Page } from "playwright-core";

/**
 * Notes what a page complains about: errors, all that its console says but advice on addresses that nobody here writes, and
 * requests to others than the service.
 *
 * @param origin the origin of the service
 * @returns the texts, to which later complaints are added
 */
export function watchComplaints(page: Page, origin: string): readonly string[] {
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (!message.text().includes("escaping deep link whitespace")) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!/^data:/.test(request.url()) && new URL(request.url()).origin !== origin) complaints.push(request.url());
  });
  return complaints;
}
