// The slider goes to the version where it is let go.
export function bindSlider() {
  const range = (e) => e.target.matches("[data-slider] input[type=range]") && e.target;
  document.addEventListener("input", (e) => {
    const r = range(e);
    if (r) r.form.querySelector("output").textContent = r.value + " / " + r.max;
  });
  document.addEventListener("change", (e) => {
    const r = range(e);
    if (!r) return;
    const to = new URL(location.href);
    to.search = "";
    if (r.value !== r.max) to.searchParams.set("at", r.value);
    location.replace(to);
  });
}
