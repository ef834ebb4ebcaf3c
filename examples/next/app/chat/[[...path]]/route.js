import { skein } from "../../skein";

// Passes /chat on to Skein. Check here who the user is, and that the chat is theirs.
async function forward(request, { params }) {
  const { path = [] } = await params;
  const answer = await skein(path, {
    method: request.method,
    body: request.method === "POST" ? await request.text() : undefined,
    signal: request.signal,
  });
  return new Response(answer.body, { status: answer.status, headers: answer.headers });
}

export { forward as GET, forward as POST };
