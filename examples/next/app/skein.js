// skein sends a request for /chat to Skein, with a key that the browser never sees.
export function skein(path, init) {
  const base = process.env.SKEIN_URL ?? "http://127.0.0.1:8420";
  const headers = { "content-type": "application/json" };
  if (process.env.SKEIN_KEY) headers.authorization = `Bearer ${process.env.SKEIN_KEY}`;
  return fetch([base, "chat", ...path.map(encodeURIComponent)].join("/"), { headers, cache: "no-store", ...init });
}
