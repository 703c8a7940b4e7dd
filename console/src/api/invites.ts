// The link of an invite has its code after a #, which browsers send to no server and write into no log.

/** Builds the link that a person opens to accept an invite. */
export function formatInviteLink(code: string): string {
  return `${location.origin}/console/join#${encodeURIComponent(code)}`;
}

/** Reads the code of an invite out of a link's fragment, or out of a code that was typed. */
export function readInviteCode(text: string): string {
  const code = text.includes("#") ? text.slice(text.indexOf("#") + 1) : text;
  try {
    return decodeURIComponent(code.trim());
  } catch {
    return code.trim();
  }
}
