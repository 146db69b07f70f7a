// What is shown of a session: a few pages of it, those around the reader. Older and newer ones come
// from the store as they are scrolled to, and the farthest go, so that no session is too long.
import { get } from "./api.js";
import { Talk } from "./fold.js";
import { draw } from "./items.js";
import { htmlOf } from "./prose.js";

const PAGE = 80; // events
const MOST = 7; // pages that are there at once
const LONG = 160; // things in the newest page, after which another one begins

class Part {
  constructor(first) {
    this.first = first; // the number of its first event
    this.last = first - 1;
    this.talk = new Talk();
    this.nodes = new Map();
    this.node = document.createElement("div");
    this.node.className = "part";
  }

  take(event) {
    if (event.seq) this.last = Math.max(this.last, event.seq);
    this.talk.take(event);
  }

  paint() {
    const dirty = this.talk.dirty;
    if (!dirty.size) return false;
    this.talk.dirty = new Set();
    for (const item of dirty) {
      const old = this.nodes.get(item.key);
      if (item.gone) { old?.remove(); this.nodes.delete(item.key); continue; }
      const made = draw(item, old);
      if (item.seq && !made.dataset.seq) made.dataset.seq = item.seq;
      if (made === old) continue;
      if (old) old.replaceWith(made); else this.node.append(made);
      this.nodes.set(item.key, made);
    }
    return true;
  }
}

export class Transcript {
  constructor(id, scroll, log, told) {
    this.path = `/api/sessions/${encodeURIComponent(id)}/events`;
    this.scroll = scroll;
    this.log = log;
    this.told = told; // what the page does when something changed
    this.parts = [];
    this.end = 0; // the newest event that is known of
    this.follow = true;
    this.present = [];
    this.busy = false;
    scroll.addEventListener("scroll", () => this.scrolled(), { passive: true });
  }

  get atEnd() { return !this.parts.length || this.parts[this.parts.length - 1].live; }
  get seq() { return this.end; }

  async part(first, count) {
    const made = new Part(first);
    if (count > 0) {
      const events = await get(`${this.path}?after=${first - 1}&limit=${count}`);
      for (const event of events) made.take(event);
    }
    const texts = made.talk.items.filter((item) => item.kind === "text" && !item.draft);
    const html = await htmlOf(texts.map((item) => item.text));
    texts.forEach((item, n) => { item.html = html[n]; });
    return made;
  }

  // --- where the reader is ---

  async openEnd(last) {
    this.end = Math.max(this.end, last);
    const first = Math.max(1, this.end - PAGE + 1);
    const made = await this.part(first, this.end - first + 1);
    made.live = true;
    this.end = Math.max(this.end, made.last);
    this.show([made]);
    this.toEnd();
    await this.fillScreen();
  }

  async openAt(seq, last) {
    this.end = Math.max(this.end, last);
    const first = Math.max(1, Math.min(seq - 15, this.end - PAGE + 1));
    const made = await this.part(first, Math.min(PAGE, this.end - first + 1));
    made.live = made.last >= this.end;
    this.show([made]);
    this.follow = false;
    const found = [...made.node.children].find((node) => Number(node.dataset.seq) >= seq) || made.node.lastElementChild;
    if (found) {
      found.scrollIntoView({ block: "start" });
      this.scroll.scrollTop -= 12;
      found.classList.add("found");
      setTimeout(() => found.classList.remove("found"), 2500);
    }
    await this.fillScreen();
  }

  show(parts) {
    this.parts = parts;
    this.log.replaceChildren(...parts.map((one) => one.node));
    for (const one of parts) one.paint();
    this.told();
  }

  async fillScreen() {
    while (this.hasOlder && this.scroll.scrollHeight < this.scroll.clientHeight * 2) if (!(await this.older())) break;
  }

  get hasOlder() { return this.parts.length > 0 && this.parts[0].first > 1; }
  near() { return this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight < 120; }
  toEnd() { this.follow = true; this.scroll.scrollTop = this.scroll.scrollHeight; this.told(); }

