// notify shows a line at the top of the page; an empty text hides it.
export function notify(text, kind = "", address = "", name = "") {
  const n = document.getElementById("notice");
  n.replaceChildren(text);
  n.dataset.kind = kind;
  if (address) {
    const a = document.createElement("a");
    a.href = address;
    a.textContent = name;
    n.append(" ", a);
  }
  n.hidden = !text;
}
