// Cost and tokens of a day: a column for each hour, in parts by agent and model.
import { count, h, money } from "./dom.js";

const NS = "http://www.w3.org/2000/svg";
const HIGH = 96;

function svg(name, attrs, ...children) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attrs)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export function plot(rows) {
  const narrow = matchMedia("(max-width: 800px)").matches; // drawn for its width, so that the hours stay readable
  const WIDE = narrow ? 330 : 720, GAP = narrow ? 3 : 5;
  const costs = rows.some((one) => one.cost > 0);
  const size = (one) => (costs ? one.cost : one.tokens_in + one.tokens_out);
  const names = new Map();
  for (const one of rows) {
    const name = `${one.agent || "gone"} · ${one.model.split("/").slice(1).join("/") || one.model || "unknown"}`;
    const sum = names.get(name) || { name, cost: 0, tokens: 0, calls: 0, size: 0 };
    sum.cost += one.cost; sum.tokens += one.tokens_in + one.tokens_out; sum.calls += one.calls; sum.size += size(one);
    names.set(name, sum);
    one.kind = name;
  }
  const kinds = [...names.values()].sort((a, b) => b.size - a.size || b.calls - a.calls);
  const colour = new Map(kinds.map((one, n) => [one.name, `part-${Math.min(n, 5)}`]));
  const hours = Array.from({ length: 24 }, () => []);
  for (const one of rows) hours[one.hour]?.push(one);
  const most = Math.max(...hours.map((ones) => ones.reduce((sum, one) => sum + size(one), 0))) || 1;
  const step = WIDE / 24;
  const chart = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH + 16}`, class: "plot", role: "img", "aria-label": `Today by the hour: ${costs ? money(kinds.reduce((sum, one) => sum + one.cost, 0)) : `${count(kinds.reduce((sum, one) => sum + one.tokens, 0))} tokens`}` });
  chart.append(svg("line", { x1: 0, x2: WIDE, y1: HIGH + .5, y2: HIGH + .5, class: "axis" }));
  hours.forEach((ones, hour) => {
    let y = HIGH;
    for (const one of ones.sort((a, b) => size(b) - size(a))) {
      const tall = Math.max(1.5, (size(one) / most) * (HIGH - 6));
      y -= tall;
      const words = `${String(hour).padStart(2, "0")}:00 ${one.kind}: ${[money(one.cost), `${count(one.tokens_in + one.tokens_out)} tokens`].filter(Boolean).join(", ")}`;
      chart.append(svg("rect", { x: hour * step + GAP / 2, y, width: step - GAP, height: tall, rx: 2, class: colour.get(one.kind) }, svg("title", {}, words)));
    }
    if (hour % 6 === 0) chart.append(svg("text", { x: hour * step + GAP / 2, y: HIGH + 13, class: "tick" }, `${String(hour).padStart(2, "0")}:00`));
  });
  return h("div.plot-box", null, chart,
    h("table.legend", null, h("caption.hidden-text", null, "Today by agent and model"),
      h("thead", null, h("tr", null, ["Agent and model", "Calls", "Tokens", "Cost"].map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", null, kinds.slice(0, 8).map((one) => h("tr", null, h("th", { scope: "row" }, h(`span.swatch.${colour.get(one.name)}`), h("bdi", null, one.name)), h("td", null, one.calls), h("td", null, count(one.tokens)), h("td", null, money(one.cost) || "–"))))));
}
