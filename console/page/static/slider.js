// The slider goes to the version where it is let go.
export function bindSlider() {
  const form = document.querySelector("[data-slider]");
  if (!form) return;
  const range = form.querySelector("input[type=range]"), out = form.querySelector("output");
  range.addEventListener("input", () => (out.textContent = range.value + " / " + range.max));
  range.addEventListener("change", () => {
    const to = new URL(location.href);
    to.search = "";
    if (range.value !== range.max) to.searchParams.set("at", range.value);
    location.replace(to);
  });
}
