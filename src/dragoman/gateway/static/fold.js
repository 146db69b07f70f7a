// Events of one session become a list of things to show. No page is touched here.

import { many } from "./dom.js";

export class Talk {
  constructor() {
    this.items = [];
    this.calls = new Map();
    this.asks = new Map();
    this.answers = new Map();
    this.seq = 0;
    this.present = [];
    this.plan = null;
    this.turn = "";
    this.status = "";
    this.first = 0;
    this.next = 0;
    this.at = 0; // the event that is being taken
    this.dirty = new Set();
  }

  add(item) {
    item.key = ++this.next;
    item.seq = this.at;
    this.items.push(item);
    this.dirty.add(item);
    return item;
  }

  touch(item) { (item.home || this).dirty.add(item); } // a call may have begun on another page

  take(event) {
    if (event.seq) {
      if (event.seq <= this.seq) return;
      this.seq = event.seq;
      if (!this.first) this.first = event.seq;
    }
    const body = event.body;
    this.at = event.seq || 0;
    this[`on_${body.type}`]?.(body, event.at);
  }

  // --- what people and models say ---

  on_turn_began(body, at) {
    this.turn = body.turn;
    this.dropDrafts();
    this.add({ kind: "user", content: body.content, by: body.by, at });
  }

  on_steered(body, at) {
    this.add({ kind: "user", content: body.content, by: body.by, at, steer: true });
  }

  on_seeded(body, at) {
    this.add({ kind: "note", level: "info", text: `Continues an earlier session (${many(body.messages.length, "message")}).`, at });
  }

  draft(kind) {
    const last = this.items[this.items.length - 1];
    if (last && last.draft && last.kind === kind) return last;
    return this.add({ kind, text: "", draft: true });
  }

  on_queued(body, at) { if (!body.steers) this.add({ kind: "note", level: "info", text: "Waits until the turn before it is over.", at }); }

  on_text_delta(body) {
    const item = this.draft("text");
    item.text += body.text;
    this.touch(item);
  }

  on_thought_delta(body) {
    const item = this.draft("thinking");
    item.text += body.text;
    this.touch(item);
  }

  on_call_drafted(body) { this.call(body.call_id, body.name, { draft: true }); }

  on_call_args(body) {
    const item = this.calls.get(body.call_id);
    if (item) { item.raw = (item.raw || "") + body.fragment; this.touch(item); }
  }

  dropDrafts() {
    this.items = this.items.filter((item) => {
      if (!item.draft) return true;
      item.gone = true;
      this.touch(item);
      if (item.kind === "call") this.calls.delete(item.id);
      return false;
    });
  }

  // What is streamed is told from its beginning once more.
  again() {
    this.dropDrafts();
    for (const item of this.calls.values()) if (item.state === "running") { item.output = ""; this.touch(item); }
  }

  on_retrying(body) {
    this.dropDrafts();
    this.add({ kind: "note", level: "warning", draft: true, text: `The model is asked again (try ${body.attempt}): ${body.reason}` });
  }

  on_spoke(body, at) {
    this.dropDrafts();
    for (const block of body.content) {
      if (block.type === "text" && block.text) this.add({ kind: "text", text: block.text, at });
      else if (block.type === "thinking" && block.text) this.add({ kind: "thinking", text: block.text, at });
      else if (block.type === "tool_call") this.call(block.id, block.name, { args: block.args, raw: block.raw, headless: false });
    }
    if (body.error && body.stop !== "aborted") this.add({ kind: "note", level: "error", text: body.error, at });
  }

  // --- tools ---

  call(id, name, more) {
    let item = this.calls.get(id);
    if (!item) {
      item = this.add({ kind: "call", id, name, output: "", state: "planned", headless: !more.draft && !("raw" in more) });
      this.calls.set(id, item);
    }
    Object.assign(item, more);
    this.touch(item);
    return item;
  }

  on_call_started(body) {
    const item = this.call(body.call_id, body.name, { state: "running" });
    if (body.args) item.args = body.args;
    if (body.why) item.why = body.why;
  }

  on_progress(body) {
    const item = this.calls.get(body.call_id);
    if (!item) return;
    item.output = (item.output + body.text).slice(-200000);
    this.touch(item);
  }

  on_call_ended(body) {
    const texts = (body.content || []).filter((b) => b.type === "text").map((b) => b.text).join("\n");
    this.call(body.call_id, body.name, {
      state: body.outcome, output: texts, images: (body.content || []).filter((b) => b.type === "image"),
      detail: body.detail, draft: false,
    });
  }

  // --- approvals ---

  on_asked(body) {
    const ask = body.ask;
    this.asks.set(ask.id, ask);
    const item = ask.call_id ? this.calls.get(ask.call_id) : null;
    if (item) { item.ask = ask; item.settled = null; this.touch(item); }
    else this.add({ kind: "ask", ask });
  }

  on_settled(body) {
    this.asks.delete(body.ask_id);
    this.answers.set(body.ask_id, body);
    for (const item of new Set([...this.items, ...this.calls.values()]))
      if (item.ask && item.ask.id === body.ask_id) { item.settled = body; this.touch(item); }
  }

  // --- the rest ---

  on_turn_ended(body, at) {
    this.turn = "";
    this.dropDrafts();
    for (const item of this.calls.values())
      if (item.state === "running" || item.state === "planned") { item.state = item.state === "running" ? "unknown" : "cancelled"; this.touch(item); }
    const last = this.items[this.items.length - 1];
    if (body.outcome === "failed" && last?.level === "error" && last.text === body.error) last.failed = true; // it was said already
    else if (body.outcome === "failed") this.add({ kind: "note", level: "error", text: body.error || "The turn failed.", at, failed: true });
    else if (body.outcome === "cancelled" || body.outcome === "interrupted")
      this.add({ kind: "note", level: "info", text: body.cause === "restart" || body.cause === "shutdown" ? "Interrupted: the host stopped." : "Stopped.", at });
  }

  on_planned(body) {
    if (!this.plan || !this.items.includes(this.plan)) this.plan = this.add({ kind: "plan", entries: [] });
    this.plan.entries = body.entries;
    this.touch(this.plan);
  }

  on_status(body) { this.status = body.new; }
  on_presence(body) { this.present = body.clients; }
  on_compacted(body, at) { this.add({ kind: "note", level: "info", text: "Earlier messages were replaced by a summary.", more: body.summary, at }); }
  on_cleared(body, at) { this.add({ kind: "note", level: "info", text: "The conversation was cleared.", at }); }
  on_model_set(body, at) { this.add({ kind: "note", level: "info", text: `Model: ${body.model}`, at }); }
  on_mode_set(body, at) { this.add({ kind: "note", level: "info", text: `Mode: ${body.mode}`, at }); }
  on_noted(body, at) { this.add({ kind: "note", level: body.level, text: body.text ? `${body.title}: ${body.text}` : body.title, at }); }
  on_lagged() { this.lagged = true; }
  on_deleted() { this.deleted = true; }
}
