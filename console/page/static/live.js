// Live panels: the server sends patches, which replace panels, or add rows to them.
import { keep } from "./keep.js";
import { notify } from "./notice.js";

export function follow(address) {
  const source = new EventSource(address);
  let lost = 0;
  source.addEventListener("open", () => {
    clearTimeout(lost);
    lost = 0;
    document.documentElement.dataset.live = "open";
    if (document.getElementById("notice").dataset.kind === "lost") notify("");
  });
  source.addEventListener("patch", (e) => apply(JSON.parse(e.data)));
  source.addEventListener("ended", (e) => {
    source.close();
    signedOut(e.data);
  });
  source.addEventListener("error", () => {
    document.documentElement.dataset.live = "lost";
    if (source.readyState === EventSource.CLOSED) return refused();
    lost ||= setTimeout(() => notify("The connection is lost. This page continues by itself when it is back.", "lost"), 2000);
  });
  addEventListener("pagehide", () => source.close());
}

// refused asks the page itself why its stream was refused.
async function refused() {
  const answer = await fetch(location.href, { headers: { Accept: "application/json" }, redirect: "manual" }).catch(() => null);
  if (answer && answer.status === 401) return signedOut("");
  if (answer && answer.status === 404) return notify("This no longer exists.", "gone");
  notify("This page is no longer live. Reload it.", "lost", location.href, "Reload");
}

function signedOut(why) {
  const next = encodeURIComponent(location.pathname + location.search);
  document.documentElement.dataset.live = "ended";
  notify("You are signed out" + (why ? ": " + why : "") + ".", "ended", "/console/sign-in?next=" + next, "Sign in");
}

function fragment(html) {
  const t = document.createElement("template");
  t.innerHTML = html || ""; // made by the server's templates, which escape
  return t.content;
}

export function apply(p) {
  const panel = document.getElementById(p.panel);
  if (!panel) return;
  if (p.text !== undefined && p.row) return appendText(p);
  if (p.row) return applyRow(panel, p);
  if (panel.dataset.digest === p.digest) return;
  const busy = panel.contains(document.activeElement) && document.activeElement.matches("textarea, input:not([type=checkbox]), select");
  if (busy && document.activeElement.value !== document.activeElement.defaultValue) return later(panel, p);
  const restore = keep(panel);
  panel.replaceChildren(fragment(p.html));
  panel.dataset.digest = p.digest;
  restore();
  changed(panel);
}

// later applies a patch when the reader has left the field that it would take away.
function later(panel, p) {
  panel.pending = p;
  panel.addEventListener("focusout", () => {
    const patch = panel.pending;
    panel.pending = null;
    if (patch) setTimeout(() => apply(patch));
  }, { once: true });
}

function applyRow(panel, p) {
  const rows = panel.querySelector("[data-rows]") || panel;
  const old = document.getElementById(p.row);
  const bottom = atBottom();
  if (!p.html) old?.remove();
  else {
    const made = fragment(p.html);
    for (const text of document.querySelectorAll("#stream .growing-text, #stream .thought")) text.textContent = ""; // it is committed
    if (old) {
      const restore = keep(old), now = made.firstElementChild;
      old.replaceWith(made);
      restore(now);
    } else if (rows.dataset.rows !== "closed") insert(rows, made);
    panel.querySelector("[data-empty]")?.remove();
  }
  changed(panel);
  if (bottom) scrollToEnd();
}

// insert puts a row into its place among those that are shown. One that would be before the oldest
// of them belongs to an earlier page.
function insert(rows, made) {
  const order = (row) => Number(row.dataset.order), own = order(made.firstElementChild), newest = rows.dataset.rows;
  const shown = [...rows.children].filter((row) => row.dataset.order);
  const before = newest === "first" ? shown.find((row) => order(row) < own) : shown.findLast((row) => order(row) < own);
  if (!shown.length) rows.append(made);
  else if (before) newest === "first" ? before.before(made) : before.after(made);
}

function appendText(p) {
  const target = document.getElementById(p.row);
  if (!target) return;
  const bottom = atBottom();
  target.append(p.text);
  target.dispatchEvent(new CustomEvent("console:text", { bubbles: true }));
  if (bottom) scrollToEnd();
}

const follows = () => document.querySelector("[data-follow-end]");
function atBottom() {
  const d = document.documentElement;
  return follows() && d.scrollHeight - d.scrollTop - d.clientHeight < 120;
}
function scrollToEnd() {
  document.documentElement.scrollTop = document.documentElement.scrollHeight;
}

function changed(root) {
  document.dispatchEvent(new CustomEvent("console:change", { detail: { root } }));
}
