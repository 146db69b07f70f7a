// One session: its transcript as it grows, the place to write to it, and what belongs to it.
import { del, get, patch, post, url } from "./api.js";
import { count, fill, folder, h, icon, money, titleOf, toast } from "./dom.js";
import { answer } from "./approvals.js";
import { allModels, fillModels, modes } from "./choices.js";
import { Composer } from "./composer.js";
import { confirmed, turnsDialog } from "./dialogs.js";
import { Panel } from "./panel.js";
import { Transcript } from "./transcript.js";

const ACTIVE = new Set(["running", "starting", "waiting_input", "interrupting"]);

export class SessionPage {
  constructor(app, id) {
    this.app = app;
    this.id = id;
    this.path = `/api/sessions/${encodeURIComponent(id)}`;
    this.ownStream = true;
    this.models = [];
    this.build();
  }

  build() {
    const here = `/sessions/${encodeURIComponent(this.id)}`;
    this.title = h("h1.title", { tabindex: "0", title: "Rename", onclick: () => this.rename(), onkeydown: (event) => { if (event.key === "Enter") this.rename(); } });
    this.facts = h("div.facts");
    this.mode = h("select.mode", { "aria-label": "Mode", title: "Mode", onchange: () => this.change({ mode: this.mode.value }) });
    this.model = h("select.model", { "aria-label": "Model", title: "Model", onchange: () => this.change({ model: this.model.value }) });
    this.gauge = h("span.gauge", { role: "meter", "aria-label": "Context", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "0", hidden: true }, h("i"));
    this.filled = h("span.filled", { "aria-hidden": "true", hidden: true });
    this.more = h("button.quiet.earlier", { type: "button", hidden: true, onclick: () => this.talk.older() }, "Show earlier");
    this.log = h("div.talk", { role: "log", "aria-label": "Conversation" });
    this.work = h("div.work", { hidden: true }, h("span.dots", null, h("i"), h("i"), h("i")), h("span", null, "working"));
    this.last = h("p.notice", { role: "status", hidden: true });
    this.stop = h("button.round.stop", { type: "button", title: "Stop (x)", "aria-label": "Stop", hidden: true, onclick: () => this.cancel() }, icon("stop"));
    this.hint = h("span.hint");
    this.composer = new Composer({ placeholder: "Write to the agent", label: "Message to the agent", cwd: () => this.info?.cwd || "", send: (body) => this.submit(body), extra: [this.stop] });
    this.composer.node.classList.add("composer");
    this.composer.node.append(h("div.options", null, this.mode, this.model, this.gauge, this.filled, h("span.room"), this.hint));
    const item = (name, act, kind = "") => h(`button${kind}`, { type: "button", onclick: () => { menu.open = false; act(); } }, name);
    const file = (name, form) => h("a", { href: url(`${this.path}/export?format=${form}`), download: "", onclick: () => { menu.open = false; } }, name);
    const menu = h("details.menu", null, h("summary", { "aria-label": "More" }, "⋯"), h("div", null,
      item("Jump to a turn", () => this.turns()), item("Fork", () => this.fork()), file("Export as HTML", "html"), file("Export as Markdown", "markdown"), file("Export as JSON", "json"),
      item("Archive", () => this.archive()), item("Delete", () => this.remove(), ".danger")));
    this.panel = new Panel(this);
    this.scroll = h("div.scroll", { tabindex: "-1" }, h("div.column", null, this.more, this.log, this.work, this.last));
    this.jump = h("button.jump", { type: "button", hidden: true, onclick: () => this.newest() }, "Newest");
    this.talk = new Transcript(this.id, this.scroll, this.log, () => this.moved(), () => this.listen());
    this.node = h("div.session-page", null,
      h("div.middle", null,
        h("header.bar", null, h("a.back", { href: url("/sessions"), "data-link": true, "aria-label": "Back" }, icon("back")), h("div.names", null, this.title, this.facts),
          h("a.tool-link", { href: url(`${here}/timeline`), "data-link": true, title: "Timeline" }, icon("bars"), h("span", null, "Timeline")),
          this.panel.button, menu),
        this.scroll, this.jump, this.composer.node),
      this.panel.node);
  }

  open() { return (this.opened = this.look()); }

