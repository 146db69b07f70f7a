// The first page of a browser that is not paired yet.
import { post } from "./api.js";
import { fill, h } from "./dom.js";
import { url } from "./api.js";

// What `dragoman open` put behind the address: it stays in this page, and leaves its history.
export function takeSecret() {
  const found = location.hash.match(/^#enter=(link_[\w-]{20,})$/);
  if (found) history.replaceState(null, "", location.pathname + location.search);
  return found ? found[1] : "";
}

export async function showLogin(root, entered) {
  const linked = takeSecret();
  const pair = (code) => post("/pair", { code, name: navigator.userAgent.match(/(Firefox|Edg|Chrome|Safari)/)?.[0] || "browser", browser: true });
  if (linked) {
    try { await pair(linked); entered(); return; } catch { /* used or over: the form says what to do */ }
  }
  const wrong = h("p.wrong", { role: "alert" });
  const code = h("input.code", {
    name: "code", "aria-label": "Pairing code", placeholder: "ABCD-EFGH", autocomplete: "one-time-code", spellcheck: "false",
    autocapitalize: "characters", maxlength: "9",
  });
  const enter = h("button.primary", { type: "submit" }, "Pair this browser");
  const form = h("form", { onsubmit: async (event) => {
    event.preventDefault();
    enter.disabled = true;
    wrong.textContent = "";
    try {
      await pair(code.value);
      entered();
    } catch (problem) { wrong.textContent = problem.message; enter.disabled = false; code.select(); }
  } }, code, enter, wrong);
  fill(root, h("main.login", { id: "main" },
    h("img", { src: url("/static/mark.svg"), alt: "", width: "52", height: "52" }),
    h("h1", null, "Dragoman"),
    h("p", null, linked ? "This link was used already, or is too old. " : "", "Run ", h("code", null, "dragoman open"), " where the host runs, or ", h("code", null, "dragoman pair"), " and give the code here."),
    form));
  code.focus();
}
