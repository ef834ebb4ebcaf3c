import type { Skein } from "@skein-threads/client";
import { createContext, createElement, useContext, type ReactElement, type ReactNode } from "react";

const Context = createContext<Skein | undefined>(undefined);

/** Has the hooks below it use a client. Make the client once, outside of what is rendered. */
export function SkeinProvider({ client, children }: { client: Skein; children?: ReactNode }): ReactElement {
  return createElement(Context.Provider, { value: client }, children);
}

/** The client of the {@link SkeinProvider} above. */
export function useSkein(): Skein {
  const client = useContext(Context);
  if (!client) throw new Error("there is no SkeinProvider above: put the component into <SkeinProvider client={skein}>");
  return client;
}
