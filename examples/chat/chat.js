// A chat in plain JavaScript: it shows the messages of a chat, follows the one that is being
// written, also after a reload in the middle of it, and sends.
export class Chat {
  constructor({ url = "/chat", id, agent, show, Source = globalThis.EventSource, fetch = globalThis.fetch.bind(globalThis) }) {
    Object.assign(this, { url, id, agent, show, Source, fetch, messages: [] });
    this.at = `${url}/${encodeURIComponent(id)}`;
  }

  // open loads the messages, and follows the one that is being written.
  async open() {
    await this.load();
    this.follow();
  }

  async load() {
    const before = this.source;
    const answer = await this.fetch(this.at);
    const messages = answer.ok ? await answer.json() : []; // a chat begins with its first message
    if (this.sending || this.source !== before) return; // what was loaded is older than what is shown
    this.messages = messages;
    this.show(this.messages);
  }

  // send sends a text, and follows the answer.
  async send(text) {
    const message = { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] };
    this.sending = true;
    this.messages.push(message);
    this.show(this.messages);
    try {
      const answer = await this.fetch(this.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ id: this.id, agent: this.agent, message }),
      });
      if (!answer.ok) throw new Error((await answer.json()).error.message);
      await answer.body.cancel(); // the answer is written whoever reads it
      this.follow();
    } finally {
      this.sending = false;
    }
  }

  stop() {
    return this.fetch(`${this.at}/stop`, { method: "POST" });
  }

  // follow reads the message that is being written, from its start. An EventSource connects
  // again by itself, and then reads it from its start again.
  follow() {
    this.source?.close();
    const source = (this.source = new this.Source(`${this.at}/stream`));
    let message, step;
    source.onmessage = ({ data }) => {
      if (data === "[DONE]") return source.close();
      const chunk = JSON.parse(data);
      switch (chunk.type) {
        case "start":
          message = { id: chunk.messageId, role: "assistant", parts: [] };
          this.messages = [...this.messages.filter((m) => m.id !== message.id), message];
          break;
        case "start-step":
          step = message.parts.length;
          break;
        case "reset-step": // the model was asked again, and said something else
          message.parts.length = step;
          break;
        case "text-start":
          message.parts.push({ type: "text", id: chunk.id, text: "" });
          break;
        case "text-delta":
          message.parts.find((p) => p.id === chunk.id).text += chunk.delta;
          break;
        case "error":
          message.parts.push({ type: "text", text: chunk.errorText });
          break;
      }
      this.show(this.messages);
    };
    source.onerror = () => {
      if (source.readyState === 2 && source === this.source) this.load(); // 204: nothing runs, so the answer is whole
    };
  }
}
