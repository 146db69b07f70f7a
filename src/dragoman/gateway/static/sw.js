// Keeps the shell for when the host is away, and shows what the host pushes. Data is never kept.
const BASE = "{{base}}";
const SHELL = "dragoman-{{version}}";
const FILES = {{files}};

self.addEventListener("install", (event) => {
  // What is asked of the host itself does not wait until this worker has woken up.
  event.addRoutes?.({ condition: { urlPattern: new URLPattern({ pathname: `${BASE}api/*` }) }, source: "network" }).catch(() => {});
  event.waitUntil(caches.open(SHELL).then((cache) => cache.addAll(FILES.map((name) => BASE + name))).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(caches.keys()
    .then((names) => Promise.all(names.filter((name) => name.startsWith("dragoman-") && name !== SHELL).map((name) => caches.delete(name))))
    .then(() => self.clients.claim()));
});

// The host first, always: what is kept is only for when it cannot be reached.
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const place = new URL(request.url);
  if (request.method !== "GET" || place.origin !== location.origin || !place.pathname.startsWith(BASE)) return;
  const inner = place.pathname.slice(BASE.length);
  if (request.mode === "navigate" && !/^(api|apps|hooks)\//.test(inner) && inner !== "openapi.json" && inner !== "metrics")
    event.respondWith(fetch(request).catch(() => caches.match(BASE, { cacheName: SHELL })));
  else if (inner.startsWith("static/"))
    event.respondWith(fetch(request).catch(() => caches.match(request, { cacheName: SHELL, ignoreSearch: true })));
});

self.addEventListener("push", (event) => {
  let told = {};
  try { told = event.data.json(); } catch { /* a push without words still says that something waits */ }
  event.waitUntil(self.registration.showNotification(String(told.title || "Dragoman"), {
    body: String(told.body || "Something needs you."), tag: String(told.tag || "dragoman"),
    icon: `${BASE}static/icon-192.png`, badge: `${BASE}static/icon-192.png`, data: { path: String(told.path || "approvals") },
  }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const target = new URL(event.notification.data?.path || "approvals", location.origin + BASE);
  if (target.origin !== location.origin || !target.pathname.startsWith(BASE)) return;
  event.waitUntil(self.clients.matchAll({ type: "window", includeUncontrolled: true }).then((pages) => {
    const page = pages.find((one) => new URL(one.url).pathname.startsWith(BASE));
    return page ? page.focus().then((one) => one.navigate(target.href)) : self.clients.openWindow(target.href);
  }));
});
