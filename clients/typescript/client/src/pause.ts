const firstPause = 50;
const longestPause = 5000;

/** Waits between two attempts, spread so that many who failed together do not return together. */
export function pause(failures: number, least: number, signal: AbortSignal | undefined): Promise<void> {
  const usual = Math.min(longestPause, firstPause * 2 ** failures) * (0.5 + Math.random());
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const end = () => (clearTimeout(timer), reject(signal!.reason));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", end), resolve()), Math.max(usual, least));
    signal?.addEventListener("abort", end, { once: true });
  });
}
