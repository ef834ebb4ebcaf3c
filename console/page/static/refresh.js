// What shows measurements is read again by itself: an element with data-refresh, every so many
// seconds while the page is looked at, and at once when it is looked at again.
import { keep } from "./keep.js";
import { notify } from "./notice.js";

export function bindRefresh() {
  const part = document.querySelector("[data-refresh]");
  if (!part) return;
  let timer = 0, asking = false;

  const later = () => {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(read, part.dataset.refresh * 1000);
  };

  async function read() {
    clearTimeout(timer);
    if (asking || document.hidden) return;
    asking = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.redirected || answer.status === 401 || answer.status === 404) return notify("You may no longer see this page.", "ended", location.href, "Reload");
      if (!answer.ok) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-refresh]");
      if (!part.contains(document.activeElement)) {
        const restore = keep(part);
        part.replaceChildren(...fresh.childNodes);
        restore();
        document.dispatchEvent(new CustomEvent("console:change", { detail: { root: part } }));
      }
      notify("");
      later();
    } catch {
      notify("The figures could not be read again. This is tried again by itself.", "lost");
      later();
    } finally {
      asking = false;
    }
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : read()));
  later();
}
