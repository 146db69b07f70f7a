// Beside a session: its plan, the files it changed with their diff, checkpoints, sub-agents.
import { get, post, url } from "./api.js";
import { ago, fill, h, icon, many, toast } from "./dom.js";
import { confirmed } from "./dialogs.js";
import { row } from "./list.js";
import { unified } from "./text.js";

const TABS = [["files", "Changes"], ["undo", "Checkpoints"], ["agents", "Agents"], ["plan", "Plan"]];
const DEEPEST = 4;

export class Panel {
  constructor(page) {
    this.page = page;
    this.button = h("button.quiet.tool-link", { type: "button", "aria-expanded": "false", title: "Changes, checkpoints, agents (p)", onclick: () => this.toggle() }, icon("panel"), h("span", null, "Changes"));
    this.at = "files";
    this.entries = [];
    this.tabs = TABS.map(([id, name]) => h("button.panel-tab", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "panel-body", "aria-selected": String(id === this.at), tabindex: id === this.at ? "0" : "-1", onclick: () => this.show(id), onkeydown: (event) => this.moved(event) }, name));
    this.body = h("div.panel-body", { role: "tabpanel", id: "panel-body", "aria-labelledby": "tab-files", tabindex: "0" });
    this.node = h("aside.panel", { "aria-label": "About this session", hidden: true }, h("div.panel-head", null, h("div.panel-tabs", { role: "tablist", "aria-label": "About this session" }, this.tabs), h("button.quiet.round", { type: "button", "aria-label": "Close the panel", onclick: () => this.toggle(false) }, "×")), this.body);
  }

  open() {
    let shown = false;
    try { shown = localStorage.getItem("panel") === "1" && matchMedia("(min-width: 1100px)").matches; } catch { /* no storage */ }
    if (shown) this.toggle(true);
  }

  toggle(shown = this.node.hidden) {
    this.node.hidden = !shown;
    this.button.setAttribute("aria-expanded", String(shown));
    try { localStorage.setItem("panel", shown ? "1" : ""); } catch { /* no storage */ }
    if (shown) this.draw();
    else this.button.focus();
  }

  moved(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = (TABS.findIndex(([id]) => id === this.at) + step + TABS.length) % TABS.length;
    this.show(TABS[at][0]);
    this.tabs[at].focus();
  }

  show(id) {
    this.at = id;
    TABS.forEach(([one], n) => { this.tabs[n].setAttribute("aria-selected", String(one === id)); this.tabs[n].tabIndex = one === id ? 0 : -1; });
    this.body.setAttribute("aria-labelledby", `tab-${id}`);
    this.draw();
  }

  refresh() { if (!this.node.hidden) { clearTimeout(this.timer); this.timer = setTimeout(() => this.draw(), 200); } }
  plan(entries) { this.entries = entries; if (this.at === "plan") this.refresh(); }

  async draw() {
    const asked = this.asked = (this.asked || 0) + 1;
    let made;
    try { made = await this[`draw_${this.at}`](); }
    catch (problem) { made = h("p.calm", null, problem.message); }
    if (asked === this.asked && !this.page.closed) fill(this.body, made);
  }

  async draw_files() {
    const [files, info] = await Promise.all([get(`${this.page.path}/changes`), get(this.page.path)]);
    const apart = this.apart(info.extra?.worktree);
    if (!files.length) return [apart, h("p.calm", null, "No file was changed.")];
    const added = files.reduce((sum, one) => sum + one.added, 0), removed = files.reduce((sum, one) => sum + one.removed, 0);
    return [apart, h("p.sum", null, many(files.length, "file"), h("span.added", null, `+${added}`), removed ? h("span.removed", null, `−${removed}`) : null),
      files.map((one) => changed(one, files.length <= 3))];
  }

  apart(tree) {
    if (!tree?.path) return null;
    if (tree.ended) return h("p.says.worktree", null, `Its worktree was ${tree.ended}.`);
    return h("div.checkpoint.worktree", null, h("div.head", null, h("bdi", null, `Branch ${tree.branch}`),
      h("button", { type: "button", onclick: () => this.end("merge", tree) }, "Merge"), h("button", { type: "button", onclick: () => this.end("drop", tree) }, "Drop")));
  }

  async end(how, tree) {
    const asked = how === "merge" ? ["Merge this worktree?", `What was done on ${tree.branch} goes into ${tree.repository}; then the worktree and its branch go.`, "Merge"] : ["Drop this worktree?", `What was done on ${tree.branch} is thrown away with it. This cannot be undone.`, "Drop"];
    if (!(await confirmed(...asked))) return;
    try { toast((await post(`${this.page.path}/worktree`, { how })).done); }
    catch (problem) { toast(problem.message, true); }
    this.draw();
  }

  async draw_undo() {
    const rows = await get(`${this.page.path}/checkpoints`);
    if (!rows.length) return h("p.calm", null, "No turn changed a file.");
    const undone = rows.some((one) => one.undone);
    return [undone ? h("button", { type: "button", onclick: () => this.act("redo") }, "Redo what was undone") : null,
      [...rows].reverse().map((one) => h("div.checkpoint", { "data-undone": one.undone ? "" : null, "data-turn": one.turn },
        h("div.head", null, h("strong", null, many(one.files.length, "file")), h("span.when", null, one.undone ? "undone" : ago(one.at)),
          one.undone ? null : h("button", { type: "button", onclick: () => this.act("undo", one) }, "Undo to here")),
        h("ul", null, one.files.slice(0, 30).map((file) => h("li", null, h("span.fate", { "data-fate": file.fate }, file.fate), h("bdi", null, file.path)))),
        one.note ? h("p.says", null, one.note) : null))];
  }

  async act(verb, one) {
    if (verb === "undo" && !(await confirmed("Undo?", "Files are put back to before this turn; the turns after it are undone, too. It can be redone until another change.", "Undo"))) return;
    try {
      const done = await post(`${this.page.path}/${verb}`, one ? { turn: one.turn } : undefined);
      toast(`${many(done.files.length, "file")} put back.${done.note ? ` ${done.note}` : ""}`);
    } catch (problem) { toast(problem.message, true); }
    this.draw();
  }

  async draw_agents() {
    const tree = await this.branch(this.page.id, 1);
    return tree ? h("div.tree", null, tree) : h("p.calm", null, "No sub-agent was started.");
  }

  async branch(id, depth) {
    const rows = await get(`/api/sessions/${encodeURIComponent(id)}/children`);
    if (!rows.length) return null;
    const inner = depth < DEEPEST ? await Promise.all(rows.map((one) => this.branch(one.id, depth + 1))) : [];
    return h("ul", { role: depth === 1 ? "tree" : "group", "aria-label": depth === 1 ? "Sub-agents" : null }, rows.map((one, n) => h("li", { role: "treeitem", "aria-selected": "false" }, row(this.page.app, one), inner[n] || null)));
  }

  draw_plan() {
    let { entries } = this;
    for (const part of this.page.talk.parts) if (part.talk.plan) entries = part.talk.plan.entries;
    if (!entries.length) return h("p.calm", null, "There is no plan.");
    return h("div.plan", null, h("ul", null, entries.map((one) => h("li", { "data-status": one.status }, one.content))));
  }
}

function changed(one, open) {
  return h("details.changed", { open, "data-path": one.path }, h("summary", null, h("span.fate", { "data-fate": one.fate }, one.fate), h("bdi.path", null, one.path), h("span.added", null, `+${one.added}`), one.removed ? h("span.removed", null, `−${one.removed}`) : null),
    one.diff ? unified(one.diff, one.path) : null, one.note ? h("p.says", null, one.note) : null);
}
