// The first page: say what to do. Below it: what needs you, what runs, what was spent today.
import { get, post } from "./api.js";
import { count, fill, h, icon, many, money, renew } from "./dom.js";
import { Composer } from "./composer.js";
import { allModels, fillModels, modes } from "./choices.js";
import { Waiting } from "./approvals.js";
import { row } from "./list.js";
import { plot } from "./plot.js";

export class HomePage {
  constructor(app) {
    this.app = app;
    this.waiting = new Waiting(app);
    this.title = h("h1", null, "What shall be done?");
    this.line = h("p.line");
    this.needs = h("section.needs", { hidden: true }, h("h2", null, "Needs you"), this.waiting.list);
    this.works = h("section.now");
    this.spent = h("section.spent");
    this.notices = h("div");
    this.build();
    this.node = h("div.page.home", null, h("header.hello", null, this.title, this.line), this.composer.node, this.needs, this.works, this.spent, this.notices);
    this.update();
  }

  build() {
    const datalist = h("datalist", { id: "folders" });
    let last = "";
    try { last = localStorage.getItem("folder") || ""; } catch { /* no storage */ }
    this.cwd = h("input.folder", { name: "cwd", list: "folders", value: last, placeholder: "Folder", "aria-label": "Folder", spellcheck: "false", autocapitalize: "off", autocomplete: "off", oninput: () => { this.typed = true; this.complete(); }, onblur: () => this.suppose() });
    this.agent = h("select", { name: "agent", "aria-label": "Agent", onchange: () => this.chosen() });
    this.model = h("select", { name: "model", "aria-label": "Model" });
    this.mode = h("select", { name: "mode", "aria-label": "Mode" });
    this.worktree = h("input", { type: "checkbox", name: "worktree" });
    this.apart = h("label.check", { hidden: true, title: "Work in a worktree of its own, apart from yours" }, this.worktree, "Worktree");
    this.composer = new Composer({ placeholder: "Ask, plan, build…", label: "Prompt", rows: 3, cwd: () => this.cwd.value, send: (body) => this.begin(body) });
    this.composer.node.classList.add("big-box");
    this.composer.node.append(h("div.options", null, h("label.folder-field", { title: "Folder" }, icon("folder"), h("span.hidden-text", null, "Folder"), this.cwd), this.agent, this.model, this.mode, this.apart), datalist);
    this.datalist = datalist;
  }

  async open() {
    this.app.look().catch(() => {});
    if (matchMedia("(min-width: 800px)").matches) this.composer.input.focus();
    try {
      const [agents, models] = await Promise.all([get("/api/agents"), allModels()]);
      this.agents = agents;
      this.models = models;
    } catch { this.away = true; return; } // the stream says when the host is away
    const usual = this.agents.find((one) => one.default) || this.agents[0];
    fill(this.agent, this.agents.map((one) => h("option", { value: one.alias, selected: one === usual }, one.alias)));
    this.agent.hidden = this.agents.length < 2;
    this.chosen();
    this.complete();
  }

  chosen() {
    const agent = this.agents?.find((one) => one.alias === this.agent.value);
    const known = this.models?.find((one) => one.ref === agent?.model);
    fillModels(this.model, this.models || [], "", agent ? known?.name || agent.model : "As configured");
    this.offer(agent?.mode || "supervised");
  }

  // What a new session may be given is known with the status, which may come after the agents.
  offer(mode = "") {
    this.apart.hidden = !this.app.status?.options?.includes("worktree");
    const known = modes(this.app), wanted = mode || this.mode.value;
    if (mode || this.mode.options.length !== known.length) fill(this.mode, known.map(([value, name]) => h("option", { value, selected: value === wanted }, name)));
  }

  complete() {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      const typed = this.cwd.value;
      const found = await get(`/api/folders?text=${encodeURIComponent(typed)}`).catch(() => null);
      if (!found || this.closed || typed !== this.cwd.value) return; // too late: it is about other words
      this.recent = found.recent[0] || "";
      this.suppose();
      fill(this.datalist, [...new Set([...found.recent.filter((one) => one.includes(typed)), ...found.folders])].slice(0, 24).map((value) => h("option", { value })));
    }, 100);
  }

  // The folder that is usual; never under the fingers of somebody who is about to type one. Where there is no
  // recent one it is the host's own, which is known with the status: that may come last.
  suppose() {
    if (this.recent === undefined || this.typed || this.cwd.value || document.activeElement === this.cwd) return;
    this.cwd.value = this.recent || this.app.status?.cwd || "";
  }

  async begin(body) {
    const made = await post("/api/sessions", {
      agent: this.agent.value, cwd: this.cwd.value, mode: this.mode.value || null, model: this.model.value,
      ...(!this.apart.hidden && this.worktree.checked ? { worktree: true } : {}),
    });
    try { localStorage.setItem("folder", this.cwd.value); } catch { /* no storage */ }
    await post(`/api/sessions/${encodeURIComponent(made.id)}/prompt`, { ...body, wait: false });
    this.app.know(made);
    if (!this.closed) this.app.go(`/sessions/${encodeURIComponent(made.id)}`); // who went elsewhere meanwhile stays there
  }

  connected() { if (this.away) { this.away = false; this.open(); } }
  looked() { this.update(); }

  update() {
    const app = this.app;
    if (this.agents) this.offer();
    this.suppose();
    const asks = this.waiting.draw();
    const { works } = app.now();
    this.needs.hidden = !asks;
    this.title.textContent = "What shall be done?";
    const seen = app.overview;
    this.line.textContent = [asks ? (asks === 1 ? "One thing needs you" : `${asks} things need you`) : "", works.length ? `${works.length} at work` : "",
      seen?.sessions ? many(seen.sessions, "session") : "Sessions of your editor and terminal meet here, too."].filter(Boolean).join(" · ");
    renew(this.works, works.length ? [h("h2", null, "Running"), works.slice(0, 20).map((one) => row(app, one))] : null);
    const today = seen?.today || [];
    const cost = today.reduce((sum, one) => sum + one.cost, 0);
    const tokens = today.reduce((sum, one) => sum + one.tokens_in + one.tokens_out, 0);
    fill(this.spent, today.length ? [h("h2", null, "Today", h("span.sum", null, [money(cost), `${count(tokens)} tokens`].filter(Boolean).join(" · "))), plot(today)] : null);
    fill(this.notices, (app.status?.notices || []).map((text) => h("p.notice", null, text)));
  }

  close() { this.closed = true; clearTimeout(this.timer); }
  key(key) { if (key === "i") { this.composer.input.focus(); return true; } return this.waiting.key(key); }
}
