// All approvals that wait, and the answers that are remembered.
import { del, get, post, url } from "./api.js";
import { ago, fill, folder, h, icon, titleOf, toast } from "./dom.js";
import { show } from "./dialogs.js";
import { copied } from "./text.js";

const MANY = 4000; // lines of a change that are coloured one by one
const seen = new Map(); // questions that are on the page, whole: id -> digest
const sheets = new Map(); // their nodes, kept so that a half-written answer is not lost

// Says yes or no. Yes only to what is on the page as a whole, and to exactly that.
export async function answer(ask, verdict, more = {}) {
  const allows = verdict === "allow" || verdict === "allow_always";
  if (allows && !seen.has(ask.id)) { toast("Look at all of it first.", true); return; }
  const digest = allows ? seen.get(ask.id) : "";
  try {
    const row = await post(`/api/approvals/${encodeURIComponent(ask.id)}`, { verdict, digest, ...more });
    if (row.settled?.scope) { toast(`Remembered: ${row.settled.scope}`); window.dispatchEvent(new Event("rules")); }
  } catch (problem) {
    toast(problem.message, true);
    if (problem.code === "changed") { forget(ask.id); }
  }
}

export function forget(id) { seen.delete(id); sheets.delete(id); }

// What is asked, whole, with its buttons; used here and in the transcript.
export function question(ask) {
  let node = sheets.get(ask.id);
  if (!node) {
    node = h("div.question", { "data-question": ask.id }, h("p.reason", null, "Loading what is asked…"));
    sheets.set(ask.id, node);
    load(ask, node);
  }
  return node;
}

async function load(ask, node) {
  try {
    const row = await get(`/api/approvals/${encodeURIComponent(ask.id)}`);
    if (row.settled) { forget(ask.id); fill(node, h("p.reason", null, "It is answered already.")); return; }
    fill(node, what(row), buttons(row));
    if (sheets.get(ask.id) === node) seen.set(ask.id, row.ask.digest || "");
  } catch (problem) {
    sheets.delete(ask.id);
    fill(node, h("p.reason", null, problem.message), h("button", { type: "button", onclick: () => { sheets.set(ask.id, node); load(ask, node); } }, "Try again"));
  }
}

function buttons(row) {
  const ask = row.ask;
  if (ask.kind === "question") {
    const own = h("input", { "aria-label": "Your answer", placeholder: ask.choices?.length ? "Or say it in your words" : "Your answer" });
    const say = () => { if (own.value.trim()) answer(ask, "answer", { text: own.value }); };
    return h("form.verdict", { onsubmit: (event) => { event.preventDefault(); say(); } },
      (ask.choices || []).map((text) => h("button", { type: "button", onclick: () => answer(ask, "answer", { text }) }, text)),
      h("div.say", null, own, h("button.primary", { type: "submit" }, "Answer")));
  }
  const comment = h("input.comment", { "aria-label": "A word to the agent", placeholder: "A word to the agent (optional)" });
  const say = (verdict, more = {}) => answer(ask, verdict, { ...more, ...(comment.value ? { comment: comment.value } : {}) });
  const options = row.options || [];
  const scopes = h("div.scopes", { hidden: true, role: "group", "aria-label": "What to remember" },
    options.map((one) => h("button", { type: "button", "data-scope": `${one.scope}:${one.lasts}`, onclick: () => say("allow_always", { scope: one.scope, lasts: one.lasts }) }, `Always: ${one.words}`)));
  const always = h("button", { type: "button", "data-verdict": "always", "aria-expanded": "false", onclick: () => { scopes.hidden = !scopes.hidden; always.setAttribute("aria-expanded", String(!scopes.hidden)); scopes.scrollIntoView({ block: "nearest" }); } }, "Always…");
  return h("div.verdict", null,
    h("button.primary", { type: "button", "data-verdict": "allow", onclick: () => say("allow") }, "Allow", h("kbd", null, "a")),
    options.length ? always : h("span.firm", null, ask.firm ? "Asked about every time" : ""),
    h("button", { type: "button", "data-verdict": "deny", onclick: () => say("deny") }, "Deny", h("kbd", null, "d")),
    comment, h("button.quiet", { type: "button", "data-link-for": ask.id, title: "A link to this one question, for a phone: it answers once and is over in 15 minutes", onclick: () => share(ask) }, "Link"), scopes);
}

// A link that answers this question alone.
async function share(ask) {
  try {
    const made = await post(`/api/approvals/${encodeURIComponent(ask.id)}/link`, {});
    const place = new URL(made.path, document.baseURI).href;
    show("A link to this question", h("p", null, "Whoever opens it sees the whole question and may answer it, once, within 15 minutes."), h("p.share-link", null, h("code", null, place)), copied(place));
  } catch (problem) { toast(problem.message, true); }
}

