// Who is connected, by dialect; which tokens let somebody in.
import { del, get, post } from "./api.js";
import { ago, fill, h, toast } from "./dom.js";
import { confirmed, show } from "./dialogs.js";

const SAYS = { acp: "editors and IDEs", zeroclaw: "terminal clients and scripts", zot: "scripts on stdio", humanlayer: "approvers", openclawos: "apps", dashboard: "browsers", rest: "programs over HTTP", webhook: "webhooks" };

export class ClientsPage {
  constructor(app) {
    this.app = app;
    this.list = h("div.clients");
    this.tokens = h("div.tokens");
    this.node = h("div.page", null,
      h("header.top", null, h("h1", null, "Clients")), this.list,
      h("header.top.second", null, h("h2", null, "Tokens"), h("span.room"),
        h("button", { type: "button", onclick: () => this.pair() }, "Pair a device")),
      h("p.says", null, "Each browser, bridge and program has its own. Revoking one ends its connections at once."),
      this.tokens);
    this.clients(app.clients);
  }

  open() { this.load(); }
  close() { clearTimeout(this.timer); }

  clients(rows) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), 500); // who comes may have paired just now
    const groups = new Map();
    for (const one of rows) groups.set(one.who.dialect, [...(groups.get(one.who.dialect) || []), one]);
    fill(this.list, rows.length ? [...groups].sort().map(([dialect, ones]) => h("section", null,
      h("h2", null, dialect, h("span", null, ones.length), h("small", null, SAYS[dialect] || "")),
      ones.map((one) => h("div.client", null, h("span.dot"), h("strong", null, one.who.name || one.who.peer || one.who.id), h("span.meta", null, one.who.name ? one.who.peer : ""), h("span.when", null, ago(one.since))))))
      : h("p.calm", null, "Nobody is connected."));
  }

  async load() {
    try {
      const rows = await get("/api/tokens");
      const shown = JSON.stringify(rows);
      if (shown === this.shown) return; // nothing is drawn anew under somebody's hand
      this.shown = shown;
      fill(this.tokens, rows.map((one) => h("div.client", null,
        h("strong", null, one.name || one.id), h("span.meta", null, `${one.kind} · ${one.id}`), h("span.when", null, ago(one.created_at * 1000)),
        h("button.quiet", { type: "button", "aria-label": `Revoke ${one.name || one.id}`, onclick: () => this.revoke(one) }, "Revoke"))));
    } catch (problem) { toast(problem.message, true); }
  }

  async revoke(one) {
    if (!(await confirmed("Revoke this token?", `${one.name || one.id} will have to pair again.`, "Revoke"))) return;
    await del(`/api/tokens/${one.id}`).catch((problem) => toast(problem.message, true));
    this.load();
  }

  async pair() {
    try {
      const made = await post("/api/pair-codes");
      show("Pair a device", h("p", null, "Open this address there and give the code. It works once, for ten minutes."), h("p.big", null, made.pairing_code), h("p.says", null, document.baseURI));
    } catch (problem) { toast(problem.message, true); }
  }
}
