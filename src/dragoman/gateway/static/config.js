// Pages of the configuration: /config, /config/<section>. A change is in use at once.
import { get, put, url } from "./api.js";
import { fill, h, icon, setTheme, toast } from "./dom.js";
import { possible, turn, wanted } from "./notify.js";
import { showKeys } from "./dialogs.js";
import { choice } from "./dialogs.js";

const MAPS = {
  agents: "name of an agent", providers: "name of a provider", mcp: "name of a server", "gateway.webhooks": "name of a webhook",
  "gateway.callbacks": "name of a callback", "openclawos.apps": "name of an app",
};
const SECTIONS = [
  ["acp", "ACP", "Editors and IDEs: default agent, how many sessions, when idle ones are dropped"],
  ["agents", "Agents", "Names, models, prompts and tools"],
  ["autonomy", "Autonomy", "What agents may do without asking"],
  ["zeroclaw", "zeroclaw", "Terminal clients and scripts"],
  ["humanlayer", "humanlayer", "Approvers"],
  ["openclawos", "openclawos", "Apps"],
  ["gateway", "Gateway", "HTTP, WebSocket, this dashboard, webhooks"],
  ["providers", "Providers", "Ways to models"],
  ["mcp", "MCP servers", "Tools from other programs"],
  ["memory", "Memory", "What agents remember"],
  ["sandbox", "Sandbox", "What tools run in"],
  ["limits", "Limits", "Bounds of the whole host"],
  ["log", "Log", "What is written down"],
];

export class ConfigPage {
  constructor(app, section) {
    this.app = app;
    this.section = section;
    this.body = h("div");
    this.node = h("div.page", null, this.body);
  }

  open() { this.section ? this.form() : this.index(); }

  index() {
    const theme = choice([["", "As the system is"], ["light", "Light"], ["dark", "Dark"]], document.documentElement.dataset.theme || "", { id: "theme", onchange: () => setTheme(theme.value) });
    const notify = h("input.switch", { id: "notify", type: "checkbox", role: "switch", checked: possible() && wanted(), disabled: !possible(), onchange: async () => { notify.checked = await turn(notify.checked); } });
    fill(this.body, h("header.top", null, h("h1", null, "Settings")),
      h("section.own", { "aria-label": "This browser" }, h("h2", null, "This browser"),
        h("div.settings", null,
          h("div.setting", null, h("div.about", null, h("label", { for: "theme" }, "Theme")), h("div.control", null, theme)),
          h("div.setting", null, h("div.about", null, h("label", { for: "notify" }, "Notifications"), h("p", null, "Told when something needs you: by this page while it is open, by push while it is not.")), h("div.control", null, notify)),
          h("div.setting", null, h("div.about", null, h("p", null, "All of it can be done by keyboard.")), h("div.control", null, h("button", { type: "button", onclick: () => showKeys() }, "Keys", h("kbd", null, "?")))))),
      h("h2.host-part", null, "The host"),
      h("div.cards", null, SECTIONS.map(([id, name, says]) => h("a.card", { href: url(`/config/${id}`), "data-link": true }, h("strong", null, name), h("span", null, says)))));
  }

  async form() {
    const name = SECTIONS.find(([id]) => id === this.section)?.[1] || this.section;
    const head = h("header.top", null, h("a.back", { href: url(this.section.includes(".") ? `/config/${this.section.split(".")[0]}` : "/config"), "data-link": true, "aria-label": "Back" }, icon("back")), h("h1", null, name));
    fill(this.body, head);
    let fields, agents;
    try { [fields, agents] = await Promise.all([get(`/api/config/fields?path=${encodeURIComponent(this.section)}`), get("/api/agents")]); }
    catch (problem) { fill(this.body, head, h("p.calm", null, problem.message)); return; }
    this.fields = new Map();
    const maps = Object.keys(MAPS).filter((map) => map === this.section || map.startsWith(`${this.section}.`));
    const shown = fields.filter((one) => !maps.some((map) => one.key.startsWith(`${map}.`)));
    fill(this.body, head,
      shown.length ? h("div.settings", null, shown.map((one) => this.field(one, agents))) : null,
      maps.map((map) => this.map(map, fields)),
      !fields.length ? h("p.calm", null, "Nothing to set here.") : null);
  }

  // Entries that have names of their own: one page each, and a way to begin another.
  map(map, fields) {
    const rest = fields.filter((one) => one.key.startsWith(`${map}.`)).map((one) => one.key.slice(map.length + 1));
    const names = [...new Set(rest.map((one) => one.split(".")[0]))].filter((one) => one !== "<name>" && !one.startsWith('"'));
    const name = h("input", { "aria-label": "Name", placeholder: MAPS[map], pattern: "[A-Za-z0-9_-]+", required: true, spellcheck: "false", autocapitalize: "off" });
    return h("section.map", null,
      map === this.section ? null : h("h2", null, map.split(".").pop()),
      names.length ? h("div.cards", null, names.map((one) => h("a.card", { href: url(`/config/${map}.${one}`), "data-link": true }, h("strong", null, one)))) : h("p.says", null, "None is configured yet."),
      h("form.begin", { onsubmit: (event) => { event.preventDefault(); this.app.go(`/config/${map}.${name.value}`); } }, name, h("button", { type: "submit" }, icon("plus"), "Add")));
  }

