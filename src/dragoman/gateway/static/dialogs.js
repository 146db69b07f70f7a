// Small windows: a new session, the list of keys, a question.
import { get, post } from "./api.js";
import { h, toast } from "./dom.js";

function dialog(title, ...children) {
  const node = h("dialog", { "aria-label": title }, h("h1", null, title), children);
  node.addEventListener("close", () => node.remove());
  node.addEventListener("click", (event) => { if (event.target === node) node.close(); });
  document.body.append(node);
  node.showModal();
  return node;
}

export function field(name, input, says) {
  return h("label.field", null, h("span.label", null, name), input, says ? h("span.says", null, says) : null);
}

export function choice(values, chosen, attrs) {
  return h("select", attrs, values.map(([value, name]) => h("option", { value, selected: value === chosen }, name)));
}

export const MODES = [["supervised", "Supervised: asks before it acts"], ["readonly", "Read only: looks around"], ["full", "Full: acts without asking"]];

export async function newSession(app) {
  let agents, models;
  try { [agents, models] = await Promise.all([get("/api/agents"), get("/api/models")]); }
  catch (problem) { toast(problem.message, true); return; }
  const usual = agents.find((one) => one.default) || agents[0];
  const agent = choice(agents.map((one) => [one.alias, `${one.alias} · ${one.model}`]), usual?.alias, { name: "agent" });
  const last = [...app.sessions.values()].sort((a, b) => b.updated_at - a.updated_at)[0];
  const cwd = h("input", { name: "cwd", value: last?.cwd || app.status?.cwd || "", spellcheck: "false", autocapitalize: "off" });
  const mode = choice(MODES, usual?.mode || "supervised", { name: "mode" });
  const model = choice([["", "As the agent is configured"], ...models.slice(0, 400).map((one) => [one.ref, one.name === one.ref ? one.ref : `${one.name} · ${one.ref}`])], "", { name: "model" });
  const text = h("textarea", { name: "prompt", rows: "4", placeholder: "What should the agent do?" });
  const begin = h("button.primary", { type: "submit" }, "Start");
  const form = h("form", { method: "dialog", onsubmit: async (event) => {
    event.preventDefault();
    begin.disabled = true;
    try {
      const made = await post("/api/sessions", { agent: agent.value, cwd: cwd.value, mode: mode.value, model: model.value });
      if (text.value.trim()) await post(`/api/sessions/${made.id}/prompt`, { text: text.value, wait: false });
      if (!app.sessions.has(made.id)) app.sessions.set(made.id, made);
      node.close();
      app.go(`/sessions/${made.id}`);
    } catch (problem) { begin.disabled = false; toast(problem.message, true); }
  } },
  field("Prompt", text), field("Working directory", cwd),
  h("div.two", null, field("Agent", agent), field("Mode", mode)), field("Model", model),
  h("div.actions", null, h("button", { type: "button", onclick: () => node.close() }, "Cancel"), begin));
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });
  const node = dialog("New session", form);
  text.focus();
}

const KEYS = [["n", "New session"], ["j  k", "Next, previous session"], ["/", "Find a session"], ["g", "Approvals"], ["s", "Settings"], ["h", "Home"],
  ["i", "Write to the agent"], ["a", "Allow what is asked"], ["d", "Deny what is asked"], ["x", "Stop the turn"], ["Enter", "Send; with Shift a new line"], ["?", "These keys"]];

export function showKeys() {
  dialog("Keys", h("dl.keys", null, KEYS.map(([key, says]) => [h("dt", null, key.split("  ").map((one) => h("kbd", null, one))), h("dd", null, says)])));
}

export function show(title, ...children) { return dialog(title, ...children); }

export function confirmed(title, text, word) {
  return new Promise((done) => {
    let said = false;
    const node = dialog(title, h("p", null, text), h("div.actions", null,
      h("button", { type: "button", onclick: () => node.close() }, "Cancel"),
      h("button.danger", { type: "button", onclick: () => { said = true; node.close(); } }, word)));
    node.addEventListener("close", () => done(said));
  });
}
