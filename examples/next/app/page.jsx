import { redirect } from "next/navigation";
import Chat from "./chat";
import { skein } from "./skein";

// Page shows the chat that the address names, with what was said in it so far. Without a name it
// begins a chat, and puts its name into the address: a reload, a bookmark and another tab have
// the same chat.
export default async function Page({ searchParams }) {
  const { id } = await searchParams;
  if (typeof id !== "string" || !id) redirect(`/?id=${crypto.randomUUID()}`);
  const answer = await skein([id]);
  if (!answer.ok && answer.status !== 404) throw new Error(`Skein answered ${answer.status}: ${await answer.text()}`);
  const messages = answer.ok ? await answer.json() : []; // 404: nothing was said yet
  return <Chat key={id} id={id} agent={process.env.SKEIN_AGENT ?? "support"} initial={messages} />;
}
