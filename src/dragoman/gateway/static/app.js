// The shell: who is let in, what is known of sessions, which page is shown.
import { Live, get, here, url } from "./api.js";
import { fill, h, icon, renew, setTheme, titleOf, toast } from "./dom.js";
import { Side } from "./side.js";
import { SessionPage } from "./session.js";
import { ApprovalsPage, forget } from "./approvals.js";
import { ClientsPage } from "./clients.js";
import { ConfigPage } from "./config.js";
import { FleetPage } from "./fleet.js";
import { HomePage } from "./home.js";
import { SessionsPage, WORKING } from "./list.js";
import { TimelinePage } from "./timeline.js";
import { WirePage } from "./wire.js";
import { showApprove } from "./approve.js";
import { showLogin, takeSecret } from "./login.js";
import { showKeys } from "./dialogs.js";
import { alone, asked, register } from "./notify.js";

const root = document.getElementById("app");
const KNOWN = 400; // sessions that are remembered; the host knows all
const THEMES = ["", "light", "dark"];

class App {
  constructor() {
    this.sessions = new Map();
    this.asks = new Map();
    this.hearing = new Set(); // for each answer that is awaited: what the stream said meanwhile
    this.clients = [];
    this.status = null;
    this.overview = null;
    this.page = null;
    this.live = new Live(this.listener(), alone);
    window.addEventListener("popstate", () => this.show());
    window.addEventListener("locked", () => this.lock());
    document.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("keydown", (event) => this.pressed(event));
    register();
  }

  async start() {
    if (here() === "/approve") { document.body.dataset.page = "approve"; showApprove(root); return; }
    const me = await get("/api/me").catch((problem) => ({ problem }));
    if (me.problem) {
      const { status, message } = me.problem;
      fill(root, h("main.lost", { id: "main" }, h("h1", null, status ? "The host cannot work now" : "The host is away"), h("p", null, message), h("p", null, "This page tries again by itself.")));
      setTimeout(() => this.start(), 2000);
      return;
    }
    if (!me.authed) { this.lock(); return; }
    takeSecret();  // a browser that is let in already needs none
    this.locked = false;
    this.live.start();
    this.draw();
    const ready = this.refresh();
    this.show();
    await ready.catch(() => {});
  }

  lock() {
    if (this.locked) return;
    this.locked = true;
    this.live.stop();
    showLogin(root, () => { this.locked = false; this.start(); });
  }

  // How things are now. What the stream said while the answers were under way is newer than they are.
  async refresh() {
    const heard = [];
    this.hearing.add(heard);
    try {
      const [works, waits, rows, status] = await Promise.all([
        get("/api/sessions?limit=100&brief=true&archived=false&status=running,starting,interrupting"), get("/api/sessions?limit=100&brief=true&archived=false&status=waiting_input"),
        get("/api/approvals"), get("/api/status")]);
      const found = new Map([...works.sessions, ...waits.sessions].map((one) => [one.id, one]));
      const asks = new Map(rows.map((row) => [row.ask.id, row.ask]));
      await Promise.all([...new Set([...asks.values()].map((ask) => ask.session))].filter((id) => !found.has(id)).slice(0, 50)
        .map((id) => get(`/api/sessions/${encodeURIComponent(id)}`).then((one) => found.set(id, one), () => {})));
      const before = this.status && this.asks;
      for (const [id, one] of this.sessions) if (WORKING.has(one.status) || one.status === "waiting_input") this.sessions.delete(id);
      for (const [id, one] of found) this.sessions.set(id, one);
      this.asks = asks;
      this.status = status;
      for (const act of heard) act();
      if (before) for (const [id, ask] of this.asks) if (!before.has(id)) this.tell(ask);  // came while no stream was open
    } finally { this.hearing.delete(heard); }
    this.look().catch(() => {});
    this.changed();
  }

  hear(act) {
    act();
    for (const heard of this.hearing) heard.push(act);
  }

