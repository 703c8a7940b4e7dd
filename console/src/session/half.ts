// The half of the session that no cookie has. Cookies are shared by all ports of a host; IndexedDB belongs to one origin.
// So a program on another port that reads or sets the cookie opens nothing.
const DATABASE = "arbor-console";
const STORE = "session";
const KEY = "half";

/** Reads this origin's half; the first call makes it. All tabs get the same one. */
export async function readHalf(): Promise<string> {
  const database = await openDatabase();
  try {
    // Reading and writing in one transaction: two tabs that begin at once do not each make one.
    const store = database.transaction(STORE, "readwrite").objectStore(STORE);
    const found: unknown = await resultOf(store.get(KEY));
    if (typeof found === "string") return found;
    const half = randomText();
    await resultOf(store.put(half, KEY));
    return half;
  } finally {
    database.close();
  }
}

/** Makes a random text of 256 bits, in base64url. */
export function randomText(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(32)));
}

/** Formats bytes in base64url (RFC 4648, section 5), without padding. */
export function toBase64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

function openDatabase(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE);
  return resultOf(request);
}

function resultOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
