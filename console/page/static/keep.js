// What the reader has done in a part of the page stays when the part is read again, or replaced by
// another one: what is open and ticked, the row of the cursor, and the focus.
export function keep(part) {
  const open = [...part.querySelectorAll("details[open][id]")].map((d) => d.id);
  const ticked = [...part.querySelectorAll("input[type=checkbox][name]:checked")].filter((b) => !b.defaultChecked).map(box);
  const cursor = part.querySelector("tr.cursor")?.dataset.href;
  const focus = part.contains(document.activeElement) ? place(document.activeElement) : "";
  return (now = part) => {
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    for (const one of ticked) now.querySelectorAll(one).forEach((b) => (b.checked = true));
    if (cursor) now.querySelector(row(cursor))?.classList.add("cursor");
    if (focus) now.querySelector(focus)?.focus({ preventScroll: true });
  };
}

// place returns the selector of an element that finds it again.
function place(e) {
  if (e.id) return "#" + CSS.escape(e.id);
  if (e.matches("input[type=checkbox][name]")) return box(e);
  const details = e.closest("details[id]");
  if (details && e.matches("summary")) return "#" + CSS.escape(details.id) + " > summary";
  const of = e.closest("tr[data-href]");
  return of && e.matches("a") ? row(of.dataset.href) + " a" : "";
}

const box = (b) => `input[name="${CSS.escape(b.name)}"][value="${CSS.escape(b.value)}"]`;
const row = (href) => `tr[data-href="${CSS.escape(href)}"]`;
