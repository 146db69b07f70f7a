// Talks to the host: REST by fetch, everything live by one event stream per page.

const base = new URL(document.baseURI).pathname.replace(/\/$/, "");

export class Problem extends Error {
  constructor(status, error) {
    super([error.message, error.hint].filter(Boolean).join(" "));
    this.status = status;
    this.code = error.code;
  }
}

const OURS = { "x-dragoman": "1" };

async function problem(answer) {
  const { error } = await answer.json().catch(() => ({}));
  if (answer.status === 401) window.dispatchEvent(new Event("locked"));
  return new Problem(answer.status, error || { message: `Status ${answer.status}` });
}

export async function call(method, path, body) {
  const headers = { ...OURS };
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(base + path, {
      method, headers, credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Problem(0, { message: "The host cannot be reached.", code: "away" });
  }
  if (answer.status === 204) return null;
  if (!answer.ok) throw await problem(answer);
  return answer.json();
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);
export const put = (path, body) => call("PUT", path, body);
export const patch = (path, body) => call("PATCH", path, body);
export const del = (path) => call("DELETE", path);
export const url = (path) => base + path;
export const here = () => location.pathname.slice(base.length) || "/";

const SHARED = ["session", "gone", "ask", "settled", "clients", "config"]; // the same whatever a page asks for
const OWN = ["hello", "event", "wire"];

// One stream at a time; `open` decides what is asked for, each time anew, so that a page that comes
// back from sleep goes on where it stopped. The stream before it is heard until it speaks.
export class Live {
  constructor(on, watches) {
    this.on = on;
    this.watches = watches;
    this.source = null;
    this.old = null;
    this.wait = 500;
    this.want = () => "";
    this.off = false; // nothing is opened: who is here is not let in
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.rest = setTimeout(() => this.sleep(), 20000);
      else { clearTimeout(this.rest); this.seen?.(); if (!this.source) this.open(); }
    });
  }

  open(want) {
    if (want) this.want = want;
    if (this.off) return;
    clearTimeout(this.again);
    if (this.source?.spoke) this.old = this.source;
    else this.source?.close();
    const source = new EventSource(url(`/api/live?${this.want()}`));
    this.source = source;
    const hear = (names, fits) => {
      for (const name of names)
        source.addEventListener(name, (event) => {
          if (!fits()) return;
          if (name === "hello") { source.spoke = true; this.old?.close(); this.old = null; this.wait = 500; this.on.state("live"); }
          this.on[name]?.(JSON.parse(event.data));
        });
    };
    hear(SHARED, () => source === this.source || source === this.old);
    hear(OWN, () => source === this.source);
    source.onerror = () => {
      if (source !== this.source && source !== this.old) return;
      this.close("away");
      this.again = setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(this.wait * 2, 10000);
      if (!source.spoke) this.ask(source.url);
    };
  }

  // An event stream does not say why it was refused; the same request does.
  async ask(place) {
    const over = new AbortController();
    try {
      const answer = await fetch(place, { headers: OURS, credentials: "same-origin", signal: over.signal });
      if (answer.status >= 400 && answer.status < 500) { const why = await problem(answer); if (why.status !== 401 && !this.source?.spoke) this.on.refused(why); }
    } catch { /* nobody answers: it is tried again anyway */ } finally { over.abort(); }
  }

  close(state) {
    clearTimeout(this.again);
    this.source?.close();
    this.old?.close();
    this.source = this.old = null;
    if (state) this.on.state(state);
  }

  stop() { this.close(); this.off = true; }
  start() { this.off = false; }

  // A browser has few connections for each host, so hidden pages have none; but one of them watches
  // for all where nobody else tells of questions.
  async sleep() {
    if (this.off) return;
    this.close("asleep");
    const gone = new AbortController();
    const seen = new Promise((done) => { this.seen = () => { gone.abort(); done(); }; });
    if (!(await this.watches()) || !document.hidden) return;
    await navigator.locks?.request(`watch ${url("/")}`, { signal: gone.signal }, () => { this.open(); return seen; }).catch(() => {}); // it is seen again
  }
}