  scrolled() {
    this.follow = this.atEnd && this.near();
    this.told();
    if (this.scroll.scrollTop < 900) this.older();
    else if (!this.atEnd && this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight < 900) this.newer();
  }

  // What the reader looks at stays where it is, whatever comes above.
  keeping(change) {
    const top = this.scroll.getBoundingClientRect().top;
    let held = null;
    for (const part of this.parts) {
      if (part.node.getBoundingClientRect().bottom < top) continue;
      held = [...part.node.children].find((node) => node.getBoundingClientRect().bottom > top + 1) || null;
      if (held) break;
    }
    const before = held?.getBoundingClientRect().top;
    change();
    if (held?.isConnected) this.scroll.scrollTop += held.getBoundingClientRect().top - before;
  }

  async older() {
    if (this.busy || !this.hasOlder) return false;
    this.busy = true;
    this.told();
    try {
      const next = this.parts[0];
      const first = Math.max(1, next.first - PAGE);
      const made = await this.part(first, next.first - first);
      if (this.parts[0] !== next) return false;
      join(made, next);
      made.paint();
      this.keeping(() => {
        this.log.prepend(made.node);
        this.parts.unshift(made);
        for (const part of this.parts) part.paint();
      });
      while (this.parts.length > MOST) this.parts.pop().node.remove();
      requestAnimationFrame(() => { if (this.scroll.scrollTop < 300) this.older(); }); // the reader was quicker
      return true;
    } catch (problem) { console.error(problem); return false; } // scrolling asks again
    finally { this.busy = false; this.told(); }
  }

  async newer() {
    if (this.busy || this.atEnd) return;
    this.busy = true;
    try {
      const before = this.parts[this.parts.length - 1];
      const first = before.last + 1;
      const made = await this.part(first, Math.min(PAGE, Math.max(0, this.end - before.last)));
      if (this.parts[this.parts.length - 1] !== before) return;
      join(before, made);
      made.live = made.last >= this.end;
      made.paint();
      this.log.append(made.node);
      this.parts.push(made);
      for (const part of this.parts) part.paint();
      if (this.parts.length > MOST) this.keeping(() => { while (this.parts.length > MOST) this.parts.shift().node.remove(); });
    } finally { this.busy = false; this.told(); }
  }

  // --- what happens now ---

  take(event) {
    if (event.body.type === "presence") this.present = event.body.clients;
    if (event.seq) {
      if (event.seq <= this.end) return;
      this.end = event.seq;
    }
    let last = this.parts[this.parts.length - 1];
    if (!last?.live) return; // the reader is elsewhere; it is read from the store later
    last.take(event);
    if (event.body.type === "turn_ended" && last.talk.items.length > LONG) {
      const made = new Part(event.seq + 1);
      made.live = true;
      last.live = false;
      this.parts.push(made);
      this.log.append(made.node);
      if (this.follow) while (this.parts.length > MOST) this.parts.shift().node.remove();
    }
  }

  paint() {
    let changed = false;
    for (const part of this.parts) changed = part.paint() || changed;
    if (this.follow) this.scroll.scrollTop = this.scroll.scrollHeight;
    return changed;
  }
}

// A call that began on one page and ended on the next is one card, where it began.
function join(older, newer) {
  for (const item of newer.talk.items) {
    if (item.kind !== "call" || !item.headless) continue;
    const whole = older.talk.calls.get(item.id);
    if (!whole) continue;
    const { state, output, images, detail, ask, settled, why } = item;
    Object.assign(whole, { state, output, images, detail, why: why || whole.why, ask: ask || whole.ask, settled: settled || whole.settled });
    older.talk.touch(whole);
    item.gone = true;
    newer.talk.touch(item);
  }
  newer.talk.items = newer.talk.items.filter((item) => !item.gone);
}
