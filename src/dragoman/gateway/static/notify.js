// Tells of what needs somebody: by the page itself while it is open, by push while it is not.
import { get, post, url } from "./api.js";
import { many, toast, visible } from "./dom.js";

export const possible = () => "Notification" in window;
export const wanted = () => { try { return localStorage.getItem("notify") === "1" && Notification.permission === "granted"; } catch { return false; } };

export function register() {
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.register(url("/sw.js"), { scope: url("/") }).catch(() => {}); // without it there is no shell when the host is away
}

export async function turn(on) {
  if (!possible()) { toast("This browser has no notifications.", true); return false; }
  if (on && (await Notification.requestPermission()) !== "granted") { toast("The browser does not allow it.", true); on = false; }
  try { localStorage.setItem("notify", on ? "1" : ""); } catch { /* no storage: for this page only */ }
  await push(on).catch((problem) => { if (on) toast(`While this page is open you are told. Push is not possible: ${problem.message}`); });
  return on;
}

async function push(on) {
  const host = await get("/api/push");
  if (!host.available) { if (on) throw new Error(host.problem); return; }
  const worker = await navigator.serviceWorker?.ready;
  if (!worker?.pushManager) throw new Error("this browser has none.");
  const old = await worker.pushManager.getSubscription();
  if (!on) {
    if (old) { await post("/api/push/leave", { endpoint: old.endpoint }); await old.unsubscribe(); }
    return;
  }
  const key = Uint8Array.from(atob(host.key.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
  const made = old || await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint, keys } = made.toJSON();
  await post("/api/push", { endpoint, keys });
}

// Whether questions are told of by open pages alone: nothing is pushed to this browser.
export async function alone() {
  if (!wanted()) return false;
  const worker = await navigator.serviceWorker?.getRegistration().catch(() => null);
  return !(await worker?.pushManager?.getSubscription().catch(() => null));
}

const told = new Set();

// The same on one line of a notification; what is left out is counted.
export function plain(text, room) {
  const shown = visible(text);
  return shown.length > room ? `${shown.slice(0, room)}… (${many(shown.length - room, "more character")})` : shown;
}

// A question came: say so, unless it is being looked at.
export function asked(app, ask, title) {
  if (!wanted() || told.has(ask.id) || (!document.hidden && document.hasFocus() && app.shows(ask))) return;
  told.add(ask.id);
  if (told.size > 500) told.delete(told.values().next().value);
  const options = { body: plain(ask.title || "Something needs you.", 200), tag: ask.id, icon: url("/static/icon-192.png"), data: { path: `sessions/${encodeURIComponent(ask.session)}` } };
  const head = plain(`Needs you: ${title}`, 100);
  const own = () => { const note = new Notification(head, options); note.onclick = () => { window.focus(); app.go(`/sessions/${encodeURIComponent(ask.session)}`); note.close(); }; };
  // The worker shows it whether it has this page already or not: on phones only a worker may.
  const worker = navigator.serviceWorker?.getRegistration() ?? Promise.resolve(null);
  worker.then((found) => (found?.active ? found.showNotification(head, options) : own())).catch(own);
}
