// What a session may be given, with the names people use for it.
import { get } from "./api.js";
import { fill, h } from "./dom.js";

const SAYS = { supervised: ["Supervised", "asks before it acts"], readonly: ["Read only", "looks around"], plan: ["Plan", "looks around, writes a plan, asks whether to go on"], full: ["Full", "acts without asking"] };
const ORDER = ["supervised", "plan", "readonly", "full"];

export function modeName(mode) { return SAYS[mode]?.[0] || mode; }

export function modes(app) {
  const known = app.status?.modes?.length ? app.status.modes : ["supervised", "readonly", "full"];
  return [...known].sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b)).map((mode) => [mode, SAYS[mode] ? `${SAYS[mode][0]}: ${SAYS[mode][1]}` : mode]);
}

let models = null;
export function allModels() {
  models ??= get("/api/models").catch((problem) => { models = null; throw problem; });
  return models;
}

// By whose models they are; a name that several have says whose it is.
export function fillModels(select, rows, chosen, first = null) {
  const groups = new Map();
  for (const one of rows.slice(0, 800)) {
    const whose = one.ref.split("/")[0];
    if (!groups.has(whose)) groups.set(whose, []);
    groups.get(whose).push(one);
  }
  const option = (ref, name) => h("option", { value: ref, selected: ref === chosen }, name);
  const parts = [...groups].map(([whose, ones]) => (groups.size > 1 ? h("optgroup", { label: whose }, ones.map((one) => option(one.ref, one.name || one.ref))) : ones.map((one) => option(one.ref, one.name || one.ref))));
  const known = !chosen || rows.some((one) => one.ref === chosen);
  fill(select, first === null ? null : option("", first), known ? null : option(chosen, chosen), parts);
  select.value = chosen;
}
