// One thing of a transcript, drawn.
import { clock, h, icon, many, toast } from "./dom.js";
import { question } from "./approvals.js";
import { Prose, prose } from "./prose.js";
import { block, diff, terminal } from "./text.js";

const KINDS = { read: "read", ls: "read", glob: "search", grep: "search", write: "edit", edit: "edit", bash: "execute", shell: "execute", plan: "plan", ask_user: "hand", task: "talk" };
const TAIL = 20000; // characters of what runs that are shown while it runs

export function draw(item, old) {
  switch (item.kind) {
    case "user": return h("div.said.user", { "data-turn": item.steer ? null : "" }, by(item), content(item.content), link(item));
    case "text": return said(item, old);
    case "thinking": return thinking(item, old);
    case "call": return call(item, old);
    case "ask": return ask(item);
    case "plan": return h("div.plan", null, h("div.head", null, icon("plan"), h("span", null, "Plan")), h("ul", null, item.entries.map((one) => h("li", { "data-status": one.status }, one.content))));
    default: return h("div.note", { "data-level": item.level }, item.more ? h("details", null, h("summary", null, item.text), prose(item.more)) : item.text);
  }
}

function said(item, old) {
  const node = old ?? h("div.said.agent");
  if (!node.prose) { node.prose = new Prose(); node.append(...[node.prose.node, link(item)].filter(Boolean)); }
  if (item.html) node.prose.put(item.html); else node.prose.set(item.text, Boolean(item.draft));
  return node;
}

// The address of this place, for others.
function link(item) {
  if (!item.seq) return null;
  return h("a.permalink", { href: `${location.pathname}#m${item.seq}`, title: "Link to this place", "aria-label": "Copy a link to this place", onclick: (event) => {
    event.preventDefault();
    const place = new URL(location.href);
    place.hash = `m${item.seq}`;
    history.replaceState(null, "", place);
    navigator.clipboard?.writeText(place.href).then(() => toast("The link is copied."), () => toast("The link is in the address bar."));
  } }, "#");
}

function by(item) {
  const who = item.by ? item.by.name || (item.by.dialect === "dashboard" ? "" : item.by.dialect) : "";
  const words = [item.steer ? "into the turn" : "", who ? `from ${who}` : ""].filter(Boolean).join(", ");
  return words ? h("span.by", { title: item.at ? clock(item.at) : "" }, words) : null;
}

function content(blocks) {
  return blocks.map((one) => one.type === "image"
    ? h("img.picture", { src: `data:${/^image\/[\w.+-]+$/.test(one.mime_type) ? one.mime_type : "image/png"};base64,${one.data}`, alt: "Picture" })
    : attached(one.text) ?? h("div.plain", null, one.text));
}

