// The player shows a thread as it was, version after version, at the pace at which things
// happened. Long pauses are shortened. The address keeps the position. To readers who prefer
// reduced motion it shows one step at a time.
import { notify } from "./notice.js";

const longest = 2000, shortest = 120; // milliseconds of a pause

export function bindPlayer() {
  const player = document.querySelector("[data-player]");
  if (!player) return;
  const button = player.querySelector("[data-play]"), says = player.querySelector("[data-says]"), rest = says.textContent;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let running = null; // its abort ends what plays

  const label = () => {
    button.textContent = running ? "Stop" : still.matches ? "Next step" : "Play";
    says.textContent = running ? "playing" : rest;
    player.dataset.state = running ? "playing" : "stopped";
  };

  function stop() {
    running?.abort();
    running = null;
    label();
  }

  async function start() {
    const mine = (running = new AbortController());
    label();
    try {
      do {
        if (!player.dataset.next) return;
        if (!still.matches) await pause(+player.dataset.wait, speed(), mine.signal);
        const page = await load(player.dataset.next, mine.signal);
        mine.signal.throwIfAborted();
        show(page);
      } while (!still.matches);
    } catch (e) {
      if (!mine.signal.aborted) notify("What comes next could not be loaded. Press Play to go on.", "lost");
    } finally {
      if (running === mine) {
        stop();
        if (!player.dataset.next) location.replace(location.pathname); // the end is the present, which is live
      }
    }
  }

  function toggle() {
    if (running) return stop();
    if (document.body.dataset.live || !player.dataset.next) return location.assign(player.dataset.address);
    start();
  }

  const speed = () => +player.querySelector("[data-speed]").value;

  async function load(version, signal) {
    const to = new URL(location.href);
    to.searchParams.set("at", version);
    const answer = await fetch(to, { signal, headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return { page, to };
  }

  // show puts what another page has in the place of what this one has, but for the player.
  function show({ page, to }) {
    const root = document.documentElement, end = root.scrollHeight - root.scrollTop - root.clientHeight < 120;
    const open = [...document.querySelectorAll("main details[open][id]")].map((d) => d.id);
    const next = page.querySelector("[data-player]");
    document.getElementById("thread-head").replaceWith(page.getElementById("thread-head"));
    document.querySelector("footer.same").replaceWith(page.querySelector("footer.same"));
    while (player.nextSibling) player.nextSibling.remove();
    while (next.nextSibling) player.parentNode.append(next.nextSibling);
    for (const name of ["next", "wait", "address"]) {
      if (next.dataset[name] === undefined) delete player.dataset[name];
      else player.dataset[name] = next.dataset[name];
    }
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    history.replaceState(null, "", to);
    document.dispatchEvent(new CustomEvent("console:change", { detail: { root: document } }));
    if (end && document.querySelector("[data-follow-end]")) root.scrollTop = root.scrollHeight;
  }

  button.addEventListener("click", toggle);
  document.addEventListener("keydown", (e) => {
    if (e.key !== "p" || e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input:not([type=range]), textarea, select, [contenteditable]")) return;
    e.preventDefault();
    toggle();
  });
  document.addEventListener("input", (e) => e.target.closest("[data-slider]") && stop());
  document.addEventListener("visibilitychange", () => document.hidden && stop());
  addEventListener("pagehide", stop);
  still.addEventListener("change", stop);

  label();
  const here = new URL(location.href);
  if (here.searchParams.has("play")) {
    here.searchParams.delete("play");
    history.replaceState(null, "", here);
    if (!still.matches) start();
  }
}

// pause waits, shorter than what happened if that was long, and ends at once with the signal.
function pause(ms, speed, signal) {
  return new Promise((done, ended) => {
    const timer = setTimeout(done, Math.min(longest, Math.max(shortest, ms)) / speed);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      ended(signal.reason);
    }, { once: true });
  });
}
