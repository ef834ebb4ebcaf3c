// The console's script. Pages are whole without it; it adds what moves: live panels, times in
// the reader's zone, keys, and forms that do not reload the page.
import { follow } from "./live.js";
import { showTimes } from "./times.js";
import { bindKeys } from "./keys.js";
import { bindForms } from "./forms.js";
import { bindSlider } from "./slider.js";
import { bindHistory } from "./history.js";
import { bindPlayer } from "./player.js";
import { bindRefresh } from "./refresh.js";

document.documentElement.classList.add("scripted");
for (const here of document.querySelectorAll("nav [aria-current]")) { // a narrow screen shows a part of a list
  const list = here.closest("ul");
  list.scrollLeft = here.offsetLeft - list.offsetLeft - (list.clientWidth - here.offsetWidth) / 2;
}
const change = new CustomEvent("console:change", { detail: { root: document } });
document.addEventListener("console:change", (e) => showTimes(e.detail.root));
document.dispatchEvent(change);
bindKeys();
bindForms();
bindSlider();
bindHistory();
bindPlayer();
bindRefresh();
if (document.body.dataset.live) follow(document.body.dataset.live);
document.documentElement.dataset.ready = "true";