  tell(ask) {
    const one = this.known(ask.session);
    asked(this, ask, one ? titleOf(one) : "a session");
  }

  async look() {
    this.overview = await get("/api/overview");
    this.side?.inner.draw();
    this.page?.looked?.();
  }

  // Sums that no event tells are asked for a moment after what changes them.
  recount() { this.counting ||= setTimeout(() => { this.counting = 0; this.look().catch(() => {}); }, 2000); }

  // --- what is known ---

  known(id) { return this.sessions.get(id); }
  waits(id) { for (const ask of this.asks.values()) if (ask.session === id) return true; return false; }
  shows(ask) { return here() === "/approvals" || here() === "/" || here().startsWith(`/sessions/${encodeURIComponent(ask.session)}`); }

  // An answer may be older than what the stream said while it was on its way.
  know(one) {
    if (one.last_seq < this.known(one.id)?.last_seq) return;
    this.sessions.delete(one.id);
    this.sessions.set(one.id, one);
    for (const [id, old] of this.sessions) {
      if (this.sessions.size <= KNOWN) break;
      if (!WORKING.has(old.status) && !this.waits(id)) this.sessions.delete(id);
    }
  }

  forgetSession(id) { this.sessions.delete(id); this.side?.inner.gone(id); this.look().catch(() => {}); }

  // Whether a session stands among those that need somebody or work, and not with the others.
  above(id) {
    const one = this.known(id);
    return Boolean(one && !one.archived && (this.waits(id) || one.status === "waiting_input" || WORKING.has(one.status)));
  }

  now() {
    const all = [...this.sessions.values()].filter((one) => !one.archived).sort((a, b) => b.updated_at - a.updated_at);
    const needs = all.filter((one) => this.waits(one.id) || one.status === "waiting_input");
    return { needs, works: all.filter((one) => WORKING.has(one.status) && !needs.includes(one)) };
  }

  // --- drawing ---

  draw() {
    this.side = new Side(this);
    this.nav = h("nav.tabs", { "aria-label": "Pages" });
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.alarm = h("div", { role: "alert" });
    fill(root, h("div.shell", null, h("div.left", null, this.side.node, this.nav), this.main));
    this.drawNav();
  }

  drawNav() {
    const at = here();
    const waiting = this.asks.size;
    const tab = (path, name, sign, extra, kind = "") => h(`a.tab${kind}`, {
      href: url(path), "data-link": true, "aria-current": (path === "/" ? at === "/" : at.startsWith(path)) ? "page" : null,
    }, icon(sign), h("span.name", null, name), extra);
    renew(this.nav,
      tab("/", "Home", "home"),
      tab("/sessions", "Sessions", "list", null, ".narrow"),
      tab("/approvals", "Approvals", "hand", waiting ? h("span.badge", { "aria-label": `${waiting} waiting` }, waiting) : null),
      tab("/clients", "Clients", "plug"),
      tab("/wire", "Wire", "wire"),
      this.status?.fleet ? tab("/fleet", "Fleet", "nodes") : null,
      tab("/config", "Settings", "gear"));
    if (!at.startsWith("/sessions/")) document.title = waiting ? `(${waiting}) Dragoman` : "Dragoman";
  }

  // Why the store takes nothing; asked for again until it does.
  stall(why) {
    clearTimeout(this.stalling);
    renew(this.alarm, why ? h("p.notice", null, "The store is stalled, so what this page shows may be old and nothing can be begun. ", why) : null);
    if (why) this.stalling = setTimeout(async () => {
      const status = await get("/api/status").catch(() => null);
      if (this.locked) return;
      this.stall(status ? status.stalled : why);
      if (status && !status.stalled) { this.refresh().then(() => this.side.inner.reload()).catch(() => {}); this.live.open(); }
    }, 3000);
  }

