// Sessions as the host lists them: pages come as they are scrolled to and go when they are far, so
// that a hundred thousand cost no more than a hundred.
import { get, url, here } from "./api.js";
import { ago, fill, folder, h, money, renew, titleOf } from "./dom.js";

const PAGE = 60;
const HIGH = 57; // of one row, as the styles have it
export const WORKING = new Set(["running", "starting", "interrupting"]);

export function row(app, one, kind = "") {
  const open = here().startsWith(`/sessions/${encodeURIComponent(one.id)}`);
  const waits = app.waits(one.id) || one.status === "waiting_input";
  const sort = waits ? "needs" : WORKING.has(one.status) ? "works" : one.status === "failed" || one.error ? "failed" : kind || "rests";
  const state = { needs: "needs you", works: "working", failed: "failed" }[sort] || "";
  return h("a.session", {
    href: url(`/sessions/${encodeURIComponent(one.id)}`), "data-link": true, "data-kind": sort, "aria-current": open ? "page" : null, "data-id": one.id,
  },
  h("span.dot", { title: state || one.status }),
  h("span.title", null, h("bdi", null, titleOf(one))),
  h("span.meta", null, h("bdi", null, [folder(one.cwd), one.agent !== "default" ? one.agent : null, money(one.cost), state || null].filter(Boolean).join(" · "))),
  h("span.when", null, ago(one.updated_at)));
}

// Whatever is drawn anew, the keyboard stays at its row.
function kept(place, act) {
  const held = place.contains(document.activeElement) ? document.activeElement.dataset.id : null;
  act();
  if (held && !place.contains(document.activeElement)) place.querySelector(`[data-id="${CSS.escape(held)}"]`)?.focus();
}

class Block {
  constructor(list, cursor) {
    this.list = list;
    this.cursor = cursor;
    this.next = undefined; // where the page after it begins; "" after the last one
    this.rows = null;
    this.node = h("div.rows");
    this.node.block = this;
    this.hold(PAGE);
  }

  hold(count) { this.node.style.height = `${count * HIGH}px`; }

  async load() {
    if (this.rows || this.loading) return;
    this.loading = true;
    const heard = this.heard = []; // newer than the answer that is awaited
    try {
      const page = await this.list.fetch(this.cursor);
      if (this.list.over) return;
      this.rows = page.sessions;
      const first = this.next === undefined;
      this.next = page.cursor || "";
      this.draw();
      this.heard = null;
      for (const [verb, word] of heard) this.list[verb](word);
      if (first) this.list.grow(this);
    } catch { this.list.trouble(); }
    finally { this.loading = false; this.heard = null; }
  }

  draw() {
    if (!this.rows) return;
    this.node.style.height = "";
    const rows = this.list.text ? this.rows : this.rows.filter((one) => !this.list.app.above(one.id));
    kept(this.node, () => renew(this.node, rows.map((one) => row(this.list.app, one))));
    if (!this.rows.length && this.list.blocks.length === 1) fill(this.node, h("p.empty", null, this.list.text ? "Nothing fits." : "No sessions yet."));
  }

  leave() {
    if (!this.rows) return;
    this.hold(Math.max(1, this.rows.length));
    this.rows = null;
    this.node.replaceChildren();
  }
}

class Pages {
  constructor(app, root, text) {
    this.app = app;
    this.text = text;
    this.over = false;
    this.node = h("div.pages");
    this.blocks = [];
    this.eye = new IntersectionObserver((seen) => {
      for (const one of seen) if (one.isIntersecting) one.target.block.load(); else one.target.block.leave();
    }, { root, rootMargin: "600px 0px" });
    this.grow(null);
  }

  async fetch(cursor) {
    if (!this.text) return get(`/api/sessions?limit=${PAGE}&archived=false&brief=true&cursor=${encodeURIComponent(cursor)}`);
    const found = await get(`/api/search?limit=${PAGE}&offset=${cursor || 0}&text=${encodeURIComponent(this.text)}`);
    return { sessions: found.sessions, cursor: found.more ? String(Number(cursor || 0) + PAGE) : "" };
  }

