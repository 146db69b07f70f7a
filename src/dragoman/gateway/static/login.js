// The first page of a browser that is not paired yet.
import { get, post } from "./api.js";
import { fill, h } from "./dom.js";
import { url } from "./api.js";

export async function showLogin(root, entered) {
  const first = await get("/pair/code").catch(() => ({}));
  const wrong = h("p.wrong", { role: "alert" });
  const code = h("input.code", {
    name: "code", "aria-label": "Pairing code", placeholder: "ABCD-EFGH", autocomplete: "one-time-code", spellcheck: "false",
    autocapitalize: "characters", maxlength: "9", value: first.pairing_code || "",
  });
  const enter = h("button.primary", { type: "submit" }, "Pair this browser");
  const form = h("form", { onsubmit: async (event) => {
    event.preventDefault();
    enter.disabled = true;
    wrong.textContent = "";
    try {
      await post("/pair", { code: code.value, name: navigator.userAgent.match(/(Firefox|Edg|Chrome|Safari)/)?.[0] || "browser", browser: true });
      entered();
    } catch (problem) { wrong.textContent = problem.message; enter.disabled = false; code.select(); }
  } }, code, enter, wrong);
  fill(root, h("main.login", { id: "main" },
    h("img", { src: url("/static/mark.svg"), alt: "", width: "52", height: "52" }),
    h("h1", null, "Dragoman"),
    h("p", null, first.pairing_code ? "Nobody has paired with this host yet. This is its first code." : h("span", null, "Run ", h("code", null, "dragoman pair"), " where the host runs, and give the code here.")),
    form));
  code.focus();
}
