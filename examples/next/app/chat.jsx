"use client";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { useState } from "react";

// Chat is a chat with an agent, which begins with the messages that the server has loaded.
export default function Chat({ id, agent, initial }) {
  const [text, setText] = useState("");
  const { messages, setMessages, sendMessage, regenerate, addToolApprovalResponse, status, error } = useChat({
    id,
    messages: initial,
    resume: true, // after a reload, in the middle of a sentence
    transport: new DefaultChatTransport({ api: "/chat", body: { agent }, fetch: follow }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });

  // follow loads the messages again where the answer ended between the page and its stream.
  async function follow(url, init) {
    const answer = await fetch(url, init);
    if (answer.status === 204 && initial.at(-1)?.role === "user") setMessages(await (await fetch(`/chat/${id}`)).json());
    return answer;
  }

  return (
    <main>
      {messages.map((message) => (
        <section key={message.id} className={message.role}>
          {message.parts.map((part, i) => <Part key={i} part={part} answer={addToolApprovalResponse} />)}
        </section>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={(event) => { event.preventDefault(); sendMessage({ text }); setText(""); }}>
        <input type="hidden" name="id" value={id} /> {/* sent before the scripts are there: the chat stays */}
        <input value={text} onChange={(event) => setText(event.target.value)} aria-label="Message" required />
        <button disabled={status !== "ready"}>Send</button>
        <button type="button" disabled={!messages.length} onClick={() => regenerate()}>Again</button>
        <button type="button" disabled={status === "ready"} onClick={() => fetch(`/chat/${id}/stop`, { method: "POST" })}>Stop</button>
      </form>
    </main>
  );
}

// Part is a piece of a message: text, reasoning, or a call that waits for an approval.
function Part({ part, answer }) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (part.type === "reasoning") return <small>{part.text}</small>;
  if (part.state !== "approval-requested") return null;
  return (
    <p>
      {part.type} {JSON.stringify(part.input)}{" "}
      <button onClick={() => answer({ id: part.approval.id, approved: true })}>Approve</button>{" "}
      <button onClick={() => answer({ id: part.approval.id, approved: false })}>Deny</button>
    </p>
  );
}
