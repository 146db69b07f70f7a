// Markdown, which the host renders: finished blocks as they come, the open one as plain text.
import { post } from "./api.js";
import { h } from "./dom.js";
import { copied } from "./text.js";

const MOST = 200; // texts of one request
let waiting = [];

// All texts of one moment go in one request.
function rendered(text) {
  return new Promise((done) => {
    waiting.push([text, done]);
    if (waiting.length === 1) setTimeout(ask, 5);
  });
}

async function ask() {
  const asked = waiting;
  waiting = [];
  for (let at = 0; at < asked.length; at += MOST) {
    const part = asked.slice(at, at + MOST);
    let html = [];
    try { html = (await post("/api/render", { texts: part.map(([text]) => text) })).html; }
    catch { html = []; } // it stays as it was written
    part.forEach(([, done], n) => done(html[n] ?? null));
  }
}

function nodes(html) {
  const made = new DOMParser().parseFromString(html, "text/html").body;
  for (const pre of made.querySelectorAll("pre.code")) {
    const box = h("div.block", { "data-label": pre.dataset.label || null });
    pre.replaceWith(box);
    box.append(pre, copied(pre.textContent));
  }
  return [...made.childNodes];
}

// The end of the last block that nothing can change any more: a blank line outside of code that is
// not followed by something which may belong to a list before it.
export function settled(text) {
  let fence = "", at = 0, good = 0, blank = false;
  for (const line of text.split("\n")) {
    const mark = line.match(/^ {0,3}(```+|~~~+)/)?.[1];
    if (!fence && blank && line.trim() && !/^(\s|[-*+] |\d+[.)] |\|)/.test(line)) good = at;
    if (mark && !fence) fence = mark;
    else if (mark && line.trim().startsWith(fence) && !line.trim().slice(fence.length).trim()) fence = "";
    blank = !fence && !line.trim();
    at += line.length + 1;
  }
  return good;
}

// The HTML of finished texts, all in one request; null where the host did not answer.
export function htmlOf(texts) { return Promise.all(texts.map((text) => rendered(text))); }

export class Prose {
  constructor() {
    this.tail = h("div.plain");
    this.node = h("div.prose", null, this.tail);
    this.at = 0;
    this.version = 0;
  }

  put(html) { this.version++; this.node.replaceChildren(...nodes(html)); }

  set(text, open) {
    if (!open) {
      const version = ++this.version;
      if (!this.at) this.tail.textContent = text;
      rendered(text).then((html) => { if (html !== null && version === this.version) this.node.replaceChildren(...nodes(html)); });
      return;
    }
    const good = settled(text);
    if (good > this.at) {
      const version = this.version, piece = text.slice(this.at, good);
      const place = h("div.plain", null, piece.trimEnd());
      this.tail.before(place);
      this.at = good;
      rendered(piece).then((html) => { if (html !== null && version === this.version) place.replaceWith(...nodes(html)); });
    }
    this.tail.textContent = text.slice(this.at);
  }
}

export function prose(text) {
  const made = new Prose();
  made.set(text, false);
  return made.node;
}
