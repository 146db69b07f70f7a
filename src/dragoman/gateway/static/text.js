// A small reader of Markdown that builds nodes; nothing it is given can become markup.
import { h } from "./dom.js";

const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*(?!\w)|\[([^\]]+)\]\((https?:\/\/[^)\s]+)\)|(https?:\/\/[^\s<>()]+[^\s<>().,;:!?'"])/g;

export function inline(text) {
  const out = [];
  let at = 0;
  for (const m of text.matchAll(INLINE)) {
    if (m.index > at) out.push(text.slice(at, m.index));
    if (m[1]) out.push(h("code", null, m[2].trim() || m[2]));
    else if (m[3]) out.push(h("strong", null, inline(m[3])));
    else if (m[4]) out.push(h("em", null, inline(m[4])));
    else {
      const href = m[6] || m[7];
      out.push(h("a", { href, target: "_blank", rel: "noopener noreferrer" }, m[5] || href));
    }
    at = m.index + m[0].length;
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

export function prose(text) {
  const out = [];
  const lines = text.split("\n");
  let i = 0;
  while (i < lines.length) {
    const line = lines[i];
    const fence = line.match(/^\s*(```+|~~~+)\s*([\w+-]*)/);
    if (fence) {
      const code = [];
      for (i++; i < lines.length && !lines[i].trim().startsWith(fence[1]); i++) code.push(lines[i]);
      i++;
      out.push(block(code.join("\n"), fence[2]));
      continue;
    }
    const head = line.match(/^(#{1,6})\s+(.*)/);
    if (head) { out.push(h(`h${Math.min(6, head[1].length + 2)}`, null, inline(head[2]))); i++; continue; }
    if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) { out.push(h("hr")); i++; continue; }
    if (/^\s*([-*+]|\d+[.)])\s+/.test(line)) {
      const ordered = /^\s*\d/.test(line);
      const list = h(ordered ? "ol" : "ul");
      if (ordered) list.start = parseInt(line, 10) || 1;
      while (i < lines.length && /^\s*([-*+]|\d+[.)])\s+/.test(lines[i])) {
        const words = [lines[i].replace(/^\s*([-*+]|\d+[.)])\s+/, "")];
        for (i++; i < lines.length && /^\s{2,}\S/.test(lines[i]) && !/^\s*([-*+]|\d+[.)])\s+/.test(lines[i]); i++) words.push(lines[i].trim());
        list.append(h("li", null, inline(words.join(" "))));
      }
      out.push(list);
      continue;
    }
    if (/^\s*>/.test(line)) {
      const quote = [];
      for (; i < lines.length && /^\s*>/.test(lines[i]); i++) quote.push(lines[i].replace(/^\s*>\s?/, ""));
      out.push(h("blockquote", null, prose(quote.join("\n"))));
      continue;
    }
    if (!line.trim()) { i++; continue; }
    const words = [];
    for (; i < lines.length && lines[i].trim() && !/^\s*(```|~~~|#{1,6}\s|>|[-*+]\s+\S|\d+[.)]\s)/.test(words.length ? lines[i] : ""); i++) words.push(lines[i]);
    const p = h("p");
    words.forEach((one, n) => { if (n) p.append(h("br")); p.append(...inline(one)); });
    out.push(p);
  }
  return out;
}

export function block(text, label = "") {
  const pre = h("pre.code", { tabindex: "0" }, h("code", null, text));
  const copy = h("button.copy", { type: "button", title: "Copy", onclick: () => {
    navigator.clipboard?.writeText(text).then(() => { copy.textContent = "Copied"; setTimeout(() => { copy.textContent = "Copy"; }, 1200); });
  } }, "Copy");
  return h("div.block", { "data-label": label || null }, pre, copy);
}

const MOST = 3000;

// Lines of a change, by the longest common part; large files are shown whole, old then new.
export function diff(one) {
  const before = one.old === null || one.old === undefined ? [] : one.old.split("\n");
  const after = one.new.split("\n");
  const rows = compare(before, after);
  const added = rows.filter((r) => r[0] === "+").length;
  const removed = rows.filter((r) => r[0] === "-").length;
  const body = h("div.diff", { role: "region", "aria-label": `Changes in ${one.path}`, tabindex: "0" });
  let skipped = 0;
  rows.forEach((row, n) => {
    const near = rows.slice(Math.max(0, n - 3), n + 4).some((r) => r[0] !== " ");
    if (!near) { skipped++; return; }
    if (skipped) { body.append(h("div.gap", null, `${skipped} unchanged`)); skipped = 0; }
    const kind = row[0] === "+" ? "plus" : row[0] === "-" ? "minus" : "same";
    body.append(h(`div.row.${kind}`, null, h("span.no", null, row[2] || ""), h("span.sign", null, row[0]), h("span.line", null, row[1] || " ")));
  });
  if (skipped) body.append(h("div.gap", null, `${skipped} unchanged`));
  return h("div.change", null,
    h("div.file", null, h("span.path", { title: one.path }, h("bdi", null, one.path)),
      h("span.added", null, `+${added}`), removed ? h("span.removed", null, `−${removed}`) : null),
    body);
}

function compare(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const left = a.slice(start, a.length - end), right = b.slice(start, b.length - end);
  const rows = a.slice(0, start).map((text, n) => [" ", text, n + 1]);
  if (left.length * right.length > MOST * MOST / 4) {
    left.forEach((text, n) => rows.push(["-", text, start + n + 1]));
    right.forEach((text, n) => rows.push(["+", text, start + n + 1]));
  } else {
    const w = right.length + 1;
    const table = new Uint16Array((left.length + 1) * w);
    for (let i = left.length - 1; i >= 0; i--)
      for (let j = right.length - 1; j >= 0; j--)
        table[i * w + j] = left[i] === right[j] ? table[(i + 1) * w + j + 1] + 1 : Math.max(table[(i + 1) * w + j], table[i * w + j + 1]);
    let i = 0, j = 0;
    while (i < left.length || j < right.length) {
      if (i < left.length && j < right.length && left[i] === right[j]) { rows.push([" ", left[i], start + j + 1]); i++; j++; }
      else if (i < left.length && (j >= right.length || table[(i + 1) * w + j] >= table[i * w + j + 1])) rows.push(["-", left[i], start + ++i]);
      else rows.push(["+", right[j], start + ++j]);
    }
  }
  for (let n = 0; n < end; n++) rows.push([" ", a[a.length - end + n], b.length - end + n + 1]);
  return rows;
}

// Terminal output: colours are dropped, carriage returns rewrite their line.
export function terminal(text) {
  const plain = text.replace(/\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[@-_]/g, "");
  const lines = plain.split("\n").map((line) => {
    const parts = line.replace(/\r$/, "").split("\r");
    return parts[parts.length - 1];
  });
  return lines.join("\n").replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g, "");
}
