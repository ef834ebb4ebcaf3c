// Keys: j and k move through the rows of a list, Enter opens one, x selects it, / goes to the
// search, c to the composer, ? tells them.
export function bindKeys() {
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = e.target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");
    if (typing) {
      if (e.key === "Escape") e.target.blur();
      return;
    }
    const act = keys[e.key];
    if (act && act(e) !== false) e.preventDefault();
  });
}

const keys = {
  j: () => move(1),
  k: () => move(-1),
  Enter: (e) => (e.target === document.body || e.target.closest("tr.cursor") === e.target ? open() : false),
  x: () => document.querySelector("tr.cursor input[type=checkbox]")?.click(),
  "/": () => focus("[data-search]"),
  c: () => focus("[data-composer]"),
  "?": () => focus("[data-keys]", (d) => (d.open = !d.open)),
};

function focus(selector, then) {
  const found = document.querySelector(selector);
  if (!found) return false;
  if (then) then(found);
  found.focus();
}

function move(by) {
  const rows = [...document.querySelectorAll("[data-list] tr[data-href]")];
  if (!rows.length) return false;
  const now = rows.findIndex((r) => r.classList.contains("cursor"));
  const next = rows[Math.max(0, Math.min(rows.length - 1, now < 0 ? (by > 0 ? 0 : rows.length - 1) : now + by))];
  rows[now]?.classList.remove("cursor");
  next.classList.add("cursor");
  next.querySelector("a")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function open() {
  const row = document.querySelector("tr.cursor[data-href]");
  if (!row) return false;
  location.href = row.dataset.href;
}