  listener() {
    return {
      hello: (row) => this.stall(row.stalled),
      state: (state) => {
        document.body.dataset.live = state;
        if (state === "live" && this.was !== "live") {
          const back = Boolean(this.was);
          this.refresh().then(() => { if (back) this.side?.inner.reload(); }).catch(() => {}); // what happened while no stream was open
          if (this.was === "away") toast("Connected again.");
        }
        if (state === "live") this.page?.connected?.();
        this.was = state;
      },
      refused: (problem) => this.page?.refused?.(problem),
      session: (one) => {
        const old = this.known(one.id);
        if (!old || old.archived !== one.archived || (WORKING.has(old.status) && !WORKING.has(one.status))) this.recount();
        this.hear(() => this.know(one));
        this.side?.inner.update(one);
        this.changed(one.id, one);
      },
      gone: ({ id }) => { this.hear(() => this.sessions.delete(id)); this.side?.inner.gone(id); this.changed(id, null); this.recount(); },
      ask: (row) => {
        this.hear(() => this.asks.set(row.ask.id, row.ask));
        this.tell(row.ask);
        this.changed();
      },
      settled: (row) => { this.hear(() => this.asks.delete(row.ask_id)); forget(row.ask_id); this.changed(); },
      event: (event) => this.page?.event?.(event),
      clients: (rows) => { this.clients = rows; this.page?.clients?.(rows); },
      config: (row) => this.page?.config?.(row),
      wire: (row) => this.page?.wire?.(row),
    };
  }

  changed(id, one) {
    if (!id) this.side?.inner.redraw();
    if (this.nav) this.drawNav();
    this.page?.update?.(id, one);
  }

  begin() {
    this.go("/");
    this.page.composer?.input.focus();
  }

  go(path) {
    const [plain, hash] = path.split("#");
    if (path !== here() + location.hash) history.pushState(null, "", url(plain) + (hash ? `#${hash}` : ""));
    this.show();
  }

  show() {
    if (this.locked || !this.main) return;
    const [, first, second, third] = here().split("/").map(decodeURIComponent);
    this.page?.close?.();
    if (first === "sessions" && second && third === "timeline") this.page = new TimelinePage(this, second);
    else if (first === "sessions" && second) this.page = new SessionPage(this, second);
    else if (first === "sessions") this.page = new SessionsPage(this);
    else if (first === "approvals") this.page = new ApprovalsPage(this);
    else if (first === "clients") this.page = new ClientsPage(this);
    else if (first === "wire") this.page = new WirePage(this);
    else if (first === "fleet") this.page = new FleetPage(this);
    else if (first === "config") this.page = new ConfigPage(this, second || "");
    else this.page = new HomePage(this);
    document.body.dataset.page = first === "sessions" && !second ? "list" : first === "sessions" && third ? "timeline" : first || "home";
    fill(this.main, this.alarm, this.page.node);
    this.main.scrollTop = 0;
    this.page.open?.();
    if (!this.page.ownStream) this.live.open(() => this.page.wants?.() || "");
    this.side.inner.redraw();
    this.drawNav();
  }

  clicked(event) {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
    const link = event.target.closest?.("a[data-link]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const place = new URL(link.href);
    this.go((place.pathname.slice(url("").length) || "/") + place.hash);
  }

  theme() {
    const now = document.documentElement.dataset.theme || "";
    setTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
  }

  pressed(event) {
    if (this.locked || !this.side || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.closest?.("input, textarea, select");
    if (typing) { if (event.key === "Escape") event.target.blur(); return; }
    const keys = {
      n: () => this.begin(), "?": () => showKeys(), "/": () => this.side.inner.focus(), m: () => this.theme(),
      j: () => this.side.inner.step(1), k: () => this.side.inner.step(-1),
      h: () => this.go("/"), g: () => this.go("/approvals"), s: () => this.go("/config"), w: () => this.go("/wire"),
    };
    if (this.page?.key?.(event.key)) { event.preventDefault(); return; }
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  }
}

new App().start();
