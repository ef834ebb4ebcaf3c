// showTimes shows times in the reader's zone: today's as a time, others with their date. The
// exact value, in UTC, stays in the title.
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

export function showTimes(root) {
  const today = new Date().toDateString();
  for (const t of root.querySelectorAll("time:not([data-shown])")) {
    const at = new Date(t.dateTime);
    if (isNaN(at)) continue;
    t.textContent = at.toDateString() === today ? clock.format(at) : day.format(at);
    t.dataset.shown = "true";
  }
}
