// A long conversation: it opens at its end, and earlier pages are loaded above when the reader
// comes near. Pages that are far away are emptied, keep their height, and are loaded again. A list
// that became long while the page was open is cut to what the page shows when it is opened.
const kept = 6; // pages with contents
const atOnce = 60; // messages of a page

export function bindHistory() {
  const end = document.querySelector("[data-follow-end]");
  if (end) {
    history.scrollRestoration = "manual";
    document.documentElement.scrollTop = document.documentElement.scrollHeight;
  }
  const near = new IntersectionObserver((seen) => {
    for (const s of seen) if (s.isIntersecting) (s.target.matches("[data-older]") ? older : refill)(s.target);
  }, { rootMargin: "1200px" });
  const watch = () => document.querySelectorAll("[data-older]").forEach((link) => near.observe(link));
  watch();
  let cutting = false, next = 0; // the length from which the list is cut again
  document.addEventListener("console:change", (e) => {
    if (e.detail.root.id === "timeline-events") return shortenEvents();
    if (e.detail.root.id !== "items") return;
    watch();
    shorten();
  });

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

  async function shorten() {
    const rows = document.querySelector("#items > [data-most]"), most = Number(rows?.dataset.most), long = rows?.childElementCount;
    if (!rows || cutting || rows.dataset.rows === "closed" || long <= Math.max(most, next)) return;
    if (reads(rows, rows.children[long - atOnce])) return long > 2 * most && rows.after(close(rows, "To the end"));
    cutting = true;
    try {
      const page = await load(location.href);
      const from = Number(page.querySelector("#items > [data-most]").firstElementChild.dataset.order);
      const first = [...rows.children].find((row) => Number(row.dataset.order) >= from);
      if (!first || reads(rows, first)) return (next = long + atOnce);
      next = 0;
      const root = document.documentElement, fromEnd = root.scrollHeight - root.scrollTop;
      while (rows.firstElementChild !== first) rows.firstElementChild.remove();
      document.querySelectorAll("#items > [data-page], #items > .more").forEach((earlier) => earlier.remove());
      const more = page.querySelector("[data-older]")?.closest(".more");
      if (more) rows.before(more);
      root.scrollTop = root.scrollHeight - fromEnd;
      watch();
    } catch {
      next = long + atOnce; // it is tried again
    } finally {
      cutting = false;
    }
  }

  // reads reports whether the reader looks at what is before a row, or writes there.
  function reads(rows, first) {
    if (first.getBoundingClientRect().top > 0) return true;
    for (const row of rows.children) {
      if (row === first) return false;
      if (row.contains(document.activeElement) || [...row.querySelectorAll("textarea")].some((t) => t.value !== t.defaultValue)) return true;
    }
    return false;
  }

  // Events are there with the newest first: the list is cut at its end, and the link below continues
  // there.
  function shortenEvents() {
    const rows = document.querySelector("#timeline-events > [data-most]"), most = Number(rows?.dataset.most), long = rows?.childElementCount;
    if (!rows || rows.dataset.rows === "closed" || long <= most) return;
    const gone = [...rows.children].slice(Math.ceil(most / 2));
    if (gone[0].getBoundingClientRect().top < innerHeight || gone.some((row) => row.contains(document.activeElement))) {
      if (long > 2 * most) rows.before(close(rows, "Newest events"));
      return;
    }
    gone.forEach((row) => row.remove());
    const address = new URL(location.href);
    address.searchParams.set("before", rows.lastElementChild.dataset.order);
    document.querySelector("#timeline-events > .earlier")?.remove();
    const more = pager(address, "Earlier events");
    more.classList.add("earlier");
    rows.after(more);
  }

  // close ends a list of which the reader looks at the other end: it grows no more, and what is
  // returned links its present state.
  function close(rows, text) {
    rows.dataset.rows = "closed";
    return pager(location, text);
  }

  function pager(address, text) {
    const p = document.createElement("p"), link = document.createElement("a");
    p.className = "more";
    link.className = "button";
    link.href = address.pathname + address.search;
    link.textContent = text;
    p.append(link);
    return p;
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
