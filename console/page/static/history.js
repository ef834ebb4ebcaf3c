// A long conversation: it opens at its end, and earlier pages are loaded above when the reader
// comes near. Pages that are far away are emptied, keep their height, and are loaded again.
const kept = 6; // pages with contents

export function bindHistory() {
  const end = document.querySelector("[data-follow-end]");
  if (end) {
    history.scrollRestoration = "manual";
    document.documentElement.scrollTop = document.documentElement.scrollHeight;
  }
  const near = new IntersectionObserver((seen) => {
    for (const s of seen) if (s.isIntersecting) (s.target.matches("[data-older]") ? older : refill)(s.target);
  }, { rootMargin: "1200px" });
  const first = document.querySelector("[data-older]");
  if (first) near.observe(first);

  async function load(address) {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(answer.status);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  }

  async function older(link) {
    if (link.dataset.busy) return;
    link.dataset.busy = "true";
    try {
      const page = await load(link.href);
      const rows = document.createElement("div");
      rows.className = "turns";
      rows.dataset.page = link.href;
      rows.append(...(page.querySelector("#items .turns")?.children || []));
      const next = page.querySelector("[data-older]");
      const root = document.documentElement, fromEnd = root.scrollHeight - root.scrollTop;
      link.closest(".more").after(rows);
      if (next) {
        link.href = next.href;
        delete link.dataset.busy;
      } else link.closest(".more").remove();
      root.scrollTop = root.scrollHeight - fromEnd;
      document.dispatchEvent(new CustomEvent("console:change", { detail: { root: rows } }));
      trim();
      near.unobserve(link);
      if (next) near.observe(link);
    } catch {
      delete link.dataset.busy; // the link still works
    }
  }

  async function refill(rows) {
    near.unobserve(rows);
    const page = await load(rows.dataset.page).catch(() => null);
    if (!page) return near.observe(rows);
    rows.replaceChildren(...page.querySelector("#items .turns").children);
    rows.style.minHeight = "";
    delete rows.dataset.empty;
    document.dispatchEvent(new CustomEvent("console:change", { detail: { root: rows } }));
    trim();
  }

  function trim() {
    const pages = [...document.querySelectorAll("#items [data-page]:not([data-empty])")];
    const distance = (p) => Math.abs(p.getBoundingClientRect().top + p.offsetHeight / 2 - innerHeight / 2);
    for (const p of pages.sort((a, b) => distance(b) - distance(a)).slice(0, Math.max(0, pages.length - kept))) {
      p.style.minHeight = p.offsetHeight + "px"; // set by script, which the policy permits
      p.replaceChildren();
      p.dataset.empty = "true";
      near.observe(p);
    }
  }
}
