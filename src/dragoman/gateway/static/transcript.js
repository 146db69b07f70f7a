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
  constructor(id, scroll, log, told, reached) {
    this.path = `/api/sessions/${encodeURIComponent(id)}/events`;
    this.scroll = scroll;
    this.log = log;
    this.told = told; // what the page does when something changed
    this.reached = reached; // what it does when all that is stored is there: its stream goes on from `seq`
    this.parts = [];
    this.end = 0; // the newest event that is known of; where a part is live, it has them all
    this.follow = true;
    this.present = [];
    this.busy = false;
    scroll.addEventListener("scroll", () => this.scrolled(), { passive: true });
  }

  get atEnd() { return !this.parts.length || this.parts[this.parts.length - 1].live; }
  get seq() { return this.end; }

  async part(first, count) {
    const made = new Part(first);
    const events = await get(`${this.path}?after=${first - 1}&limit=${count}`);
    for (const event of events) made.take(event);
    made.newest = events.length < count; // there was no more when this was asked
    const texts = made.talk.items.filter((item) => item.kind === "text" && !item.draft);
    const html = await htmlOf(texts.map((item) => item.text));
    texts.forEach((item, n) => { item.html = html[n]; });
    return made;
  }

  // --- where the reader is ---

  // `last` says where to look, not what is there: only what was read is known, whatever the session
  // says of itself, and whatever came by a stream while nothing was there that could take it.
  async openEnd(last) {
    this.end = Math.max(this.end, last);
    const made = await this.part(Math.max(1, this.end - PAGE + 1), PAGE);
    this.show([made]);
    this.goOn(made);
    this.toEnd();
    await this.fillScreen();
  }

  async openAt(seq, last) {
    this.end = Math.max(this.end, last);
    const made = await this.part(Math.max(1, Math.min(seq - 15, this.end - PAGE + 1)), PAGE);
    this.show([made]);
    if (made.newest || made.last >= this.end) this.goOn(made);
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

  // From the end of this part on, all comes by the stream.
  goOn(part) {
    part.live = true;
    this.end = part.last;
    this.reached();
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
  left() { return this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight; }
  near() { return this.left() < 120; }
  toEnd() { this.follow = true; this.scroll.scrollTop = this.scroll.scrollHeight; this.told(); }

  scrolled() {
    this.follow = this.atEnd && this.near();
    this.told();
    if (this.scroll.scrollTop < 900) this.older();
    else if (!this.atEnd && this.left() < 900) this.newer();
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
      join([made, ...this.parts]);
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
      const made = await this.part(before.last + 1, PAGE);
      if (this.parts[this.parts.length - 1] !== before) return;
      join([...this.parts, made]);
      made.paint();
      this.log.append(made.node);
      this.parts.push(made);
      for (const part of this.parts) part.paint();
      if (this.parts.length > MOST) this.keeping(() => { while (this.parts.length > MOST) this.parts.shift().node.remove(); });
      if (made.newest || made.last >= this.end) this.goOn(made);
      else requestAnimationFrame(() => { if (this.left() < 300) this.newer(); }); // the reader was quicker
    } catch (problem) { console.error(problem); } // scrolling asks again
    finally { this.busy = false; this.told(); }
  }

  // --- what happens now ---

  take(event) {
    if (event.body.type === "presence") this.present = event.body.clients;
    if (event.seq) {
      if (event.seq <= this.end) return;
      this.end = event.seq;
    }
    const last = this.parts[this.parts.length - 1];
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

  // A stream begins: what the step that runs has streamed so far comes again, as a whole.
  again() { for (const part of this.parts) if (part.live) part.talk.again(); }

  paint() {
    let changed = false;
    for (const part of this.parts) changed = part.paint() || changed;
    if (this.follow) this.scroll.scrollTop = this.scroll.scrollHeight;
    return changed;
  }
}

// A call that began on one page and ended on another is one card, where it began; an answer that came
// on another page belongs to its question.
function join(parts) {
  const began = new Map(), asked = new Map();
  for (const part of parts) {
    for (const item of part.talk.items) {
      if (item.ask && !item.settled) asked.set(item.ask.id, [item, part]);
      if (item.kind !== "call") continue;
      const [whole, at] = began.get(item.id) || [];
      if (!whole || !item.headless) { began.set(item.id, [item, part]); continue; }
      const { state, output, images, detail, ask, settled, why } = item;
      Object.assign(whole, { state, output, images, detail, why: why || whole.why, ask: ask || whole.ask, settled: settled || whole.settled });
      at.talk.touch(whole);
      item.gone = true;
      part.talk.touch(item);
      if (whole.ask && !whole.settled) asked.set(whole.ask.id, [whole, at]);
      whole.home = at.talk; // what is told of it from now on shows there
      for (const one of parts) if (one.talk.calls.get(item.id) === item) one.talk.calls.set(item.id, whole);
    }
    part.talk.items = part.talk.items.filter((item) => !item.gone);
    for (const [id, settled] of part.talk.answers) {
      const [item, at] = asked.get(id) || [];
      if (item && !item.settled) { item.settled = settled; at.talk.touch(item); }
    }
  }
}
