// Where prompts are written: menus for / and @, pictures and files by paste, drop or button.
import { get } from "./api.js";
import { fill, h, icon, toast } from "./dom.js";

const PICTURE = /^image\/(png|jpeg|gif|webp)$/;
const LARGEST = 5 * 1024 * 1024;
const LONGEST = 256 * 1024; // of a text
const MOST = 10;

export class Composer {
  constructor({ placeholder, label, cwd, send, rows = 1, extra = [] }) {
    this.cwd = cwd;
    this.sendAll = send;
    this.bag = [];
    this.menu = h("div.menu-list", { role: "listbox", id: `menu-${Math.random().toString(36).slice(2)}`, "aria-label": "Suggestions", hidden: true });
    this.input = h("textarea", {
      rows: String(rows), "aria-label": label, placeholder, "aria-autocomplete": "list", "aria-controls": this.menu.id,
      onkeydown: (event) => this.typed(event), oninput: () => { this.grow(); this.suggest(); }, onblur: () => setTimeout(() => this.hide(), 150),
      onpaste: (event) => { if (event.clipboardData?.files.length) { event.preventDefault(); this.take(event.clipboardData.files); } },
    });
    this.picker = h("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to attach", onchange: () => { this.take(this.picker.files); this.picker.value = ""; } });
    this.attach = h("button.round.quiet", { type: "button", title: "Attach pictures or text files", "aria-label": "Attach files", onclick: () => this.picker.click() }, icon("clip"));
    this.send = h("button.primary.round", { type: "submit", title: "Send (Enter)", "aria-label": "Send" }, icon("send"));
    this.things = h("div.things", { hidden: true });
    this.row = h("div.write", null, this.attach, this.input, extra, this.send);
    this.node = h("form.compose", {
      onsubmit: (event) => { event.preventDefault(); this.submit(); },
      ondragover: (event) => { if ([...event.dataTransfer.types].includes("Files")) { event.preventDefault(); this.node.dataset.over = ""; } },
      ondragleave: () => { delete this.node.dataset.over; },
      ondrop: (event) => { if (event.dataTransfer.files.length) { event.preventDefault(); this.take(event.dataTransfer.files); } delete this.node.dataset.over; },
    }, this.menu, this.things, this.row, this.picker);
  }

  get text() { return this.input.value; }
  set text(value) { this.input.value = value; this.grow(); }

  grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, 260)}px`;
  }

  // --- what goes along ---

  // One after the other; what is sent meanwhile waits for them.
  take(files) {
    const all = [...files]; // the list itself empties with the event, or with the button that has it
    this.taken = Promise.resolve(this.taken).then(() => this.read(all));
  }

  async read(files) {
    for (const file of files) {
      if (this.bag.length >= MOST) { toast(`At most ${MOST} files go along.`, true); break; }
      try { const one = await wrapped(file); this.bag.push(one); } catch (problem) { toast(problem.message, true); }
    }
    this.drawBag();
  }

  drawBag() {
    this.things.hidden = !this.bag.length;
    fill(this.things, this.bag.map((one, at) => h("span.thing", null,
      one.block.type === "image" ? h("img", { src: `data:${one.block.mime_type};base64,${one.block.data}`, alt: "" }) : icon("read"), h("bdi", null, one.name),
      h("button.quiet", { type: "button", "aria-label": `Leave ${one.name} out`, onclick: () => { this.bag.splice(at, 1); this.drawBag(); this.input.focus(); } }, "×"))));
  }

  async submit() {
    const text = this.text;
    this.hide();
    this.text = "";
    if (this.taken) await this.taken; // a picture that is still being read goes along
    const bag = this.bag;
    if (!text.trim() && !bag.length) return;
    this.bag = [];
    this.drawBag();
    const content = [...(text.trim() ? [{ type: "text", text }] : []), ...bag.map((one) => one.block)];
    try { await this.sendAll(bag.length ? { content } : { text }); }
    catch (problem) { // back it goes, before what was written since
      this.text = [text, this.text].filter((one) => one.trim()).join("\n");
      this.bag = [...bag, ...this.bag];
      this.drawBag();
      toast(problem.message, true);
    }
  }

  // --- menus ---

  typed(event) {
    if (!this.menu.hidden) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) { event.preventDefault(); this.choose((this.at + step + this.offers.length) % this.offers.length); return; }
      if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) { event.preventDefault(); this.pick(this.at); return; }
      if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); this.hide(); return; }
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); this.node.requestSubmit(); }
  }

  async suggest() {
    const before = this.text.slice(0, this.input.selectionStart);
    const slash = before.match(/^\/([\w:-]*)$/);
    const at = before.match(/(?:^|\s)@([^\s@]*)$/);
    if (!slash && !at) { this.hide(); return; }
    const asked = this.asked = (this.asked || 0) + 1;
    let offers = [];
    try {
      if (slash) {
        const all = await get(`/api/commands?cwd=${encodeURIComponent(this.cwd())}`);
        offers = all.filter((one) => one.name.includes(slash[1])).slice(0, 12).map((one) => ({ name: `/${one.name}`, says: one.description, from: 0, put: `/${one.name} ` }));
      } else {
        const all = await get(`/api/files?cwd=${encodeURIComponent(this.cwd())}&text=${encodeURIComponent(at[1])}`);
        const from = before.length - at[1].length - 1;
        offers = all.slice(0, 12).map((name) => ({ name, says: "", from, put: `@${name} ` }));
      }
    } catch { offers = []; } // no menu then
    if (asked !== this.asked) return;
    this.offers = offers;
    if (!offers.length) { this.hide(); return; }
    fill(this.menu, offers.map((one, n) => h("div.offer", { role: "option", id: `${this.menu.id}-${n}`, onmousedown: (event) => { event.preventDefault(); this.pick(n); } }, h("bdi.name", null, one.name), one.says ? h("span.says", null, one.says) : null)));
    this.menu.hidden = false;
    this.choose(0);
  }

  choose(n) {
    this.at = n;
    [...this.menu.children].forEach((one, at) => one.setAttribute("aria-selected", String(at === n)));
    this.input.setAttribute("aria-activedescendant", `${this.menu.id}-${n}`);
    this.menu.children[n]?.scrollIntoView({ block: "nearest" });
  }

  pick(n) {
    const one = this.offers[n];
    const end = this.input.selectionStart;
    this.text = this.text.slice(0, one.from) + one.put + this.text.slice(end);
    this.input.selectionStart = this.input.selectionEnd = one.from + one.put.length;
    this.hide();
    this.input.focus();
  }

  // An answer that is still under way opens no menu any more.
  hide() { this.asked = (this.asked || 0) + 1; this.menu.hidden = true; this.input.removeAttribute("aria-activedescendant"); }
}

async function wrapped(file) {
  const name = (file.name || "pasted").slice(0, 200);
  if (PICTURE.test(file.type)) {
    if (file.size > LARGEST) throw new Error(`${name} is larger than 5 MB.`);
    const bytes = new Uint8Array(await file.arrayBuffer());
    let raw = "";
    for (let at = 0; at < bytes.length; at += 32768) raw += String.fromCharCode(...bytes.subarray(at, at + 32768));
    return { name, block: { type: "image", mime_type: file.type, data: btoa(raw) } };
  }
  if (file.size > LONGEST) throw new Error(`${name} is longer than 256 KB: name it with @ instead, so that the agent reads what it needs.`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes.includes(0)) throw new Error(`${name} is neither a picture nor a text.`);
  const text = new TextDecoder().decode(bytes);
  const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((one) => one[0].length + 1)));
  return { name, block: { type: "text", text: `File ${name}:\n${fence}\n${text}\n${fence}` } };
}
