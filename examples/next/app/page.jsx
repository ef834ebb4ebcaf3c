"use client";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { useState } from "react";

// Page is a chat with an agent. messages are those of GET /chat/{id}, which the server loads.
export default function Page({ id, agent = "assistant", messages: initial = [] }) {
  const [text, setText] = useState("");
  const { messages, sendMessage, regenerate, addToolApprovalResponse, status, error } = useChat({
    id,
    messages: initial,
    resume: true, // after a reload, in the middle of a sentence
    transport: new DefaultChatTransport({ api: "/chat", body: { agent } }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  return (
    <main>
      {messages.map((message) => (
        <section key={message.id} className={message.role}>
          {message.parts.map((part, i) => {
            if (part.type === "text") return <p key={i}>{part.text}</p>;
            if (part.type === "reasoning") return <small key={i}>{part.text}</small>;
            if (part.state === "approval-requested") {
              const answer = (approved) => () => addToolApprovalResponse({ id: part.approval.id, approved });
              return (
                <p key={i}>
                  {part.type} {JSON.stringify(part.input)}
                  <button onClick={answer(true)}>Approve</button>
                  <button onClick={answer(false)}>Deny</button>
                </p>
              );
            }
            return null;
          })}
        </section>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={(event) => { event.preventDefault(); sendMessage({ text }); setText(""); }}>
        <input value={text} onChange={(event) => setText(event.target.value)} />
        <button disabled={status !== "ready"}>Send</button>
        <button type="button" onClick={() => regenerate()}>Again</button>
        <button type="button" onClick={() => fetch(`/chat/${id}/stop`, { method: "POST" })}>Stop</button>
      </form>
    </main>
  );
}