  async look() {
    try {
      this.info = await get(this.path);
      this.app.know(this.info);
      this.loaded = true;
      this.header();
      const at = Number(location.hash.match(/^#m(\d+)$/)?.[1] || 0);
      if (at) await this.talk.openAt(at, this.info.last_seq); else await this.talk.openEnd(this.info.last_seq);
    } catch (problem) {
      if (this.closed) return;
      fill(this.log, h("p.calm", null, problem.message));
      this.away = problem.status === 0;  // not reached: once more when the stream is back
      this.app.live.open(() => "");
      return;
    }
    if (this.closed) return;
    if (!this.talk.atEnd) this.listen();
    if (matchMedia("(min-width: 800px)").matches && !location.hash) this.composer.input.focus();
    allModels().then((rows) => { this.models = rows; this.modelKey = ""; this.header(); }).catch(() => {});
    this.panel.open();
  }

  // What happens after the newest event that is known of.
  listen() { if (!this.closed) this.app.live.open(() => `session=${encodeURIComponent(this.id)}&since=${this.talk.seq}`); }

  // The stream is open: what changed between the first look and now.
  connected() {
    if (this.away) { this.away = false; this.open(); return; }
    if (!this.loaded) return;
    this.talk.again();
    this.later();
    get(this.path).then((info) => { if (!this.closed && info.last_seq >= this.info.last_seq) { this.info = info; this.app.know(info); this.later(); } }).catch(() => {});
  }

  close() { this.closed = true; cancelAnimationFrame(this.frame); }

  moved() {
    this.more.hidden = !this.talk.hasOlder;
    this.more.disabled = this.talk.busy;
    this.jump.hidden = this.talk.atEnd && this.talk.near();
  }

  async newest() {
    if (this.talk.atEnd) { this.talk.toEnd(); return; }
    try { await this.talk.openEnd((await get(this.path)).last_seq); } catch (problem) { toast(problem.message, true); }
  }

  goto(seq) {
    history.replaceState(null, "", `${location.pathname}#m${seq}`);
    this.talk.openAt(seq, this.info.last_seq).catch((problem) => toast(problem.message, true));
  }

  event(event) {
    if (event.session !== this.id) return;
    this.talk.take(event);
    if (["turn_ended", "noted"].includes(event.body.type)) this.panel.refresh();
    if (event.body.type === "planned") this.panel.plan(event.body.entries);
    this.later();
  }

  update(id, one) {
    if (id === this.id && one === null) { this.lost("This session was deleted."); return; }
    if (id && id !== this.id) { if (this.app.known(id)?.parent === this.id) this.panel.refresh(); return; }
    const fresh = this.app.known(this.id);
    if (!fresh || !this.info) return;
    this.info = { ...this.info, ...fresh, extra: this.info.extra };
    if (document.hidden) this.header(); else this.later(); // a hidden page has no frames, but a title
  }

  // It is not told of any more, here or at all: all else goes on.
  lost(why) {
    this.last.textContent = why;
    this.last.hidden = false;
    this.app.live.open(() => "");
  }

  // Gone, or with another process. What else is refused is asked for again, ever more seldom.
  refused(problem) { if (this.loaded && !this.closed && this.last.hidden && [404, 409].includes(problem.status)) this.lost(problem.message); }

  later() {
    if (this.frame || this.closed) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.header(); this.talk.paint(); });
  }

  // --- drawing ---

  header() {
    const info = this.info;
    if (!info) return;
    const waits = this.app.waits(this.id);
    const busy = ACTIVE.has(info.status);
    const failed = !busy && (info.status === "failed" || info.error);
    this.title.textContent = titleOf(info);
    const others = [...new Set(this.talk.present.map((who) => who.name || who.dialect))].filter((name) => name !== "dashboard");
    const state = waits ? "waiting_input" : failed ? "failed" : info.status;
    fill(this.facts,
      h("span.status", { "data-status": state, title: failed ? info.error || "" : "" }, { waiting_input: "needs you", failed: "failed" }[state] || state.replace("_", " ")),
      h("span", { title: info.cwd }, h("bdi", null, folder(info.cwd))), h("span", null, info.agent),
      info.cost ? h("span", { title: `${count(info.usage.input)} in, ${count(info.usage.output)} out` }, money(info.cost)) : null,
      info.parent ? h("a", { href: url(`/sessions/${encodeURIComponent(info.parent)}`), "data-link": true }, "of another session") : null,
      others.length ? h("span", { title: "Also here" }, `with ${others.join(", ")}`) : null);
    const known = modes(this.app).map(([value, name]) => [value, name.split(":")[0]]);
    if (this.mode.options.length !== known.length) fill(this.mode, known.map(([value, name]) => h("option", { value }, name)));
    if (document.activeElement !== this.mode) this.mode.value = info.mode;
    const key = `${info.model}|${this.models.length}`;
    if (this.modelKey !== key) { this.modelKey = key; fillModels(this.model, this.models, info.model); }
    this.context();
    this.work.hidden = !busy || waits;
    this.stop.hidden = !busy;
    this.composer.input.placeholder = busy ? "Steer the turn" : "Write to the agent";
    this.hint.textContent = busy ? "Enter steers the turn" : "";
    document.title = `${waits ? "● " : ""}${titleOf(info)} · Dragoman`;
  }

