// The shell: who is let in, what is known of all sessions, which page is shown.
import { Live, get, here, url } from "./api.js";
import { fill, h, icon, toast } from "./dom.js";
import { Side } from "./side.js";
import { SessionPage } from "./session.js";
import { ApprovalsPage, HomePage, forget } from "./approvals.js";
import { ClientsPage } from "./clients.js";
import { WirePage } from "./wire.js";
import { ConfigPage } from "./config.js";
import { showLogin, takeSecret } from "./login.js";
import { newSession, showKeys } from "./dialogs.js";

const root = document.getElementById("app");

class App {
  constructor() {
    this.sessions = new Map();
    this.asks = new Map();
    this.clients = [];
    this.status = null;
    this.page = null;
    this.live = new Live(this.listener());
    window.addEventListener("popstate", () => this.show());
    window.addEventListener("locked", () => this.lock());
    document.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("keydown", (event) => this.pressed(event));
  }

  async start() {
    const me = await get("/api/me").catch(() => null);
    if (!me) { fill(root, h("p.lost", null, "The host cannot be reached. This page tries again.")); setTimeout(() => this.start(), 2000); return; }
    if (!me.authed) { this.lock(); return; }
    takeSecret();  // a browser that is let in already needs none
    this.locked = false;
    this.draw();
    await this.refresh();
    this.show();
  }

  lock() {
    if (this.locked) return;
    this.locked = true;
    this.live.close();
    showLogin(root, () => { this.locked = false; this.start(); });
  }

  async refresh() {
    const [page, asks, status] = await Promise.all([get("/api/sessions?limit=200&archived=false"), get("/api/approvals"), get("/api/status")]);
    this.sessions = new Map(page.sessions.map((one) => [one.id, one]));
    this.asks = new Map(asks.map((row) => [row.ask.id, row.ask]));
    this.status = status;
    this.changed();
  }

  draw() {
    this.side = new Side(this);
    this.nav = h("nav.tabs", { "aria-label": "Pages" });
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.state = h("span.state", { role: "status" });
    fill(root, h("div.shell", null, h("div.left", null, this.side.node, this.nav), this.main));
    this.drawNav();
  }

  drawNav() {
    const at = here();
    const waiting = this.asks.size;
    const tab = (path, name, sign, extra) => h("a.tab", {
      href: url(path), "data-link": true,
      "aria-current": (path === "/" ? at === "/" || at.startsWith("/sessions") : at.startsWith(path)) ? "page" : null,
    }, icon(sign), h("span.name", null, name), extra);
    fill(this.nav,
      tab("/", "Sessions", "talk"),
      tab("/approvals", "Approvals", "hand", waiting ? h("span.badge", { "aria-label": `${waiting} waiting` }, waiting) : null),
      tab("/clients", "Clients", "plug"),
      tab("/wire", "Wire", "wire"),
      tab("/config", "Settings", "gear"));
    document.title = waiting ? `(${waiting}) Dragoman` : "Dragoman";
  }

  listener() {
    return {
      state: (state) => {
        document.body.dataset.live = state;
        if (state === "live") {
          this.refresh().catch(() => {}); // what happened while no stream was open
          if (this.was === "away") toast("Connected again.");
        }
        this.was = state;
      },
      session: (one) => { this.sessions.set(one.id, one); this.changed(one.id); },
      gone: ({ id }) => { this.sessions.delete(id); this.changed(id); },
      ask: (row) => { this.asks.set(row.ask.id, row.ask); this.changed(); },
      settled: (row) => { this.asks.delete(row.ask_id); forget(row.ask_id); this.changed(); },
      event: (event) => this.page?.event?.(event),
      clients: (rows) => { this.clients = rows; this.page?.clients?.(rows); },
      config: (row) => this.page?.config?.(row),
      wire: (row) => this.page?.wire?.(row),
    };
  }

  changed(id) {
    this.side?.draw();
    if (this.nav) this.drawNav();
    this.page?.update?.(id);
  }

  go(path) {
    if (path !== here()) history.pushState(null, "", url(path));
    this.show();
  }

  show() {
    if (this.locked || !this.main) return;
    const [, first, second] = here().split("/").map(decodeURIComponent);
    this.page?.close?.();
    if (first === "sessions" && second) this.page = new SessionPage(this, second);
    else if (first === "approvals") this.page = new ApprovalsPage(this);
    else if (first === "clients") this.page = new ClientsPage(this);
    else if (first === "wire") this.page = new WirePage(this);
    else if (first === "config") this.page = new ConfigPage(this, second || "");
    else this.page = new HomePage(this);
    document.body.dataset.page = first || "home";
    fill(this.main, this.page.node);
    this.page.open?.();
    if (!this.page.ownStream) this.live.open(() => this.page.wants?.() || "");
    this.side.draw();
    this.drawNav();
  }

  clicked(event) {
    const link = event.target.closest?.("a[data-link]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    this.go(new URL(link.href).pathname.slice(url("").length) || "/");
  }

  pressed(event) {
    if (this.locked || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.closest?.("input, textarea, select");
    if (typing) { if (event.key === "Escape") event.target.blur(); return; }
    const keys = {
      n: () => newSession(this), "?": () => showKeys(), "/": () => this.side.focus(),
      j: () => this.side.step(1), k: () => this.side.step(-1),
      h: () => this.go("/"), g: () => this.go("/approvals"), s: () => this.go("/config"),
    };
    if (this.page?.key?.(event.key)) { event.preventDefault(); return; }
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  }
}

new App().start();
