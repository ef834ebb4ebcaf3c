// Forms with data-quiet are sent without leaving the page: what they change arrives as a patch.
// Forms with data-auto send themselves when a field changes. data-confirm asks first.
import { notify } from "./notice.js";

export function bindForms() {
  document.addEventListener("submit", (e) => {
    const form = e.target, by = e.submitter;
    const ask = by?.dataset.confirm || form.dataset.confirm;
    if (ask && !confirm(ask)) return e.preventDefault();
    if (form.dataset.quiet === undefined) return;
    e.preventDefault();
    send(form, by);
  });
  document.addEventListener("change", (e) => {
    const form = e.target.closest("form[data-auto]");
    if (form) form.requestSubmit();
    if (e.target.matches("[data-check-all]")) {
      for (const box of document.querySelectorAll(`input[name="${e.target.dataset.checkAll}"]`)) box.checked = e.target.checked;
    }
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing && e.target.matches("textarea[data-enter]")) {
      e.preventDefault();
      if (e.target.value.trim()) e.target.form.requestSubmit();
    }
  });
}

async function send(form, by) {
  if (form.dataset.put) return upload(form);
  const body = new FormData(form, by);
  const multipart = form.enctype === "multipart/form-data";
  form.setAttribute("aria-busy", "true");
  problem(form, "");
  try {
    const answer = await fetch(by?.getAttribute("formaction") || form.action, {
      method: "POST",
      body: multipart ? body : new URLSearchParams(body),
      headers: { Accept: "application/json" },
    });
    const said = await answer.json();
    if (answer.status === 401) return notify("You are signed out.", "ended", "/console/sign-in?next=" + encodeURIComponent(location.pathname + location.search), "Sign in");
    if (!answer.ok) return problem(form, said.error.message);
    const to = new URL(said.address, location.href);
    if (to.pathname !== location.pathname || to.search !== location.search) return location.assign(to);
    if (!document.body.dataset.live) return location.reload();
    form.reset();
  } catch {
    problem(form, "The server did not answer. Nothing was lost; try again.");
  } finally {
    form.removeAttribute("aria-busy");
  }
}

// upload sends files one by one, as the bodies of requests, so that they may be of any size.
async function upload(form) {
  form.setAttribute("aria-busy", "true");
  problem(form, "");
  try {
    for (const file of form.querySelector("input[type=file]").files) {
      const answer = await fetch(form.dataset.put.replace(/\/$/, "") + "/" + encodeURIComponent(file.name), {
        method: "PUT",
        body: file,
        headers: file.type ? { "Content-Type": file.type } : {},
      });
      if (!answer.ok) return problem(form, (await answer.json()).error.message);
    }
    form.reset();
    if (!document.body.dataset.live) location.reload();
  } catch {
    problem(form, "The upload was interrupted; try again.");
  } finally {
    form.removeAttribute("aria-busy");
  }
}

function problem(form, text) {
  let line = form.querySelector(".form-problem");
  if (!line && text) {
    line = document.createElement("p");
    line.className = "form-problem";
    line.setAttribute("role", "alert");
    form.append(line);
  }
  if (line) line.textContent = text;
}