export function what(row) {
  const ask = row.ask;
  return h("div.what", null,
    h("div.asks", null, icon("hand"), h("strong", null, row.title || "A question"), ask.risk ? h(`span.risk.${ask.risk}`, null, `${ask.risk} risk`) : null),
    (row.parts || []).map(part));
}

function part(one) {
  if (one.kind === "note") return h("p.reason", null, one.label ? `${one.label}: ${one.text}` : one.text);
  const label = one.label && one.kind !== "command" ? h("div.label", null, one.label) : null;
  if (one.kind !== "diff") return [label, h("pre.summary", { tabindex: "0", "data-kind": one.kind }, one.kind === "command" ? `$ ${one.text}` : one.text)];
  const lines = one.text.replace(/\n$/, "").split("\n");
  if (lines.length > MANY) return [label, h("pre.summary", { tabindex: "0", "data-kind": "diff" }, one.text)];
  const kinds = { "+": "plus", "-": "minus" };
  return [label, h("div.diff.whole", { role: "group", "aria-label": one.label, tabindex: "0" },
    lines.map((line) => h(`div.row.${kinds[line[0]] || "same"}`, null, h("span.sign", null, line[0] || ""), h("span.line", null, line.slice(1) || " "))))];
}

function card(app, ask) {
  const one = app.known(ask.session);
  return h("article.ask", { "data-ask": ask.id },
    h("a.from", { href: url(`/sessions/${encodeURIComponent(ask.session)}`), "data-link": true }, h("bdi", null, one ? titleOf(one) : ask.session), h("span", null, [one ? folder(one.cwd) : "", ago(ask.at)].filter(Boolean).join(" · "))),
    question(ask));
}

export class Waiting {
  constructor(app) {
    this.app = app;
    this.cards = new Map();
    this.list = h("div.asklist");
  }

  // Cards stay where they are, so that a half-written answer is not lost when another one comes.
  draw() {
    const asks = [...this.app.asks.values()].sort((a, b) => a.at - b.at);
    const ids = new Set(asks.map((one) => one.id));
    for (const [id, node] of this.cards) if (!ids.has(id)) { node.remove(); this.cards.delete(id); forget(id); }
    for (const ask of asks) if (!this.cards.has(ask.id)) {
      const node = card(this.app, ask);
      this.cards.set(ask.id, node);
      this.list.append(node);
    }
    return asks.length;
  }

  key(key) {
    const first = [...this.cards.keys()][0];
    const ask = first && this.app.asks.get(first);
    if (!ask || ask.kind === "question") return false;
    if (key === "a") answer(ask, "allow");
    else if (key === "d") answer(ask, "deny");
    else return false;
    return true;
  }
}

export class ApprovalsPage {
  constructor(app) {
    this.app = app;
    this.waiting = new Waiting(app);
    this.none = h("p.calm", null, "Nothing waits for you.");
    this.rules = h("section.rules");
    this.node = h("div.page", null, h("header.top", null, h("h1", null, "Approvals")), this.waiting.list, this.none, this.rules);
    this.remembered = () => this.drawRules();
    window.addEventListener("rules", this.remembered);
    this.update();
  }
  update(id) { this.none.hidden = this.waiting.draw() > 0; if (!id) this.drawRules(); } // a session alone changes no rule
  close() { window.removeEventListener("rules", this.remembered); }

  async drawRules() {
    const asked = this.asked = (this.asked || 0) + 1;
    let rules;
    try { rules = await get("/api/rules"); } catch { return; } // the stream says when the host is away
    if (asked !== this.asked) return; // somebody asked later, and knows more
    const where = (rule) => ({ session: "in one session", project: `in ${rule.project}`, agent: "everywhere" })[rule.lasts];
    const remove = async (rule) => {
      try { await del(`/api/rules/${encodeURIComponent(rule.id)}`); } catch (problem) { toast(problem.message, true); }
      this.drawRules();
    };
    fill(this.rules, rules.length ? [h("h2", null, "Remembered answers"), rules.map((rule) => h("div.rule", { "data-rule": rule.id },
      h("span", null, h("bdi", null, `${rule.deny ? "Deny" : "Allow"} ${rule.words}`), h("span.where", null, [where(rule), `agent ${rule.agent}`, rule.by ? `by ${rule.by.name || rule.by.peer || rule.by.dialect} over ${rule.by.dialect}` : "", ago(rule.at)].filter(Boolean).join(" · "))),
      h("button", { type: "button", onclick: () => remove(rule) }, "Withdraw")))] : null);
  }
  key(key) { return this.waiting.key(key); }
}