  context() {
    const model = this.models.find((one) => one.ref === this.info.model);
    const used = Object.entries(this.info.last_usage || {}).reduce((sum, [name, value]) => sum + (name === "reasoning" ? 0 : value), 0);
    this.gauge.hidden = this.filled.hidden = !model || !used;
    if (this.gauge.hidden) return;
    const part = Math.min(100, Math.round((used / model.context_window) * 100));
    this.gauge.firstChild.style.width = `${part}%`;
    this.gauge.dataset.full = part > 80 ? "high" : part > 60 ? "some" : "";
    this.gauge.setAttribute("aria-valuenow", String(part));
    this.filled.textContent = `${part} %`;
    this.gauge.title = this.filled.title = `Context: ${count(used)} of ${count(model.context_window)} tokens (${part} %)`;
  }

  // --- acting ---

  async submit(body) {
    await this.opened; // Enter may be quicker than the first look
    if (!this.info) throw new Error("The session could not be read: nothing was sent.");
    if (!this.talk.atEnd) await this.newest();
    this.talk.toEnd();
    if (ACTIVE.has(this.info.status) && body.text) {
      try { await post(`${this.path}/steer`, { text: body.text }); return; }
      catch (problem) { if (problem.status !== 409) throw problem; }
    }
    await post(`${this.path}/prompt`, { ...body, wait: false });
  }

  async change(body) {
    try { this.info = await patch(this.path, body); }
    catch (problem) { toast(problem.message, true); }
    this.modelKey = "";
    this.header();
  }

  async cancel() {
    try { await post(`${this.path}/cancel`); }
    catch (problem) { if (problem.status !== 409) toast(problem.message, true); }
  }

  rename() {
    const input = h("input.rename", { value: this.info.title || titleOf(this.info), "aria-label": "Title" });
    let over = false; // taking the input away blurs it, which would end it twice
    const done = (save) => { if (over) return; over = true; input.replaceWith(this.title); if (save && input.value !== this.info.title) this.change({ title: input.value }); };
    input.addEventListener("blur", () => done(true));
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") done(true); if (event.key === "Escape") done(false); });
    this.title.replaceWith(input);
    input.select();
  }

  async fork() {
    try { const made = await post(`${this.path}/fork`); this.app.know(made); this.app.go(`/sessions/${encodeURIComponent(made.id)}`); }
    catch (problem) { toast(problem.message, true); }
  }

  async archive() {
    await this.change({ archived: true });
    this.app.forgetSession(this.id);
    this.app.go("/");
  }

  async remove() {
    if (!(await confirmed("Delete this session?", "Its whole history goes with it. This cannot be undone.", "Delete"))) return;
    try { await del(this.path); this.app.forgetSession(this.id); this.app.go("/"); }
    catch (problem) { toast(problem.message, true); }
  }

  turns() { turnsDialog(this); }

  // To the turn before or after what is at the top of the screen.
  step(by) {
    const top = this.scroll.getBoundingClientRect().top + 20;
    const turns = [...this.log.querySelectorAll("[data-turn]")];
    const next = by > 0 ? turns.find((node) => node.getBoundingClientRect().top > top + 4) : turns.reverse().find((node) => node.getBoundingClientRect().top < top - 4);
    if (next) this.scroll.scrollTop += next.getBoundingClientRect().top - top;
    else if (by < 0) this.talk.older();
  }

  key(key) {
    const ask = [...this.app.asks.values()].find((one) => one.session === this.id && one.kind !== "question");
    const acts = {
      i: () => this.composer.input.focus(), x: () => this.cancel(), t: () => this.turns(), p: () => this.panel.toggle(), "[": () => this.step(-1), "]": () => this.step(1),
      l: () => this.app.go(`/sessions/${encodeURIComponent(this.id)}/timeline`),
      ...(ask ? { a: () => answer(ask, "allow"), d: () => answer(ask, "deny") } : {}),
    };
    acts[key]?.();
    return key in acts;
  }
}
