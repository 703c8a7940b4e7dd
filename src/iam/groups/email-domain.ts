// Which organisation a person may ask to join follows from the domain of an
// e-mail address that a login provider the operator trusts has confirmed.

/** Domains where anybody gets an address, so that one proves nothing about an organisation. */
const OPEN_TO_ANYBODY: ReadonlySet<string> = new Set([
  "aol.com",
  "fastmail.com",
  "gmail.com",
  "gmx.com",
  "gmx.de",
  "gmx.net",
  "googlemail.com",
  "hey.com",
  "hotmail.com",
  "icloud.com",
  "live.com",
  "mac.com",
  "mail.com",
  "mail.ru",
  "me.com",
  "msn.com",
  "naver.com",
  "outlook.com",
  "pm.me",
  "proton.me",
  "protonmail.com",
  "qq.com",
  "tutanota.com",
  "web.de",
  "yahoo.com",
  "yandex.ru",
  "ymail.com",
  "zoho.com",
]);

/**
 * The domain that an e-mail address puts its holder in; undefined when there is no address or the
 * domain says nothing about who holds it.
 *
 * @param email an address that was confirmed, or empty
 */
export function organisationDomainOf(email: string): string | undefined {
  const domain = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
  return email.includes("@") && domain !== "" && !OPEN_TO_ANYBODY.has(domain) ? domain : undefined;
}
