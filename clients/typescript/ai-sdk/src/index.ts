/**
 * The AI SDK's chat with Skein: a transport for `useChat`, and the messages that a thread keeps.
 *
 * @packageDocumentation
 */
import { SkeinError } from "@skein-threads/client";
import { DefaultChatTransport, type UIMessage } from "ai";

/** How a chat reaches Skein. */
export interface ChatOptions {
  /** Where Skein serves HTTP, or the route of your server that forwards to it; `http://127.0.0.1:8420` if absent. */
  url?: string;
  /** An API key or a token, or what returns one. At a desk, and behind your own route, it is not needed. */
  key?: string | (() => string | Promise<string>);
  /** The tenant, at a desk that serves several. */
  tenant?: string;
  /** Sends requests; the platform's fetch if absent. */
  fetch?: typeof fetch;
}

/** How a {@link SkeinChatTransport} sends messages. */
export interface TransportOptions extends ChatOptions {
  /** The agent that answers in a new chat. */
  agent?: string;
  /** Send all messages, which become the history of a new chat, and not only the last. */
  history?: boolean;
}

/** A transport of `useChat`. It resumes an answer that is being written, and sends the last message only: the thread has the others. */
export class SkeinChatTransport<M extends UIMessage = UIMessage> extends DefaultChatTransport<M> {
  constructor(options: TransportOptions = {}) {
    const { agent, history } = options;
    super({
      api: `${urlOf(options)}/chat`,
      headers: () => headersOf(options),
      ...(options.fetch && { fetch: options.fetch }),
      prepareSendMessagesRequest: ({ id, messages, trigger, messageId, body }) => ({
        body: {
          ...body,
          id,
          trigger,
          ...(messageId !== undefined && { messageId }),
          ...(agent !== undefined && { agent }),
          ...(history ? { messages } : { message: messages.at(-1) }),
        },
      }),
    });
  }
}

/** The messages of a chat, to begin with; none of a chat that does not exist yet. */
export async function loadMessages<M extends UIMessage = UIMessage>(id: string, options: ChatOptions & { signal?: AbortSignal } = {}): Promise<M[]> {
  try {
    return (await (await checked(await send(id, "", "GET", options))).json()) as M[];
  } catch (error) {
    // Another not_found is of a route: the url is wrong.
    if (error instanceof SkeinError && error.code === "not_found" && error.details["entity"] === "chat") return [];
    throw error;
  }
}

/** Cancels what a chat's agent does, and keeps its text. It says whether something was cancelled. */
export async function stopChat(id: string, options: ChatOptions & { signal?: AbortSignal } = {}): Promise<boolean> {
  const answer = await checked(await send(id, "/stop", "POST", options));
  return ((await answer.json()) as { stopped: boolean }).stopped;
}

async function send(id: string, rest: string, method: string, options: ChatOptions & { signal?: AbortSignal }): Promise<Response> {
  // A URL has no place for such an id.
  if (/^\.{0,2}$/.test(id)) throw new SkeinError("invalid_request", `a chat cannot have the id ${JSON.stringify(id)}`);
  const headers = { ...(await headersOf(options)), ...(method === "POST" && { "Content-Type": "application/json" }) };
  const init: RequestInit = { method, headers, ...(method === "POST" && { body: "{}" }), ...(options.signal && { signal: options.signal }) };
  return (options.fetch ?? globalThis.fetch)(`${urlOf(options)}/chat/${encodeURIComponent(id)}${rest}`, init);
}

async function checked(answer: Response): Promise<Response> {
  if (answer.ok) return answer;
  const text = await answer.text().catch(() => "");
  let said: { code?: string; message?: string; param?: string; details?: Record<string, unknown> } = {};
  try {
    said = (JSON.parse(text) as { error: typeof said }).error ?? {};
  } catch {
    said = { message: text.slice(0, 300) };
  }
  throw new SkeinError(said.code ?? "unavailable", said.message || answer.statusText, answer.status, said.param, said.details);
}

function urlOf({ url = "http://127.0.0.1:8420" }: ChatOptions): string {
  return url.replace(/\/+$/, "");
}

async function headersOf({ key, tenant }: ChatOptions): Promise<Record<string, string>> {
  return {
    ...(key !== undefined && { Authorization: `Bearer ${typeof key === "function" ? await key() : key}` }),
    ...(tenant !== undefined && { "Skein-Tenant": tenant }),
  };
}
