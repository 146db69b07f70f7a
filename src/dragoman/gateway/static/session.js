// One session: its transcript as it grows, and the place to write to it.
import { del, get, patch, post, url } from "./api.js";
import { clock, count, fill, folder, h, icon, money, titleOf, toast } from "./dom.js";
import { Talk } from "./fold.js";
import { answer, question } from "./approvals.js";
import { choice, confirmed } from "./dialogs.js";
import { Prose, prose } from "./prose.js";
import { block, diff, terminal } from "./text.js";

const PAGE = 400;
const ACTIVE = new Set(["running", "starting", "waiting_input", "interrupting"]);
const KINDS = { read: "read", ls: "read", glob: "search", grep: "search", write: "edit", edit: "edit", bash: "execute", shell: "execute", plan: "plan", ask_user: "hand" };

export class SessionPage {
  constructor(app, id) {
    this.app = app;
    this.id = id;
    this.talk = new Talk();
    this.nodes = new Map();
    this.kept = [];
    this.passing = [];
    this.ownStream = true;
    this.models = null;
    this.build();
  }

  build() {
    this.title = h("h1.title", { tabindex: "0", title: "Rename", onclick: () => this.rename(), onkeydown: (event) => { if (event.key === "Enter") this.rename(); } });
    this.facts = h("div.facts");
    this.mode = choice([["readonly", "Read only"], ["supervised", "Supervised"], ["full", "Full"]], "supervised", { "aria-label": "Mode", title: "Mode", onchange: () => this.change({ mode: this.mode.value }) });
    this.model = h("select.model", { "aria-label": "Model", title: "Model", onchange: () => this.change({ model: this.model.value }) });
    this.more = h("button.quiet.earlier", { type: "button", hidden: true, onclick: () => this.earlier() }, "Show earlier");
    this.log = h("div.talk", { role: "log", "aria-label": "Conversation" });
    this.work = h("div.work", { hidden: true }, h("span.dots", null, h("i"), h("i"), h("i")), h("span", null, "working"));
    this.input = h("textarea", { rows: "1", "aria-label": "Message to the agent", placeholder: "Write to the agent", onkeydown: (event) => this.typed(event), oninput: () => this.grow() });
    this.send = h("button.primary.round", { type: "submit", title: "Send", "aria-label": "Send" }, icon("send"));
    this.stop = h("button.round.stop", { type: "button", title: "Stop (x)", "aria-label": "Stop", hidden: true, onclick: () => this.cancel() }, icon("stop"));
    this.hint = h("span.hint");
    const menu = h("details.menu", null, h("summary", { "aria-label": "More" }, "⋯"), h("div", null,
      h("button", { type: "button", onclick: () => this.fork() }, "Fork"),
      h("button", { type: "button", onclick: () => this.archive() }, "Archive"),
      h("button.danger", { type: "button", onclick: () => this.remove() }, "Delete")));
    this.scroll = h("div.scroll", null, h("div.column", null, this.more, this.log, this.work));
    this.jump = h("button.jump", { type: "button", hidden: true, onclick: () => this.toEnd() }, "Newest");
    this.scroll.addEventListener("scroll", () => { this.follow = this.near(); if (this.follow) this.jump.hidden = true; });
    this.follow = true;
    this.node = h("div.session-page", null,
      h("header.bar", null, h("a.back", { href: url("/"), "data-link": true, "aria-label": "Back" }, icon("back")), h("div.names", null, this.title, this.facts), menu),
      this.scroll, this.jump,
      h("form.composer", { onsubmit: (event) => { event.preventDefault(); this.submit(); } },
        h("div.write", null, this.input, this.stop, this.send),
        h("div.options", null, this.mode, this.model, h("span.room"), this.hint)));
  }

  async open() {
    try {
      this.info = await get(`/api/sessions/${encodeURIComponent(this.id)}`);
      const after = Math.max(0, this.info.last_seq - PAGE);
      const events = await get(`/api/sessions/${encodeURIComponent(this.id)}/events?after=${after}&limit=1000`);
      this.more.hidden = after === 0;
      for (const event of events) { this.remember(event); this.talk.take(event); }
    } catch (problem) {
      fill(this.log, h("p.calm", null, problem.message));
      this.app.live.open(() => "");
      return;
    }
    if (this.closed) return;
    this.app.sessions.set(this.id, this.info);
    this.app.changed(this.id);
    this.paint();
    this.toEnd();
    this.app.live.open(() => `session=${encodeURIComponent(this.id)}&since=${this.talk.seq}`);
    if (matchMedia("(min-width: 800px)").matches) this.input.focus();
    get("/api/models").then((rows) => { this.models = rows; this.header(); }).catch(() => {});
  }

