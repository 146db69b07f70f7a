// What passes between clients and the host, as it passes.
import { clock, fill, h, toast } from "./dom.js";
import { show } from "./dialogs.js";
import { block } from "./text.js";

const MOST = 500;

export class WirePage {
  constructor(app) {
    this.app = app;
    this.rows = [];
    this.paused = false;
    this.filter = h("input.search", { type: "search", placeholder: "Only lines with…", "aria-label": "Only lines with", oninput: () => this.draw() });
    this.pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => this.toggle() }, "Pause");
    this.from = h("select", { "aria-label": "Connection", onchange: () => this.draw() }, h("option", { value: "" }, "All connections"));
    this.way = h("select", { "aria-label": "Direction", onchange: () => this.draw() }, [["", "Both ways"], ["in", "From clients"], ["out", "To clients"]].map(([value, name]) => h("option", { value }, name)));
    this.known = new Set();
    this.held = [];
    this.list = h("div.wire", { role: "log", "aria-label": "Lines" });
    this.none = h("p.calm", null, "Nothing has passed yet. Lines of every connected client appear here, without their secrets.");
    this.node = h("div.page.wide", null, h("header.top", null, h("h1", null, "Wire"), this.filter, this.from, this.way, this.pause,
      h("button", { type: "button", onclick: () => this.copy() }, "Copy as transcript"),
      h("button", { type: "button", onclick: () => { this.rows = []; this.draw(); } }, "Clear")), this.none, this.list);
  }

  wants() { return "wire=true"; }

  toggle() {
    this.paused = !this.paused;
    this.pause.textContent = this.paused ? "Go on" : "Pause";
    this.pause.setAttribute("aria-pressed", String(this.paused));
    if (!this.paused) { const held = this.held; this.held = []; for (const row of held) this.wire(row); }
  }

  wire(row) {
    if (this.paused) { this.held.push(row); if (this.held.length > MOST) this.held.shift(); return; }
    this.rows.push(row);
    if (!this.known.has(row.connection) && this.known.size < 200) {
      this.known.add(row.connection);
      this.from.append(h("option", { value: row.connection }, row.connection));
    }
    if (this.rows.length > MOST) { const old = this.rows.shift(); if (this.list.firstChild?.row === old) this.list.firstChild.remove(); }
    if (this.fits(row)) {
      const end = this.node.parentElement;
      const near = end.scrollHeight - end.scrollTop - end.clientHeight < 80;
      this.list.append(this.line(row));
      if (near) end.scrollTop = end.scrollHeight;
    }
    this.none.hidden = true;
  }

  fits(row) { if ((this.from.value && this.from.value !== row.connection) || (this.way.value && this.way.value !== row.direction)) return false; return !this.filter.value || `${row.connection} ${row.line}`.toLowerCase().includes(this.filter.value.toLowerCase()); }

  draw() {
    this.none.hidden = this.rows.length > 0;
    fill(this.list, this.rows.filter((row) => this.fits(row)).map((row) => this.line(row)));
  }

  // What is shown, as it can be played to a client.
  copy() {
    const text = transcript(this.rows.filter((row) => this.fits(row)));
    if (!text) { toast("Nothing is shown that could be copied.", true); return; }
    const by_hand = () => show("Transcript", h("p.says", null, "The browser does not allow copying: take it from here."), block(text));
    if (!navigator.clipboard) { by_hand(); return; }
    navigator.clipboard.writeText(text).then(() => toast("Copied. Keep it in a file and play it: dragoman replay FILE"), by_hand);
  }

  line(row) {
    const inward = row.direction === "in";
    const node = h("details.row", { "data-in": inward ? "" : null },
      h("summary", null, h("span.when", null, clock(row.at)), h("span.way", { title: inward ? "from the client" : "to the client" }, inward ? "→" : "←"),
        h("span.conn", { "data-dialect": row.dialect }, row.connection), h("span.text", null, row.line.slice(0, 300))));
    node.row = row;
    node.addEventListener("toggle", () => {
      if (!node.open || node.children.length > 1) return;
      let text = row.line;
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* shown as it came */ }
      node.append(block(text, row.peer));
    });
    return node;
  }
}

// As `dragoman replay` reads it, and `dragoman tap --record` writes it: a line each, as JSON.
export function transcript(rows) { return rows.map((row) => `${JSON.stringify(row)}\n`).join(""); }
