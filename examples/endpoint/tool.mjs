// An HTTP tool in plain Node: adds two numbers.  SHOP_SECRET=... node tool.mjs
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

function verify(headers, body) {
  const time = headers["skein-timestamp"] ?? "";
  if (!(Math.abs(Date.now() / 1000 - Number(time)) <= 300)) return false; // replayed, or a wrong clock
  const sum = createHmac("sha256", process.env.SHOP_SECRET).update(`${time}.`).update(body).digest("hex");
  return (headers["skein-signature"] ?? "").split(",").some((one) => {
    const got = one.split("=")[1] ?? "";
    return got.length === sum.length && timingSafeEqual(Buffer.from(got), Buffer.from(sum));
  });
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const answer = (status, message) => response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(message));
  if (!verify(request.headers, body)) return answer(401, { error: "the signature is not valid" });
  const { a, b } = JSON.parse(body).arguments;
  answer(200, Number.isFinite(a + b)
    ? { kind: "result", status: "success", result: a + b }
    : { kind: "result", status: "error", error: "a and b are numbers" });
});
server.listen(process.env.PORT ?? 8080, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