  close() { this.closed = true; cancelAnimationFrame(this.frame); }

  async earlier() {
    if (!this.kept.length) return;
    const first = this.kept[0].seq;
    const after = Math.max(0, first - 1 - PAGE);
    this.more.disabled = true;
    let older = [];
    try { older = await get(`/api/sessions/${encodeURIComponent(this.id)}/events?after=${after}&limit=${first - 1 - after}`); }
    catch (problem) { toast(problem.message, true); return; }
    finally { this.more.disabled = false; }
    const below = this.scroll.scrollHeight - this.scroll.scrollTop;
    this.kept = [...older, ...this.kept];
    this.talk = new Talk();
    this.nodes.clear();
    this.log.replaceChildren();
    for (const event of [...this.kept, ...this.passing]) this.talk.take(event);
    this.more.hidden = after === 0;
    this.follow = false;
    this.paint();
    this.jump.hidden = true;
    this.scroll.scrollTop = this.scroll.scrollHeight - below;
  }

  // What was told, so that it can be told again below older pages; deltas until they are kept.
  remember(event) {
    if (!event.seq) { this.passing.push(event); return; }
    if (event.body.type === "spoke" || event.body.type === "turn_ended") this.passing = [];
    this.kept.push(event);
  }

  event(event) {
    if (event.session !== this.id) return;
    this.remember(event);
    this.talk.take(event);
    this.later();
  }

  update(id) {
    if (id && id !== this.id) return;
    const fresh = this.app.sessions.get(this.id);
    if (fresh && this.info) { this.info = fresh; this.later(); }
  }