  field(one, agents) {
    const name = one.key.slice(this.section.length + 1);
    const id = `f-${one.key}`;
    const note = h("span.note", { role: "status" });
    const shown = format(one.value, one.schema);
    let input;
    const optional = one.default === null || one.default === undefined;
    const type = optional && one.schema.type === "boolean" ? "maybe" : one.schema.type;
    const unset = optional ? [["", "not set"]] : [];
    if (type === "maybe") input = choice([...unset, ["true", "yes"], ["false", "no"]], shown, { id });
    else if (one.schema.enum) input = choice([...unset, ...one.schema.enum.map((value) => [String(value), value === "" ? "not set" : String(value)])], shown, { id });
    else if (type === "boolean") input = h("input.switch", { id, type: "checkbox", role: "switch", checked: one.value === true });
    else if (one.key === "acp.default_agent") input = choice([["", "the only one there is"], ...agents.map((agent) => [agent.alias, agent.alias])], shown, { id });
    else if (type === "integer" || type === "number") input = h("input", { id, type: "number", value: shown, min: one.schema.minimum ?? null, max: one.schema.maximum ?? null, placeholder: optional ? "not set" : null, step: type === "integer" ? "1" : "any" });
    else input = h("input", { id, type: "text", value: one.secret ? "" : shown, placeholder: one.secret && one.value ? "hidden; type to replace" : optional ? "not set" : "", spellcheck: "false", autocomplete: "off" });
    const save = h("button.primary.save", { type: "submit", hidden: true }, "Save");
    const read = () => (type === "boolean" ? input.checked : input.value);
    const before = () => (type === "boolean" ? this.fields.get(one.key).value === true : one.secret ? "" : format(this.fields.get(one.key).value, one.schema));
    input.addEventListener("input", () => { save.hidden = String(read()) === String(before()); note.textContent = ""; if (type === "boolean") form.requestSubmit(); });
    const form = h("form.setting", { "data-key": one.key, onsubmit: async (event) => {
      event.preventDefault();
      const known = this.fields.get(one.key);
      if (known.saving) { known.again = true; return; } // one after the other: the last word is what stays
      known.saving = true; // the button stays: a form without one takes no Enter
      let sent;
      do {
        known.again = false;
        sent = read();
        try {
          const made = await put("/api/config", { key: one.key, value: parse(sent, one.schema, optional) });
          known.value = made.value;
          save.hidden = read() === sent;
          note.className = "note";
          note.textContent = one.key.startsWith("gateway.") ? "Saved. Used from the next start." : "Saved. In use now.";
          source.textContent = "set by file";
        } catch (problem) { note.className = "note wrong"; note.textContent = problem.message; }
      } while (known.again && read() !== sent);
      known.saving = false;
    } });
    const source = h("span.source", null, `set by ${one.source.split(" ")[0]}`);
    this.fields.set(one.key, { ...one, input, save, refresh: () => {
      if (type === "boolean") input.checked = this.fields.get(one.key).value === true;
      else if (!one.secret) input.value = format(this.fields.get(one.key).value, one.schema);
    } });
    form.append(
      h("div.about", null, h("label", { for: id }, name), h("p", null, one.doc), h("p.hint", null, h("code", null, one.env), source)),
      h("div.control", null, input, save, note));
    return form;
  }

  // What was changed while no stream was open.
  async connected() {
    if (!this.fields) return;
    const rows = await get(`/api/config/fields?path=${encodeURIComponent(this.section)}`).catch(() => []);
    for (const row of rows) {
      const known = this.fields.get(row.key);
      if (known && JSON.stringify(known.value) !== JSON.stringify(row.value)) this.config(row);
    }
  }

  // Somebody else changed it: show that, unless it is being edited here.
  config(row) {
    const known = this.fields?.get(row.key);
    if (!known) return;
    known.value = row.value;
    if (known.save.hidden && !known.saving && document.activeElement !== known.input) { known.refresh(); toast(`${row.key} was changed.`); }
  }
}

function format(value, schema) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function parse(text, schema, optional) {
  if (typeof text === "boolean") return text;
  if (optional && text === "") return null;
  if (schema.type === "boolean") return text === "true";
  if (schema.type === "integer" || schema.type === "number") return text === "" ? null : Number(text);
  if (schema.type === "array") return text.split(",").map((one) => one.trim()).filter(Boolean);
  if (schema.type === "object") return JSON.parse(text || "{}");
  return text;
}
