// A shared page shows times in the reader's zone. It does nothing else.
import { showTimes } from "./times.js";

showTimes(document);
document.documentElement.dataset.ready = "true";
