// The first page, and all approvals that wait.
import { post, url } from "./api.js";
import { ago, count, fill, folder, h, icon, money, titleOf, toast } from "./dom.js";
import { groupsOf, row } from "./side.js";
import { newSession } from "./dialogs.js";

export async function answer(ask, verdict, more = {}) {
  try { await post(`/api/approvals/${encodeURIComponent(ask.id)}`, { verdict, ...more }); }
  catch (problem) { toast(problem.message, true); }
}

// The buttons under what is asked; used here and in the transcript.
export function buttons(ask) {
  if (ask.kind === "question") {
    const own = h("input", { "aria-label": "Your answer", placeholder: ask.choices?.length ? "Or say it in your words" : "Your answer" });
    const say = () => { if (own.value.trim()) answer(ask, "answer", { text: own.value }); };
    return h("form.verdict", { onsubmit: (event) => { event.preventDefault(); say(); } },
      (ask.choices || []).map((text) => h("button", { type: "button", onclick: () => answer(ask, "answer", { text }) }, text)),
      h("div.say", null, own, h("button.primary", { type: "submit" }, "Answer")));
  }
  const comment = h("input.comment", { "aria-label": "A word to the agent", placeholder: "A word to the agent (optional)" });
  const say = (verdict) => answer(ask, verdict, comment.value ? { comment: comment.value } : {});
  return h("div.verdict", null,
    h("button.primary", { type: "button", "data-verdict": "allow", onclick: () => say("allow") }, "Allow", h("kbd", null, "a")),
    h("button", { type: "button", onclick: () => say("allow_always") }, "Always"),
    h("button", { type: "button", "data-verdict": "deny", onclick: () => say("deny") }, "Deny", h("kbd", null, "d")),
    comment);
}

export function what(ask) {
  return h("div.what", null,
    h("div.asks", null, icon("hand"), h("strong", null, ask.title || (ask.tool ? `Use ${ask.tool}?` : "A question")), ask.risk ? h(`span.risk.${ask.risk}`, null, `${ask.risk} risk`) : null),
    ask.summary && ask.summary !== ask.title ? h("pre.summary", { tabindex: "0" }, ask.summary) : null,
    ask.reason ? h("p.reason", null, ask.reason) : null);
}

function card(app, ask) {
  const one = app.sessions.get(ask.session);
  return h("article.ask", { "data-ask": ask.id },
    h("a.from", { href: url(`/sessions/${encodeURIComponent(ask.session)}`), "data-link": true }, one ? titleOf(one) : ask.session, h("span", null, [one ? folder(one.cwd) : "", ago(ask.at)].filter(Boolean).join(" · "))),
    what(ask), buttons(ask));
}

class Waiting {
  constructor(app) {
    this.app = app;
    this.cards = new Map();
    this.list = h("div.asklist");
  }

  // Cards stay where they are, so that a half-written answer is not lost when another one comes.
  draw() {
    const asks = [...this.app.asks.values()].sort((a, b) => a.at - b.at);
    const ids = new Set(asks.map((one) => one.id));
    for (const [id, node] of this.cards) if (!ids.has(id)) { node.remove(); this.cards.delete(id); }
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
    this.node = h("div.page", null, h("header.top", null, h("h1", null, "Approvals")), this.waiting.list, this.none);
    this.update();
  }
  update() { this.none.hidden = this.waiting.draw() > 0; }
  key(key) { return this.waiting.key(key); }
}

export class HomePage {
  constructor(app) {
    this.app = app;
    this.waiting = new Waiting(app);
    this.body = h("div");
    this.node = h("div.page.home", null, this.body);
    this.update();
  }

  update() {
    const app = this.app;
    const asks = this.waiting.draw();
    const [, working] = groupsOf(app)[1];
    const rows = [...app.sessions.values()];
    const cost = rows.reduce((sum, one) => sum + one.cost, 0);
    const tokens = rows.reduce((sum, one) => sum + one.usage.input + one.usage.output, 0);
    const dialects = [...new Set(app.clients.map((one) => one.who.dialect))];
    fill(this.body,
      h("header.hello", null,
        h("h1", null, asks ? (asks === 1 ? "One thing needs you" : `${asks} things need you`) : working.length ? "At work" : "All is calm"),
        h("p", null, rows.length ? [`${rows.length} session${rows.length === 1 ? "" : "s"}`, tokens ? `${count(tokens)} tokens` : "", money(cost), dialects.length ? `connected: ${dialects.join(", ")}` : ""].filter(Boolean).join(" · ") : "Start a session here, in your editor, or in a terminal: they all meet in this place.")),
      asks ? this.waiting.list : null,
      working.length ? h("section.now", null, h("h2", null, "Working now"), working.map((one) => row(app, one, "works"))) : null,
      h("div.actions.start", null, h("button.primary", { type: "button", onclick: () => newSession(app) }, icon("plus"), "New session")),
      (app.status?.notices || []).map((text) => h("p.notice", null, text)));
  }

  clients() { this.update(); }
  key(key) { return this.waiting.key(key); }
}
