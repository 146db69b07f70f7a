// The left side: the mark, a way to begin, and the sessions.
import { url } from "./api.js";
import { h, icon } from "./dom.js";
import { SessionList } from "./list.js";

export class Side {
  constructor(app) {
    this.inner = new SessionList(app, "Sessions");
    this.node = h("div.side", null,
      h("header.brand", null,
        h("a.mark", { href: url("/"), "data-link": true }, h("img", { src: url("/static/mark.svg"), alt: "", width: "26", height: "26" }), h("span", null, "Dragoman")),
        h("span.pulse", { title: "Connection to the host" }),
        h("button.new", { type: "button", title: "New session (n)", onclick: () => app.begin() }, icon("plus"), h("span", null, "New"))),
      h("div.finder", { role: "search", "aria-label": "Sessions" }, this.inner.search), this.inner.list);
    setInterval(() => this.inner.redraw(), 60000);
  }
}
