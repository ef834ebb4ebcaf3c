import { useEffect, useState } from "react";

/** What a hook follows. */
export interface Following<T> {
  value: T | undefined;
  error: Error | undefined;
}

/**
 * Reads a value whenever it may have changed, and keeps the newest. Changes that come during a
 * read are read together afterwards. It begins anew when its key changes, and ends with the component.
 */
export function useFollowed<T>(key: string, begin: (signal: AbortSignal, changed: () => void) => { read: () => Promise<T>; follow: () => Promise<void> }): Following<T> {
  const [state, setState] = useState<Following<T> & { key: string }>({ key, value: undefined, error: undefined });
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    let wanted = 0;
    let reading = false;
    const fail = (error: unknown) => {
      if (!signal.aborted) setState((s) => ({ key, value: s.key === key ? s.value : undefined, error: error instanceof Error ? error : new Error(String(error)) }));
    };
    const changed = async () => {
      wanted++;
      if (reading) return;
      reading = true;
      try {
        for (let seen = 0; seen !== wanted && !signal.aborted; ) {
          seen = wanted;
          const value = await read();
          if (!signal.aborted) setState({ key, value, error: undefined });
        }
      } catch (error) {
        fail(error);
      } finally {
        reading = false;
      }
    };
    const { read, follow } = begin(signal, () => void changed());
    follow().catch(fail);
    return () => stop.abort();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- begin is what the key names
  }, [key]);
  return state.key === key ? state : { value: undefined, error: undefined };
}

const names = new WeakMap<object, string>();
let made = 0;

/** A text that tells an object from all others. */
export function nameOf(object: object): string {
  let name = names.get(object);
  if (name === undefined) names.set(object, (name = String(++made)));
  return name;
}
