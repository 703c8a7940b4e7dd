import { type ApiFlags, apiOf } from "./api.js";
import { changeCredentials, credentialsFile, withLogin } from "./credentials-file.js";

/** `arbor auth logout`: forgets a login. The service is not told; what it has issued expires by itself. */
export async function logoutCommand(flags: ApiFlags): Promise<void> {
  const api = apiOf(flags);
  const file = credentialsFile();
  let found = false;
  await changeCredentials(file, (now) => {
    found = now.logins.has(api);
    return found ? withLogin(now, api, undefined) : now;
  });
  process.stdout.write(
    found ? `removed the login at ${api} from ${file}\n` : `there was no login at ${api} in ${file}\n`,
  );
}
