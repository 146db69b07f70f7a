// The list of sessions: those that need you first, then those at work, then the rest.
import { url, here } from "./api.js";
import { ago, fill, folder, h, icon, money, titleOf } from "./dom.js";
import { newSession } from "./dialogs.js";

const WORKING = new Set(["running", "starting", "interrupting"]);

export function groupsOf(app, text = "") {
  const waiting = new Set([...app.asks.values()].map((ask) => ask.session));
  const words = text.toLowerCase();
  const rows = [...app.sessions.values()]
    .filter((one) => !one.archived)
    .filter((one) => !words || `${one.title} ${one.query} ${one.cwd} ${one.agent}`.toLowerCase().includes(words))
    .sort((a, b) => b.updated_at - a.updated_at);
  return [
    ["Needs you", rows.filter((one) => waiting.has(one.id) || one.status === "waiting_input"), "needs"],
    ["Working", rows.filter((one) => WORKING.has(one.status) && !waiting.has(one.id)), "works"],
    ["Recent", rows.filter((one) => !WORKING.has(one.status) && one.status !== "waiting_input" && !waiting.has(one.id)), "rests"],
  ];
}

export function row(app, one, kind) {
  const open = here() === `/sessions/${one.id}`;
  const state = kind === "needs" ? "needs you" : kind === "works" ? "working" : one.status === "failed" ? "failed" : "";
  return h("a.session", {
    href: url(`/sessions/${encodeURIComponent(one.id)}`), "data-link": true, "data-kind": one.status === "failed" ? "failed" : kind,
    "aria-current": open ? "page" : null, "data-id": one.id,
  },
  h("span.dot", { title: state || one.status }),
  h("span.title", null, titleOf(one)),
  h("span.meta", null, [folder(one.cwd), one.agent !== "default" ? one.agent : null, money(one.cost), state || null].filter(Boolean).join(" · ")),
  h("span.when", null, ago(one.updated_at)));
}

export class Side {
  constructor(app) {
    this.app = app;
    this.search = h("input.search", { type: "search", placeholder: "Find a session", "aria-label": "Find a session", oninput: () => this.draw() });
    this.list = h("div.sessions", { role: "navigation", "aria-label": "Sessions" });
    this.node = h("div.side", null,
      h("header.brand", null,
        h("a.mark", { href: url("/"), "data-link": true }, h("img", { src: url("/static/mark.svg"), alt: "", width: "26", height: "26" }), h("span", null, "Dragoman")),
        h("span.pulse", { title: "Connection to the host" }),
        h("button.new", { type: "button", title: "New session (n)", onclick: () => newSession(app) }, icon("plus"), h("span", null, "New"))),
      this.search, this.list);
    setInterval(() => this.draw(), 30000);
  }

  draw() {
    const held = this.list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    const groups = groupsOf(this.app, this.search.value);
    const shown = groups.filter(([, rows]) => rows.length);
    fill(this.list, shown.length ? shown.map(([name, rows, kind]) =>
      h("section", null, h("h2", null, name, h("span", null, rows.length)), rows.map((one) => row(this.app, one, kind))))
      : h("p.empty", null, this.search.value ? "Nothing fits." : "No sessions yet."));
    if (held) this.list.querySelector(`[data-id="${CSS.escape(held)}"]`)?.focus();
  }

  focus() { this.search.focus(); this.search.select(); }

  step(by) {
    const links = [...this.list.querySelectorAll("a.session")];
    if (!links.length) return;
    const at = links.findIndex((one) => one === document.activeElement || (!this.list.contains(document.activeElement) && one.hasAttribute("aria-current")));
    links[Math.min(links.length - 1, Math.max(0, at + by))].focus();
  }
}