  later() {
    if (this.frame || this.closed) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.paint(); });
  }

  // --- drawing ---

  paint() {
    this.header();
    const dirty = this.talk.dirty;
    this.talk.dirty = new Set();
    for (const item of dirty) {
      const old = this.nodes.get(item.key);
      if (item.gone) { old?.remove(); this.nodes.delete(item.key); continue; }
      const made = draw(item, old);
      if (made === old) continue;
      if (old) { old.replaceWith(made); } else { this.log.append(made); }
      this.nodes.set(item.key, made);
    }
    if (this.follow) this.scroll.scrollTop = this.scroll.scrollHeight;
    else if (dirty.size) this.jump.hidden = false;
  }

  header() {
    const info = this.info;
    if (!info) return;
    const waits = [...this.app.asks.values()].some((ask) => ask.session === this.id);
    const busy = ACTIVE.has(info.status);
    this.title.textContent = titleOf(info);
    const others = [...new Set(this.talk.present.map((who) => who.name || who.dialect))].filter((name) => name !== "dashboard");
    fill(this.facts,
      h("span.status", { "data-status": waits ? "waiting_input" : info.status }, waits ? "needs you" : info.status.replace("_", " ")),
      h("span", { title: info.cwd }, folder(info.cwd)), h("span", null, info.agent),
      info.cost ? h("span", { title: `${count(info.usage.input)} in, ${count(info.usage.output)} out` }, money(info.cost)) : null,
      others.length ? h("span", { title: "Also here" }, `with ${others.join(", ")}`) : null);
    if (document.activeElement !== this.mode) this.mode.value = info.mode;
    const models = this.models || [];
    const key = `${info.model}|${models.length}`;
    if (this.modelKey !== key) {
      this.modelKey = key;
      const refs = models.map((one) => [one.ref, one.name || one.ref]);
      if (!refs.some(([ref]) => ref === info.model)) refs.unshift([info.model, info.model]);
      fill(this.model, refs.slice(0, 500).map(([ref, name]) => h("option", { value: ref, selected: ref === info.model }, name)));
      this.model.value = info.model;
    }
    this.work.hidden = !busy || waits;
    this.stop.hidden = !busy;
    this.input.placeholder = busy ? "Say something into the running turn" : "Write to the agent";
    this.hint.textContent = busy ? "Enter steers the turn" : "";
    document.title = `${waits ? "● " : ""}${titleOf(info)} · Dragoman`;
  }

  near() { return this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight < 120; }
  toEnd() { this.follow = true; this.jump.hidden = true; this.scroll.scrollTop = this.scroll.scrollHeight; }

  grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, 260)}px`;
  }

  // --- acting ---

  typed(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); this.submit(); }
  }

  async submit() {
    const text = this.input.value;
    if (!text.trim() || !this.info) return;
    const path = `/api/sessions/${encodeURIComponent(this.id)}`;
    this.input.value = "";
    this.grow();
    this.toEnd();
    try {
      if (ACTIVE.has(this.info.status)) {
        try { await post(`${path}/steer`, { text }); return; }
        catch (problem) { if (problem.status !== 409) throw problem; }
      }
      await post(`${path}/prompt`, { text, wait: false });
    } catch (problem) { this.input.value = text; this.grow(); toast(problem.message, true); }
  }

  async change(body) {
    try { this.info = await patch(`/api/sessions/${encodeURIComponent(this.id)}`, body); }
    catch (problem) { toast(problem.message, true); }
    this.modelKey = "";
    this.header();
  }

  async cancel() {
    try { await post(`/api/sessions/${encodeURIComponent(this.id)}/cancel`); }
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
    try { const made = await post(`/api/sessions/${encodeURIComponent(this.id)}/fork`); this.app.sessions.set(made.id, made); this.app.go(`/sessions/${made.id}`); }
    catch (problem) { toast(problem.message, true); }
  }

  async archive() {
    await this.change({ archived: true });
    this.app.go("/");
  }

  async remove() {
    if (!(await confirmed("Delete this session?", "Its whole history goes with it. This cannot be undone.", "Delete"))) return;
    try { await del(`/api/sessions/${encodeURIComponent(this.id)}`); this.app.sessions.delete(this.id); this.app.go("/"); }
    catch (problem) { toast(problem.message, true); }
  }

  key(key) {
    const ask = [...this.app.asks.values()].find((one) => one.session === this.id && one.kind !== "question");
    if (key === "i") this.input.focus();
    else if (key === "a" && ask) answer(ask, "allow");
    else if (key === "d" && ask) answer(ask, "deny");
    else if (key === "x") this.cancel();
    else return false;
    return true;
  }
}

// --- one thing of the transcript ---

function draw(item, old) {
  switch (item.kind) {
    case "user": return h("div.said.user", null, by(item), content(item.content));
    case "text": return said(item, old);
    case "thinking": return thinking(item, old);
    case "call": return call(item, old);
    case "ask": return ask(item);
    case "plan": return h("div.plan", null, h("div.head", null, icon("plan"), h("span", null, "Plan")), h("ul", null, item.entries.map((one) => h("li", { "data-status": one.status }, one.content))));
    default: return h("div.note", { "data-level": item.level }, item.more ? h("details", null, h("summary", null, item.text), prose(item.more)) : item.text);
  }
}

function said(item, old) {
  const node = old ?? h("div.said.agent");
  if (!node.prose) { node.prose = new Prose(); node.append(node.prose.node); }
  node.prose.set(item.text, Boolean(item.draft));
  return node;
}

function by(item) {
  const who = item.by ? item.by.name || (item.by.dialect === "dashboard" ? "" : item.by.dialect) : "";
  const words = [item.steer ? "into the turn" : "", who ? `from ${who}` : ""].filter(Boolean).join(", ");
  return words ? h("span.by", { title: item.at ? clock(item.at) : "" }, words) : null;
}

function content(blocks) {
  return blocks.map((one) => one.type === "image"
    ? h("img.picture", { src: `data:${/^image\/[\w.+-]+$/.test(one.mime_type) ? one.mime_type : "image/png"};base64,${one.data}`, alt: "Picture" })
    : h("div.plain", null, one.text));
}

function thinking(item, old) {
  if (old && item.draft) { old.lastChild.textContent = item.text; return old; }
  return h("details.thinking", { open: Boolean(item.draft) || (old?.open ?? false) }, h("summary", null, icon("think"), item.draft ? "Thinking…" : "Thought"), h("div.plain", null, item.text));
}

const STATES = { planned: "", running: "running", done: "", failed: "failed", denied: "denied", cancelled: "cancelled", unknown: "unknown" };

function subject(item) {
  const args = item.args || {};
  return String(args.command ?? args.path ?? args.file_path ?? args.pattern ?? args.query ?? args.url ?? args.question ?? item.ask?.summary ?? "").split("\n")[0];
}

function call(item, old) {
  const kind = KINDS[item.name] || "other";
  const waits = item.ask && !item.settled;
  const changes = item.detail?.diffs || [];
  const wide = kind === "execute";
  const text = terminal(item.output || "");
  const fresh = item.state === "running" || item.state === "failed" || waits || changes.length > 0 || item.ask?.kind === "question" || (wide && text.split("\n").length <= 12);
  const shown = old?.dataset.touched ? old.open : fresh;
  const state = waits ? "needs you" : STATES[item.state];
  const body = [];
  if (item.args === null && item.raw) body.push(block(item.raw, "arguments"));
  else if (item.draft && item.raw) body.push(h("pre.raw", null, item.raw.slice(-2000)));
  if (waits) body.push(h("div.ask.inline", { "data-ask": item.ask.id }, question(item.ask)));
  changes.forEach((one) => body.push(diff(one)));
  if (!changes.length || item.state === "failed") {
    if (wide && item.args?.command) {
      const line = `$ ${item.args.command}`; // our own shell tool says it itself, others do not
      const rest = text.startsWith(line) ? text.slice(line.length).replace(/^\n+/, "") : text;
      body.push(h("pre.term", { tabindex: "0" }, h("span.cmd", null, line), rest ? `\n${cut(rest)}` : ""));
    }
    else if (text) body.push(h("pre.term", { tabindex: "0" }, cut(text)));
  }
  if (item.images?.length) body.push(content(item.images));
  if (item.detail?.exit_code && !text.includes(`[exit ${item.detail.exit_code}]`)) body.push(h("p.exit", null, `exit ${item.detail.exit_code}`));
  if (item.settled) body.push(h("p.settled", null, settledWords(item.settled)));
  if (item.why) body.push(h("p.settled.rule", null, `Allowed by ${item.why}`));
  if (!body.length && item.args && Object.keys(item.args).length) body.push(block(JSON.stringify(item.args, null, 2)));
  const node = h("details.call", { open: shown, "data-state": waits ? "waits" : item.state },
    h("summary", null, icon(kind), h("span.tool", null, item.name), h("span.subject", null, subject(item)), state ? h("span.pill", null, state) : null), body);
  node.hidden = item.name === "plan" && item.state === "done"; // the plan itself is shown
  if (old?.dataset.touched) node.dataset.touched = "1";
  node.querySelector("summary").addEventListener("click", () => { node.dataset.touched = "1"; });
  const term = node.querySelector("pre.term");
  if (term && item.state === "running") requestAnimationFrame(() => { term.scrollTop = term.scrollHeight; });
  return node;
}

function ask(item) {
  return h("div.ask.inline", { "data-ask": item.ask.id }, item.settled ? [h("strong", null, item.ask.title), h("p.settled", null, settledWords(item.settled))] : question(item.ask));
}

function settledWords(settled) {
  const words = { allow: "Allowed", allow_always: "Always allowed", deny: "Denied", deny_always: "Always denied", edit: "Answered instead", answer: "Answered", cancelled: "Withdrawn", expired: "Expired" }[settled.verdict] || settled.verdict;
  const by = settled.by;
  const who = by ? (by.dialect === "dashboard" ? by.name : [by.name || by.peer || by.id, by.dialect].filter(Boolean).join(" over ")) : "";
  return [words, who ? `by ${who}` : by ? "here" : "", settled.text && settled.verdict === "answer" ? `“${settled.text}”` : "", settled.comment ? `“${settled.comment}”` : "", settled.scope ? `(remembered: ${settled.scope})` : ""].filter(Boolean).join(" ");
}

function cut(text) {
  const lines = text.split("\n");
  return lines.length > 400 ? [...lines.slice(0, 100), `… ${lines.length - 300} lines …`, ...lines.slice(-200)].join("\n") : text;
}
