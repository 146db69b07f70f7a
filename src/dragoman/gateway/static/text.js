// Blocks of text: code, differences, what terminals print.
import { h, many } from "./dom.js";

export function block(text, label = "") {
  return h("div.block", { "data-label": label || null }, h("pre.code", { tabindex: "0" }, h("code", null, text)), copied(text));
}

export function copied(text) {
  const copy = h("button.copy", { type: "button", title: "Copy", onclick: () => {
    navigator.clipboard?.writeText(text).then(() => { copy.textContent = "Copied"; setTimeout(() => { copy.textContent = "Copy"; }, 1200); });
  } }, "Copy");
  return copy;
}

const MOST = 3000;

// Lines of a change, by the longest common part; large files are shown whole, old then new.
export function diff(one) {
  const before = one.old === null || one.old === undefined ? [] : one.old.split("\n");
  const after = one.new.split("\n");
  const rows = compare(before, after);
  const added = rows.filter((r) => r[0] === "+").length;
  const removed = rows.filter((r) => r[0] === "-").length;
  const body = h("div.diff", { role: "group", "aria-label": `Changes in ${one.path}`, tabindex: "0" });
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

const ROWS = 2000; // lines of one diff that are drawn

// A diff as the host writes it, with the numbers of its lines.
export function unified(text, path) {
  const lines = text.replace(/\n$/, "").split("\n");
  const body = h("div.diff", { role: "group", "aria-label": `Changes in ${path}`, tabindex: "0" });
  let at = 0;
  for (const line of lines.slice(0, ROWS)) {
    const place = line.match(/^@@ -\d+(?:,\d+)? \+(\d+)/);
    if (place) { if (body.childNodes.length) body.append(h("div.gap", null, "…")); at = Number(place[1]); continue; }
    if (line[0] === "\\") { body.append(h("div.gap", null, "no line feed at the end")); continue; }
    const kind = line[0] === "+" ? "plus" : line[0] === "-" ? "minus" : "same";
    body.append(h(`div.row.${kind}`, null, h("span.no", null, kind === "minus" ? "" : at), h("span.sign", null, line[0] || " "), h("span.line", null, line.slice(1) || " ")));
    if (kind !== "minus") at++;
  }
  if (lines.length > ROWS) body.append(h("div.gap", null, many(lines.length - ROWS, "more line")));
  return body;
}
