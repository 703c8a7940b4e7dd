// The certificates and keys of tests, as the service accepts them.
import { chmodSync, copyFileSync } from "node:fs";

export const TLS_FILES = new URL("tls/", import.meta.url);

/** Copies one of the files, such as `other-key.pem`, for its owner alone: a checkout lets others read it. */
export function copyTlsFile(name: string, to: string): void {
  copyFileSync(new URL(name, TLS_FILES), to);
  chmodSync(to, 0o600);
}
