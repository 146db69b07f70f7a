// What passes between clients and the host, as it passes.
import { clock, fill, h } from "./dom.js";
import { block } from "./text.js";

const MOST = 500;

export class WirePage {
  constructor(app) {
    this.app = app;
    this.rows = [];
    this.paused = false;
    this.filter = h("input.search", { type: "search", placeholder: "Only lines with…", "aria-label": "Only lines with", oninput: () => this.draw() });
    this.pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => this.toggle() }, "Pause");
    this.list = h("div.wire", { role: "log", "aria-label": "Lines" });
    this.none = h("p.calm", null, "Nothing has passed yet. Lines of every connected client appear here, without their secrets.");
    this.node = h("div.page.wide", null, h("header.top", null, h("h1", null, "Wire"), h("span.room"), this.filter, this.pause,
      h("button", { type: "button", onclick: () => { this.rows = []; this.draw(); } }, "Clear")), this.none, this.list);
  }

  wants() { return "wire=true"; }

  toggle() {
    this.paused = !this.paused;
    this.pause.textContent = this.paused ? "Go on" : "Pause";
    this.pause.setAttribute("aria-pressed", String(this.paused));
  }

  wire(row) {
    if (this.paused) return;
    this.rows.push(row);
    if (this.rows.length > MOST) { this.rows.shift(); if (!this.filter.value) this.list.firstChild?.remove(); }
    if (this.fits(row)) {
      const end = this.node.parentElement;
      const near = end.scrollHeight - end.scrollTop - end.clientHeight < 80;
      this.list.append(this.line(row));
      if (near) end.scrollTop = end.scrollHeight;
    }
    this.none.hidden = true;
  }

  fits(row) { return !this.filter.value || `${row.connection} ${row.line}`.toLowerCase().includes(this.filter.value.toLowerCase()); }

  draw() {
    this.none.hidden = this.rows.length > 0;
    fill(this.list, this.rows.filter((row) => this.fits(row)).map((row) => this.line(row)));
  }

  line(row) {
    const inward = row.direction === "in";
    const node = h("details.row", { "data-in": inward ? "" : null },
      h("summary", null, h("span.when", null, clock(row.at)), h("span.way", { title: inward ? "from the client" : "to the client" }, inward ? "→" : "←"),
        h("span.conn", { "data-dialect": row.dialect }, row.connection), h("span.text", null, row.line.slice(0, 300))));
    node.addEventListener("toggle", () => {
      if (!node.open || node.children.length > 1) return;
      let text = row.line;
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* shown as it came */ }
      node.append(block(text, row.peer));
    });
    return node;
  }
}
