// What a session spent its time on: turns as rows, with model calls, tools and waits as bars.
import { get, url } from "./api.js";
import { count, fill, h, icon, many, money, titleOf, toast, visible } from "./dom.js";

const MOST = 500; // turns
const KIND = { model: "Model", tool: "Tool", wait: "Waiting for you" };

export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  if (ms < 3600000) return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
  return `${Math.floor(ms / 3600000)} h ${Math.round((ms % 3600000) / 60000)} min`;
}

export class TimelinePage {
  constructor(app, id) {
    this.app = app;
    this.id = id;
    this.path = `/api/sessions/${encodeURIComponent(id)}`;
    this.here = `/sessions/${encodeURIComponent(id)}`;
    this.name = h("p.says");
    this.sums = h("div.sums");
    this.rows = h("ol.turns");
    this.more = h("button.quiet.earlier", { type: "button", hidden: true, onclick: () => this.older() }, "Show earlier");
    this.turns = [];
    this.node = h("div.page.wide.timeline", null,
      h("header.top", null, h("a.back.shown", { href: url(this.here), "data-link": true, "aria-label": "Back to the session" }, icon("back")), h("h1", null, "Timeline")),
      this.name, this.sums,
      h("p.key", null, Object.entries(KIND).map(([kind, name]) => h("span", null, h("i.bar-mark", { "data-kind": kind }), name))),
      this.more, this.rows);
  }

  open() { return (this.opened = this.look()); }

  async look() {
    const asked = this.asked = (this.asked || 0) + 1;
    const late = () => this.closed || asked !== this.asked; // somebody asked later, and knows more
    try {
      const info = await get(this.path); // what comes next is as new as this, or newer
      const page = await get(`${this.path}/timeline?limit=50&totals=true`);
      if (late()) return;
      this.info = info;
      this.name.textContent = titleOf(info);
      document.title = `Timeline · ${titleOf(info)} · Dragoman`;
      this.totals(page.totals);
      const [first] = page.turns;
      const known = first && this.turns.some((one) => one.seq >= first.seq) ? this.turns.filter((one) => one.seq < first.seq) : [];
      this.draw([...known, ...page.turns].slice(-MOST), known.length ? !this.more.hidden : page.more);
    } catch (problem) { if (!late() && !this.info) fill(this.sums, h("p.calm", null, problem.message)); }
  }

  async older() {
    const before = this.turns[0].seq;
    this.more.disabled = true;
    try {
      const page = await get(`${this.path}/timeline?limit=50&before=${before}`);
      if (this.turns[0].seq === before) this.draw([...page.turns, ...this.turns].slice(0, MOST), page.more);
    } catch (problem) { toast(problem.message, true); }
    this.more.disabled = false;
  }

  draw(turns, more) {
    this.turns = turns;
    this.more.hidden = !more || turns.length >= MOST;
    fill(this.rows, this.turns.map((one) => this.turn(one)));
    if (!this.turns.length) fill(this.rows, h("li.calm", null, "Nothing happened yet."));
  }

  totals(sums) {
    const tools = Object.entries(sums.tools || {}).sort((a, b) => b[1] - a[1]);
    const all = sums.model + sums.wait + tools.reduce((sum, [, ms]) => sum + ms, 0) || 1;
    const part = (kind, name, ms) => { const node = h("span.share", { "data-kind": kind, title: `${name}: ${span(ms)}` }); node.style.width = `${(ms / all) * 100}%`; return node; };
    fill(this.sums,
      h("p.figures", null, [many(sums.turns, "turn"), many(sums.calls, "model call"), `${count(sums.tokens_in)} in, ${count(sums.tokens_out)} out`, money(sums.cost)].filter(Boolean).join(" · ")),
      h("div.shares", { role: "img", "aria-label": `Model ${span(sums.model)}, tools ${span(tools.reduce((sum, [, ms]) => sum + ms, 0))}, waiting ${span(sums.wait)}` }, part("model", "Model", sums.model), tools.map(([name, ms]) => part("tool", name, ms)), part("wait", "Waiting for you", sums.wait)),
      h("dl.where", null, h("div", null, h("dt", null, "Model"), h("dd", null, span(sums.model))), tools.slice(0, 12).map(([name, ms]) => h("div", null, h("dt", null, h("bdi", null, name)), h("dd", null, span(ms)))), h("div", null, h("dt", null, "Waiting for you"), h("dd", null, span(sums.wait)))));
  }

  turn(one) {
    const ended = one.ended ?? Date.now();
    const long = Math.max(1, ended - one.began);
    const lane = h("div.lane", { role: "list", "aria-label": "Steps" }, (one.bars || []).map((bar) => {
      const from = Math.max(0, bar.began - one.began), wide = Math.max(0, (bar.ended ?? ended) - bar.began);
      const words = [`${KIND[bar.kind]}: ${bar.name}`, span(wide), bar.tokens ? `${count(bar.tokens)} tokens` : "", money(bar.cost), bar.outcome && !["done", "end_turn", "tool_use", "allow"].includes(bar.outcome) ? bar.outcome : ""].filter(Boolean).join(", ");
      const node = h("div.bar-row", { role: "listitem" }, h("span.bar-name", null, h("bdi", null, bar.name)), h("span.track", null, h("i", { "data-kind": bar.kind, "data-bad": ["failed", "denied", "unknown", "error"].includes(bar.outcome) ? "" : null, title: words })), h("span.took", null, span(wide)));
      const fill = node.querySelector("i");
      fill.style.left = `${Math.min(99.6, (from / long) * 100)}%`;
      fill.style.width = `${Math.max(0.4, Math.min(100 - (from / long) * 100, (wide / long) * 100))}%`;
      return node;
    }));
    return h("li.turn", { "data-outcome": one.outcome || "open" },
      h("div.turn-head", null, h("a.turn-name", { href: url(`${this.here}#m${one.seq}`), "data-link": true }, h("bdi", null, visible(one.title || "") || "(no words)")), h("span.took", null, [one.ended ? span(long) : "running", (one.tokens_in || one.tokens_out) ? `${count((one.tokens_in || 0) + (one.tokens_out || 0))} tokens` : "", money(one.cost), one.outcome && one.outcome !== "completed" ? one.outcome : ""].filter(Boolean).join(" · "))), lane);
  }

  event() { /* one session's own stream is not open here */ }
  update(id) { if (id === this.id) { clearTimeout(this.timer); this.timer = setTimeout(() => this.open(), 1000); } }

  // The stream is open: what came before it, and after what was read.
  async connected() {
    await this.opened;
    const info = await get(this.path).catch(() => null);
    if (info && !this.closed && info.last_seq !== this.info?.last_seq) this.open();
  }

  close() { this.closed = true; clearTimeout(this.timer); }
}
