// Passes /chat on to Skein, with a key that the browser never sees. Check here who the user is.
const skein = process.env.SKEIN_URL ?? "http://127.0.0.1:8420";

async function forward(request, { params }) {
  const { path = [] } = await params;
  const headers = { "content-type": "application/json" };
  if (process.env.SKEIN_KEY) headers.authorization = `Bearer ${process.env.SKEIN_KEY}`;
  const answer = await fetch([skein, "chat", ...path.map(encodeURIComponent)].join("/"), {
    method: request.method,
    headers,
    body: request.method === "POST" ? await request.text() : undefined,
    signal: request.signal,
  });
  return new Response(answer.body, { status: answer.status, headers: answer.headers });
}

export { forward as GET, forward as POST };
