// Keys: j and k move through the rows of a list, Enter opens one, x selects it, / goes to the
// search, c to the composer, p plays the thread, ? tells those of the page.
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
  document.querySelector("[data-keys]")?.addEventListener("click", tell);
}

const keys = {
  j: () => move(1),
  k: () => move(-1),
  Enter: (e) => (e.target === document.body || e.target.closest("tr.cursor") === e.target ? open() : false),
  x: () => document.querySelector("tr.cursor input[type=checkbox]")?.click(),
  "/": () => focus("[data-search]"),
  c: () => focus("[data-composer]"),
  "?": tell,
};

// What the keys do, each where something is there for it.
const told = [
  ["j k", "move through the list", "[data-list] tr[data-href]"],
  ["Enter", "opens the row", "[data-list] tr[data-href]"],
  ["x", "selects the row", "[data-list] input[type=checkbox]"],
  ["/", "goes to the search", "[data-search]"],
  ["c", "goes to the composer", "[data-composer]"],
  ["p", "plays the thread, and stops", "[data-player]"],
  ["Esc", "leaves a field", "main :is(input:not([type=hidden]), textarea)"],
  ["?", "shows these keys", "body"],
];

// tell shows the keys of the page, and hides them again.
function tell() {
  const dialog = document.querySelector("#keys");
  if (!dialog) return false;
  if (dialog.open) return dialog.close();
  const rows = told.filter(([, , where]) => document.querySelector(where)).map(([names, does]) => {
    const [key, says] = [document.createElement("dt"), document.createElement("dd")];
    for (const name of names.split(" ")) key.append(Object.assign(document.createElement("kbd"), { textContent: name }), " ");
    says.textContent = does;
    return [key, says];
  });
  dialog.querySelector("dl").replaceChildren(...rows.flat());
  dialog.showModal();
}

function focus(selector) {
  const found = document.querySelector(selector);
  if (!found) return false;
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
