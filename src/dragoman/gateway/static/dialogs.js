// Small windows: the list of keys, the turns of a session, a question.
import { get } from "./api.js";
import { ago, fill, h, toast, visible } from "./dom.js";

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

const KEYS = [
  ["Everywhere", [["n", "New session"], ["j  k", "Next, previous session"], ["/", "Search all sessions"], ["h", "Home"], ["g", "Approvals"], ["w", "Wire"], ["s", "Settings"], ["m", "Light, dark or the system's theme"], ["?", "These keys"]]],
  ["In a session", [["i", "Write to the agent"], ["a", "Allow what is asked"], ["d", "Deny what is asked"], ["x", "Stop the turn"], ["[  ]", "Turn before, turn after"], ["t", "Jump to a turn"], ["p", "Changes, checkpoints, agents"], ["l", "Timeline"]]],
  ["While writing", [["Enter", "Send; with Shift a new line"], ["/  @", "Commands, files"], ["Esc", "Leave the field"]]],
];

export function showKeys() {
  const node = dialog("Keys", h("div.key-map", null, KEYS.map(([name, keys]) => h("section", null, h("h2", null, name), h("dl.keys", null, keys.map(([key, says]) => [h("dt", null, key.split("  ").map((one) => h("kbd", null, one))), h("dd", null, says)]))))));
  node.classList.add("wide");
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

// The turns of a session, newest first; one is chosen and the page goes there.
export function turnsDialog(page) {
  const list = h("div.turn-list");
  const words = h("input", { type: "search", placeholder: "Words of the prompt", "aria-label": "Words of the prompt", oninput: () => draw() });
  const more = h("button.quiet", { type: "button", hidden: true, onclick: () => load() }, "Show earlier");
  let turns = [];
  const draw = () => {
    const wanted = words.value.toLowerCase();
    const fits = turns.filter((one) => one.title.toLowerCase().includes(wanted));
    fill(list, fits.length ? fits.map((one) => h("button.turn-choice", { type: "button", onclick: () => { node.close(); page.goto(one.seq); } }, h("bdi", null, visible(one.title || "") || "(no words)"), h("span.when", null, ago(one.began)))) : h("p.calm", null, "No turn fits."));
  };
  const load = async () => {
    more.disabled = true;
    try {
      const found = await get(`${page.path}/timeline?limit=100${turns.length ? `&before=${turns[turns.length - 1].seq}` : ""}`);
      turns = [...turns, ...found.turns.reverse()].slice(0, 5000);
      more.hidden = !found.more;
      draw();
    } catch (problem) { toast(problem.message, true); }
    more.disabled = false;
  };
  const node = dialog("Jump to a turn", words, list, more);
  load();
  words.focus();
}
