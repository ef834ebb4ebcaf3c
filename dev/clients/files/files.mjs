// Released clients of OpenAI's Files and Embeddings against a running server.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI, { toFile } from "openai";
import OpenAI6 from "openai6";
import { OpenAIEmbeddings } from "@langchain/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embed, embedMany } from "ai";

const baseURL = process.env.SKEIN_URL + "/v1";
const large = "0123456789abcdef".repeat(64 << 10);

for (const [name, Client] of [["openai 7", OpenAI], ["openai 6", OpenAI6]]) {
  const client = new Client({ baseURL, apiKey: "none", maxRetries: 0 });
  const upload = async (content, filename, more = {}) => client.files.create({ file: await toFile(Buffer.from(content), filename), purpose: "user_data", ...more });

  test(`${name}: files`, async () => {
    const file = await upload("the notes", "notes.txt");
    assert.deepEqual([file.object, file.filename, file.bytes, file.purpose, file.status], ["file", "notes.txt", 9, "user_data", "processed"]);
    const big = await upload(large, "big.bin", { expires_after: { anchor: "created_at", seconds: 3600 } });
    assert.equal(big.expires_at, big.created_at + 3600);
    assert.equal((await client.files.retrieve(file.id)).id, file.id);
    assert.equal(await (await client.files.content(file.id)).text(), "the notes");
    assert.equal(await (await client.files.content(big.id)).text(), large);
    const listed = [];
    for await (const f of client.files.list({ limit: 1, order: "asc" })) listed.push(f.id);
    assert.ok(listed.indexOf(file.id) >= 0 && listed.indexOf(file.id) < listed.indexOf(big.id));
    assert.equal((await client.files.delete(big.id)).deleted, true);
    await assert.rejects(client.files.retrieve(big.id), (e) => e.status === 404 && e.code === "not_found");
    await assert.rejects(client.files.content(big.id), (e) => e.status === 404);
    await assert.rejects(upload("x", "x.txt", { purpose: undefined }), (e) => e.status === 400 && e.param === "purpose");
  });

  test(`${name}: a file in a response, and in a completion`, async () => {
    const file = await upload("the notes", "notes.txt");
    const made = await client.responses.create({ model: "reads", input: [{ role: "user", content: [{ type: "input_file", file_id: file.id }] }] });
    assert.equal(made.output_text, "the notes");
    const said = await client.chat.completions.create({ model: "reads", messages: [{ role: "user", content: [{ type: "file", file: { file_id: file.id } }] }] });
    assert.equal(said.choices[0].message.content, "the notes");
  });

  test(`${name}: embeddings`, async () => {
    for (const encoding_format of [undefined, "float", "base64"]) {
      const made = await client.embeddings.create({ model: "vectors", input: ["a", "bcd"], ...(encoding_format && { encoding_format }) });
      assert.deepEqual([made.model, made.usage.total_tokens], ["vectors", 2]);
      const [, second] = made.data.map((d) => d.embedding);
      assert.deepEqual(encoding_format === "base64" ? second : Array.from(second), encoding_format === "base64" ? "AAAAPwAAQEA=" : [0.5, 3]);
    }
    await assert.rejects(client.embeddings.create({ model: "nothing", input: "x" }), (e) => e.status === 404 && e.code === "model_not_found");
  });
}

test("LangChain: OpenAIEmbeddings", async () => {
  const vectors = new OpenAIEmbeddings({ model: "vectors", apiKey: "none", configuration: { baseURL }, maxRetries: 0 });
  assert.deepEqual((await vectors.embedDocuments(["a", "bcd"])).map((v) => Array.from(v)), [[0.5, 1], [0.5, 3]]);
  assert.deepEqual(Array.from(await vectors.embedQuery("bcd")), [0.5, 3]);
});

test("AI SDK, openai-compatible: embed, embedMany, errors", async () => {
  const provider = createOpenAICompatible({ name: "skein", baseURL });
  const model = provider.embeddingModel("vectors");
  const one = await embed({ model, value: "bcd" });
  assert.deepEqual([one.embedding, one.usage.tokens], [[0.5, 3], 1]);
  assert.deepEqual((await embedMany({ model, values: ["a", "bcd"] })).embeddings, [[0.5, 1], [0.5, 3]]);
  await assert.rejects(embed({ model: provider.embeddingModel("nothing"), value: "x", maxRetries: 0 }), (e) => e.message.includes("nothing"));
});
