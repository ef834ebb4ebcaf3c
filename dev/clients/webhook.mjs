// Verifies requests with the released library of Standard Webhooks: one JSON object a line, with
// the secret, its format, the headers and the body.
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";

for await (const line of createInterface({ input: process.stdin })) {
  const { secret, format, headers, body } = JSON.parse(line);
  const verifier = new Webhook(secret, { format });
  verifier.verify(body, headers);
  let refused = false;
  try {
    verifier.verify(body + " ", headers);
  } catch {
    refused = true;
  }
  if (!refused) throw new Error("another body was taken");
}
