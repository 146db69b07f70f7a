// The machines that share the work: how they are, what they have, how far behind they are.
import { get } from "./api.js";
import { fill, h, many } from "./dom.js";

export class FleetPage {
  constructor() {
    this.body = h("div");
    this.node = h("div.page.wide", null, h("header.top", null, h("h1", null, "Fleet")), this.body);
  }

  open() { this.load(); this.timer = setInterval(() => this.load(), 3000); }
  close() { clearInterval(this.timer); }

  async load() {
    let fleet;
    try { fleet = await get("/api/fleet"); } catch (problem) { fill(this.body, h("p.calm", null, problem.message)); return; }
    if (!fleet.joined) { fill(this.body, h("p.calm", null, "This host works alone. Several share their sessions when they share a database: [fleet] database.")); return; }
    const most = Math.max(1, ...fleet.nodes.map((one) => one.sessions));
    fill(this.body, h("div.nodes", null, fleet.nodes.map((one) => {
      const state = !one.alive ? "gone" : one.draining ? "draining" : one.degraded ? "degraded" : "ready";
      const load = h("i");
      load.style.width = `${(one.sessions / most) * 100}%`;
      return h("article.node", { "data-state": state }, h("header", null, h("h2", null, h("bdi", null, one.name)), h("span.pill", null, state)),
        h("div.load", { role: "img", "aria-label": many(one.sessions, "session") }, load),
        h("dl.where", null, [["Sessions", one.sessions], ["Running", one.running], ["In memory", one.live], ["Lag", one.alive ? many(one.lag, "event") : "–"], ["Last heard", `${one.silent.toFixed(1)} s ago`], ["Version", one.version], ...(one.labels.length ? [["Labels", one.labels.join(", ")]] : [])].map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))));
    })));
  }
}