// A file that went along, as the box for prompts wraps it.
function attached(text) {
  const found = text.match(/^File ([^\n]{1,200}):\n(`{3,})\n([^]*)\n\2$/);
  return found ? h("details.attached", null, h("summary", null, icon("read"), h("bdi", null, found[1])), h("pre.code", { tabindex: "0" }, found[3])) : null;
}

function thinking(item, old) {
  if (old && item.draft) { old.lastChild.textContent = item.text; return old; }
  return h("details.thinking", { open: Boolean(item.draft) || (old?.open ?? false) }, h("summary", null, icon("think"), item.draft ? "Thinking…" : "Thought"), h("div.plain", null, item.text));
}

const STATES = { planned: "", running: "running", done: "", failed: "failed", denied: "denied", cancelled: "cancelled", unknown: "unknown" };

function subject(item) {
  const args = item.args || {};
  return String(args.command ?? args.path ?? args.file_path ?? args.pattern ?? args.query ?? args.url ?? args.question ?? args.title ?? item.ask?.summary ?? "").split("\n")[0];
}

function call(item, old) {
  if (old?.term && item.state === "running" && old.dataset.state === "running" && !item.ask) { // only more output
    const near = old.term.scrollHeight - old.term.scrollTop - old.term.clientHeight < 40;
    old.live.data = tail(item.output);
    if (near) old.term.scrollTop = old.term.scrollHeight;
    return old;
  }
  const kind = KINDS[item.name] || "other";
  const waits = item.ask && !item.settled;
  const changes = item.detail?.diffs || [];
  const wide = kind === "execute";
  const text = item.state === "running" ? tail(item.output) : terminal(item.output || "");
  const fresh = item.state === "running" || item.state === "failed" || waits || changes.length > 0 || item.ask?.kind === "question" || (wide && text.split("\n").length <= 12);
  const shown = old?.dataset.touched ? old.open : fresh;
  const state = waits ? "needs you" : STATES[item.state];
  const body = [];
  if (item.args === null && item.raw) body.push(block(item.raw, "arguments"));
  else if (item.draft && item.raw) body.push(h("pre.raw", null, item.raw.slice(-2000)));
  if (waits) body.push(h("div.ask.inline", { "data-ask": item.ask.id }, question(item.ask)));
  changes.forEach((one) => body.push(diff(one)));
  if (!changes.length || item.state === "failed") {
    if (wide && item.args?.command) {
      const line = `$ ${item.args.command}`; // our own shell tool says it itself, others do not
      const rest = text.startsWith(line) ? text.slice(line.length).replace(/^\n+/, "") : text;
      body.push(h("pre.term", { tabindex: "0" }, h("span.cmd", null, line), rest ? `\n${cut(rest)}` : ""));
    }
    else if (text) body.push(h("pre.term", { tabindex: "0" }, cut(text)));
  }
  if (item.images?.length) body.push(content(item.images));
  if (item.detail?.exit_code && !text.includes(`[exit ${item.detail.exit_code}]`)) body.push(h("p.exit", null, `exit ${item.detail.exit_code}`));
  if (item.settled) body.push(h("p.settled", null, settledWords(item.settled)));
  if (item.why) body.push(h("p.settled.rule", null, `Allowed by ${item.why}`));
  if (!body.length && item.args && Object.keys(item.args).length) body.push(block(JSON.stringify(item.args, null, 2)));
  const node = h("details.call", { open: shown, "data-state": waits ? "waits" : item.state },
    h("summary", null, icon(kind), h("span.tool", null, item.name), h("span.subject", null, subject(item)), state ? h("span.pill", null, state) : null), body);
  node.hidden = item.name === "plan" && item.state === "done"; // the plan itself is shown
  if (old?.dataset.touched) node.dataset.touched = "1";
  node.querySelector("summary").addEventListener("click", () => { node.dataset.touched = "1"; });
  if (item.state === "running") {
    node.term = node.querySelector("pre.term");
    if (!node.term) { node.term = h("pre.term", { tabindex: "0" }); node.append(node.term); }
    const head = node.term.querySelector(".cmd");
    node.live = document.createTextNode(tail(item.output));
    node.term.replaceChildren(...(head ? [head, "\n"] : []), node.live);
    const { term } = node;
    requestAnimationFrame(() => { term.scrollTop = term.scrollHeight; });
  }
  return node;
}

function ask(item) {
  return h("div.ask.inline", { "data-ask": item.ask.id }, item.settled ? [h("strong", null, item.ask.title), h("p.settled", null, settledWords(item.settled))] : question(item.ask));
}

function settledWords(settled) {
  const words = { allow: "Allowed", allow_always: "Always allowed", deny: "Denied", deny_always: "Always denied", edit: "Answered instead", answer: "Answered", cancelled: "Withdrawn", expired: "Expired" }[settled.verdict] || settled.verdict;
  const by = settled.by;
  const who = by ? (by.dialect === "dashboard" ? by.name : [by.name || by.peer || by.id, by.dialect].filter(Boolean).join(" over ")) : "";
  return [words, who ? `by ${who}` : by ? "here" : "", settled.text && settled.verdict === "answer" ? `“${settled.text}”` : "", settled.comment ? `“${settled.comment}”` : "", settled.scope ? `(remembered: ${settled.scope})` : ""].filter(Boolean).join(" ");
}

function tail(text) {
  const rest = (text || "").length > TAIL ? `…${text.slice(-TAIL)}` : text || "";
  return terminal(rest);
}

function cut(text) {
  const lines = text.split("\n");
  return lines.length > 400 ? [...lines.slice(0, 100), `… ${many(lines.length - 300, "line")} …`, ...lines.slice(-200)].join("\n") : text;
}