  grow(last) {
    if (last && (!last.next || this.blocks[this.blocks.length - 1] !== last)) return;
    const block = new Block(this, last ? last.next : "");
    this.blocks.push(block);
    this.node.append(block.node);
    this.eye.observe(block.node);
  }

  trouble() { /* the stream says when the host is away, and draws anew when it is back */ }

  // One session is another: its row changes where it stands; the newest come to the top.
  update(one) {
    const top = this.blocks[0];
    for (const block of this.blocks) block.heard?.push(["update", one]);
    for (const block of this.blocks) {
      const at = block.rows?.findIndex((row) => row.id === one.id) ?? -1;
      if (at < 0) continue;
      if (block !== top && !this.text) { block.rows.splice(at, 1); block.draw(); break; }
      block.rows[at] = one;
      if (!this.text) block.rows.sort((a, b) => b.updated_at - a.updated_at);
      block.draw();
      return;
    }
    if (!this.text && top.rows) { top.rows.unshift(one); if (top.rows.length > PAGE * 2) top.rows.length = PAGE * 2; top.draw(); }
  }

  gone(id) {
    for (const block of this.blocks) {
      block.heard?.push(["gone", id]);
      const at = block.rows?.findIndex((row) => row.id === id) ?? -1;
      if (at >= 0) { block.rows.splice(at, 1); block.draw(); }
    }
  }

  draw() { for (const block of this.blocks) block.draw(); }
  close() { this.over = true; this.eye.disconnect(); }
}

export class SessionList {
  constructor(app, label) {
    this.app = app;
    this.search = h("input.search", { type: "search", placeholder: "Search all sessions", "aria-label": "Search all sessions", oninput: () => this.typed() });
    this.now = h("div.now-list");
    this.head = h("h2", null, "All");
    this.body = h("section", null, this.head);
    this.list = h("div.sessions", { role: "navigation", "aria-label": label }, this.now, this.body);
    this.reload();
  }

  typed() { clearTimeout(this.timer); this.timer = setTimeout(() => this.reload(), 120); }

  reload() {
    this.pages?.close();
    this.pages?.node.remove();
    this.pages = new Pages(this.app, this.list, this.search.value.trim());
    this.body.append(this.pages.node);
    this.draw();
  }

  draw() {
    const text = this.search.value.trim();
    const { needs, works } = this.app.now();
    const part = (name, rows) => (rows.length && !text ? h("section", null, h("h2", null, name, h("span", null, rows.length)), rows.map((one) => row(this.app, one))) : null);
    kept(this.list, () => renew(this.now, part("Needs you", needs), part("Working", works)));
    const total = this.app.overview ? this.app.overview.sessions - this.app.overview.archived - needs.length - works.length : 0;
    fill(this.head, text ? "Found" : "Recent", !text && total > 0 ? h("span", null, total.toLocaleString()) : null);
    this.head.hidden = !text && total <= 0 && needs.length + works.length > 0;
  }

  update(one) { kept(this.list, () => { this.pages.update(one); this.draw(); }); }
  gone(id) { kept(this.list, () => { this.pages.gone(id); this.draw(); }); }
  redraw() { kept(this.list, () => { this.pages.draw(); this.draw(); }); }
  focus() { this.search.focus(); this.search.select(); }

  step(by) {
    const links = [...this.list.querySelectorAll("a.session")];
    if (!links.length) return;
    const at = links.findIndex((one) => one === document.activeElement || (!this.list.contains(document.activeElement) && one.hasAttribute("aria-current")));
    const next = links[Math.min(links.length - 1, Math.max(0, at + by))];
    next.focus();
  }

  close() { this.pages.close(); }
}

// The list as a page of its own, for narrow screens.
export class SessionsPage {
  constructor(app) {
    this.inner = new SessionList(app, "All sessions");
    this.node = h("div.page.list-page", null, h("header.top", null, h("h1", null, "Sessions")), this.inner.search, this.inner.list);
  }

  update(id, one) { if (one) this.inner.update(one); else if (id) this.inner.gone(id); else this.inner.redraw(); }
  close() { this.inner.close(); }
}
