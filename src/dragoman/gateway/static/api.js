// Talks to the host: REST by fetch, everything live by one event stream per page.

const base = new URL(document.baseURI).pathname.replace(/\/$/, "");

export class Problem extends Error {
  constructor(status, error) {
    super([error.message, error.hint].filter(Boolean).join(" "));
    this.status = status;
    this.code = error.code;
  }
}

export async function call(method, path, body) {
  const headers = { "x-dragoman": "1" };
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
  const value = await answer.json().catch(() => ({ error: { message: `Status ${answer.status}` } }));
  if (!answer.ok) {
    if (answer.status === 401) window.dispatchEvent(new Event("locked"));
    throw new Problem(answer.status, value.error || { message: `Status ${answer.status}` });
  }
  return value;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);
export const put = (path, body) => call("PUT", path, body);
export const patch = (path, body) => call("PATCH", path, body);
export const del = (path) => call("DELETE", path);
export const url = (path) => base + path;
export const here = () => location.pathname.slice(base.length) || "/";

// One stream at a time; `open` decides what is asked for, each time anew, so that a page that comes
// back from sleep goes on where it stopped.
export class Live {
  constructor(on) {
    this.on = on;
    this.source = null;
    this.wait = 500;
    this.want = () => "";
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.rest = setTimeout(() => this.close("asleep"), 20000);
      else { clearTimeout(this.rest); if (!this.source) this.open(); }
    });
  }

  open(want) {
    if (want) this.want = want;
    this.close();
    const source = new EventSource(url(`/api/live?${this.want()}`));
    this.source = source;
    for (const name of ["hello", "session", "gone", "ask", "settled", "event", "clients", "config", "wire"]) {
      source.addEventListener(name, (event) => {
        if (source !== this.source) return;
        if (name === "hello") { this.wait = 500; this.on.state("live"); }
        this.on[name]?.(JSON.parse(event.data));
      });
    }
    source.onerror = () => {
      if (source !== this.source) return;
      this.close("away");
      this.again = setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(this.wait * 2, 10000);
    };
  }

  close(state) {
    clearTimeout(this.again);
    if (this.source) this.source.close();
    this.source = null;
    if (state) this.on.state(state);
  }
}
