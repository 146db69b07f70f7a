// One question by its link, for whoever was sent it: everything first, the buttons after it.
import { post, url } from "./api.js";
import { fill, folder, h, visible } from "./dom.js";
import { what } from "./approvals.js";

export async function showApprove(root) {
  const link = location.hash.slice(1);
  const body = h("div.approve-body", null, h("p.calm", null, "Loading what is asked…"));
  fill(root, h("main.approve", { id: "main" }, h("header", null, h("img", { src: url("/static/mark.svg"), alt: "", width: "26", height: "26" }), h("h1", null, "One question")), body));
  const say = (text) => fill(body, h("p.calm", { role: "status" }, text), h("p", null, h("a", { href: url("/approvals") }, "Open the dashboard")));
  if (!link) { say("This address has no link in it. Take it whole, as it was sent."); return; }
  let told;
  try { told = await post("/api/links/look", { link }); } catch (problem) { say(problem.message); return; }
  const { approval } = told;
  const { ask } = approval;
  const comment = h("input.comment", { "aria-label": ask.kind === "question" ? "Your answer" : "A word to the agent", placeholder: ask.kind === "question" ? "Your answer" : "A word to the agent (optional)" });
  const wrong = h("p.wrong", { role: "alert" });
  const answer = async (verdict, text = "") => {
    for (const one of body.querySelectorAll("button")) one.disabled = true;
    const more = verdict === "answer" ? { text } : { comment: comment.value };
    try { await post("/api/links/answer", { link, verdict, digest: ask.digest || "", ...more }); say({ allow: "Allowed.", deny: "Denied.", answer: "Answered." }[verdict]); }
    catch (problem) {
      if (problem.status === 409 || problem.status === 410) { say(problem.message); return; }
      wrong.textContent = problem.message;
      for (const one of body.querySelectorAll("button")) one.disabled = false;
    }
  };
  const buttons = ask.kind === "question"
    ? h("div.verdict", null, (ask.choices || []).map((text) => h("button", { type: "button", onclick: () => answer("answer", text) }, text)), comment, h("button.primary", { type: "button", onclick: () => { if (comment.value.trim()) answer("answer", comment.value); } }, "Answer"))
    : h("div.verdict", null, h("button.primary", { type: "button", "data-verdict": "allow", disabled: true, onclick: () => answer("allow") }, "Allow"), h("button", { type: "button", "data-verdict": "deny", onclick: () => answer("deny") }, "Deny"), comment);
  fill(body, h("p.says", null, h("bdi", null, visible([told.title, folder(told.cwd), told.agent].filter(Boolean).join(" · ")))), h("div.ask.whole", null, what(approval), h("div.end"), buttons, wrong));
  // Yes is possible only once the end of what is asked was on the screen.
  const allow = body.querySelector("[data-verdict=allow]");
  if (!allow) return;
  const eye = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) { allow.disabled = false; eye.disconnect(); } });
  eye.observe(body.querySelector(".end"));
}
