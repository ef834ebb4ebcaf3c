// Opens the page of examples/chat as a browser does, with an EventSource of its own: PAGE is the
// folder of its script, URL its address.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { Chat } = await import(pathToFileURL(process.env.PAGE + "/chat.js"));

// Source is EventSource, as far as the page uses it.
class Source {
  readyState = 0;
  stop = new AbortController();
  constructor(url) { this.read(url).catch(() => {}); }
  async read(url) {
    const answer = await fetch(url, { signal: this.stop.signal });
    if (answer.status !== 200) {
      this.readyState = 2;
      return this.onerror({});
    }
    let left = "";
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
      const frames = (left + piece).split("\n\n");
      left = frames.pop();
      for (const frame of frames) {
        const data = frame.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
        if (data) this.onmessage({ data });
      }
    }
  }
  close() { this.readyState = 2; this.stop.abort(); this.onclose?.(); }
}

function open(id, fetch) {
  const page = { changed: () => {}, sources: [] };
  page.chat = new Chat({
    url: process.env.URL + "/chat", id, agent: "storyteller", fetch,
    Source: class extends Source { constructor(url) { super(url); page.sources.push(this); this.onclose = () => page.changed(); } },
    show: (messages) => {
      page.said = messages.map((m) => m.role + ": " + m.parts.filter((p) => p.type === "text").map((p) => p.text).join(""));
      page.changed();
    },
  });
  page.until = (condition) => new Promise((done) => { page.changed = () => condition() && done(); page.changed(); });
  return page;
}

const words = (page) => (page.said?.[1] ?? "").split(" ").length - 2;

// The first page learns that nothing runs, and loads once more: that answer is late, and comes
// after the first words.
let loads = 0, release, late = false;
const told = new Promise((resolve) => (release = resolve));
const first = open("story", async (url, options) => {
  const answer = await fetch(url, options);
  if (!options && ++loads === 2) {
    await told;
    late = true;
  }
  return answer;
});
await first.chat.open();
assert.deepEqual(first.said, []);
await new Promise((done) => { const look = () => (loads === 2 ? done() : setImmediate(look)); look(); });
await first.chat.send("tell me a story");
await first.until(() => words(first) >= 1);
release();
await first.until(() => words(first) >= 3);
assert.ok(late);
first.sources.forEach((s) => s.close()); // the page is closed

const second = open("story");
await second.chat.open();
await second.until(() => words(second) > words(first));
assert.ok(second.said[1].startsWith(first.said[1]), `${second.said[1]} after ${first.said[1]}`);
assert.equal(second.said.length, 2);
await second.chat.stop();
await second.until(() => second.sources.at(-1).readyState === 2);

const third = open("story");
await third.chat.open();
assert.equal(third.said.length, 2);
assert.ok(third.said[1].startsWith(first.said[1]));
