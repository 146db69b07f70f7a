// Small words for building the page. Text is always set as text, never parsed.

export function h(tag, attrs, ...children) {
  const [name, ...classes] = tag.split(".");
  const node = document.createElement(name || "div");
  if (classes.length) node.className = classes.join(" ");
  for (const [key, value] of Object.entries(attrs || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className += ` ${value}`;
    else if (key in node && typeof value !== "string") node[key] = value;
    else if (key === "value") node.value = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  add(node, children);
  return node;
}

export function add(node, children) {
  for (const child of [children].flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

// The same for what is drawn again and again: what is there already stays, so that a press that began
// on it is a click, and the keyboard is not lost. Nodes with a `data-id` or `href` are known by that;
// none of them may have listeners of its own.
export function renew(node, ...children) {
  const name = (one) => `${one.nodeName} ${one.getAttribute?.("data-id") ?? one.getAttribute?.("href") ?? ""}`;
  const known = new Map();
  for (const one of node.childNodes) known.set(name(one), [...(known.get(name(one)) || []), one]);
  let next = node.firstChild;
  for (const fresh of [...add(document.createDocumentFragment(), children).childNodes]) {
    const old = known.get(name(fresh))?.shift();
    if (old && old === next) next = old.nextSibling;
    else node.insertBefore(old || fresh, next);
    if (old && !old.isEqualNode(fresh)) patch(old, fresh);
  }
  for (const rest of known.values()) for (const one of rest) one.remove();
  return node;
}

function patch(old, fresh) {
  if (!old.attributes) { old.data = fresh.data; return; }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  renew(old, ...fresh.childNodes);
}

const paths = {
  plus: "M8 3v10M3 8h10",
  back: "M10 3 5 8l5 5",
  send: "M8 13V3M4 7l4-4 4 4",
  stop: "M4.5 4.5h7v7h-7z",
  talk: "M2.5 3.5h11v7.5H7l-3 2.5V11H2.5z",
  hand: "M8 1.8 14.2 13H1.8zM8 6v3.4M8 11.2v.1",
  plug: "M5.5 2v3.5M10.5 2v3.5M3.5 5.5h9V8a4.5 4.5 0 0 1-9 0zM8 12.5V15",
  wire: "M1.5 8h3l2-5 3 10 2-5h3",
  gear: "M2 4.5h6M11 4.5h3M2 11.5h3M8 11.5h6M9.5 3v3M6.5 10v3",
  folder: "M2 4h4l1.500 1.500H14V12.500H2z",
  read: "M3 2.5h7l3 3v8H3zM10 2.5v3h3",
  edit: "M3 13h3l7-7-3-3-7 7z",
  execute: "M3 4l4 4-4 4M8.5 12H13",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5l3 3",
  other: "M8 2.5 13.5 8 8 13.5 2.5 8z",
  clip: "M11.5 6.5 7 11a1.8 1.8 0 0 1-2.5-2.5L9.5 3.500a3 3 0 0 1 4.200 4.200L8.500 13a4.400 4.400 0 0 1-6.200-6.200L6.500 2.500",
  panel: "M2.5 3h11v10h-11zM9.500 3v10",
  bars: "M2.5 4h6M4.500 8h7M8 12h5.500",
  home: "M2.5 7.500 8 3l5.500 4.500V13h-3.500V9.500H6V13H2.500z",
  list: "M5.500 4h8M5.500 8h8M5.500 12h8M2.500 4h.1M2.500 8h.1M2.500 12h.1",
  nodes: "M8 2.500v3M3.500 13v-3h9v3M8 5.500v4.500M6 2.500h4M2 13h3M11 13h3",
  think: "M8 2a4 4 0 0 1 2.5 7.2V11h-5V9.2A4 4 0 0 1 8 2zM6 13.5h4",
  plan: "M3 4l1 1 2-2M3 8.5l1 1 2-2M3 13l1 1 2-2M8.5 4H13M8.5 8.5H13M8.5 13H13",
};

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", paths[name] || paths.other);
  svg.append(path);
  return svg;
}

export function ago(ms, now = Date.now()) {
  const s = Math.max(0, Math.round((now - ms) / 1000));
  if (s < 45) return "now";
  if (s < 3600) return `${Math.max(1, Math.round(s / 60))} min`;
  if (s < 86400) return `${Math.round(s / 3600)} h`;
  if (s < 86400 * 7) return `${Math.round(s / 86400)} d`;
  return new Date(ms).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

export function clock(ms) {
  return new Date(ms).toLocaleTimeString(undefined, { hour12: false });
}

export function money(value) {
  if (!value) return "";
  return value < 0.01 ? "<$0.01" : `$${value.toFixed(2)}`;
}

export function count(value) {
  if (value < 1000) return String(value);
  return value < 1e6 ? `${(value / 1000).toFixed(value < 10000 ? 1 : 0)}k` : `${(value / 1e6).toFixed(1)}M`;
}

const CONTROLS = "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");

// What steers a screen, or has no shape, is written out, as the command line does.
// So many of something: "1 line", "1,200 lines".
export function many(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function visible(text) {
  return String(text).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (one) => {
    const code = one.codePointAt(0);
    return `<${CONTROLS[code] || (code === 0x7f ? "DEL" : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`)}>`;
  });
}

export function titleOf(session) {
  const text = session.title || session.query || "";
  return visible(Array.from(text.split("\n")[0]).slice(0, 120).join("")) || "New session";
}

export function folder(path) {
  const parts = (path || "").split("/").filter(Boolean);
  return parts.length ? parts[parts.length - 1] : path || "";
}

let timer = 0;
export function toast(text, wrong = false) {
  const node = document.getElementById("toast");
  node.textContent = text;
  node.className = wrong ? "shown wrong" : "shown";
  clearTimeout(timer);
  timer = setTimeout(() => { node.className = ""; }, wrong ? 6000 : 2600);
}

export function setTheme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen; else delete document.documentElement.dataset.theme;
  try { if (chosen) localStorage.setItem("theme", chosen); else localStorage.removeItem("theme"); } catch { /* no storage: for this page only */ }
  toast({ light: "Light", dark: "Dark", "": "As the system is" }[chosen]);
}
