// What all browser tests share: one Chromium, paired, that notes every error and foreign request.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

export const require = createRequire(new URL("../interop/node/package.json", import.meta.url));
const { chromium } = require("playwright-core");
export const tell = (row) => process.stdout.write(`${JSON.stringify(row)}\n`);
const LIMIT = 180000; // of every wait
const ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export async function browse({ address, code, executable, width = 1280, height = 820, timeout = LIMIT }, act) {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const profile = mkdtempSync(join(tmpdir(), "dragoman-browser-"));
  const context = await chromium.launchPersistentContext(profile, { executablePath: executable, headless: true, args: ARGS, viewport: { width, height } });
  context.setDefaultTimeout(timeout);
  const page = context.pages()[0] ?? (await context.newPage());
  const troubles = [];
  watch(page, address, troubles);
  const asked = record(context);
  let failed = false;
  try {
    if (code) {
      await page.goto(`${address}/`);
      await page.fill("input.code", code);
      await page.click("text=Pair this browser");
      await page.waitForSelector(".hello h1");
    }
    await act({ context, page, troubles, wait: async () => (await lines.next()).value });
    tell({ step: "over", troubles });
  } catch (problem) {
    failed = true;
    if (process.env.SCREENS) await page.screenshot({ path: join(process.env.SCREENS, "99-failed.png") }).catch(() => {});
    tell({ step: "failed", problem: String(problem.stack ?? problem), troubles, shown: await shown(context), ...asked() });
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
    process.exit(failed ? 1 : 0);
  }
}

// Requests that have no answer, and those that were refused: a toast is gone long before a wait is over.
function record(context) {
  const open = new Map(), refused = [];
  const name = (request) => `${request.method()} ${request.url()}`;
  context.on("request", (request) => open.set(request, name(request)));
  context.on("requestfinished", (request) => open.delete(request));
  context.on("requestfailed", (request) => { open.delete(request); refused.push(`${request.failure()?.errorText}: ${name(request)}`); });
  context.on("response", async (response) => { if (response.status() >= 400) refused.push(`${response.status()}: ${name(response.request())} ${(await response.text().catch(() => "")).slice(0, 300)}`); });
  return () => ({ unanswered: [...open.values()], refused: refused.slice(-20) });
}

// What a person would see on each page, and where the keyboard is.
const shown = (context) => Promise.all(context.pages().map((page) => Promise.race([
  page.evaluate(() => ({
    url: location.href, toast: document.getElementById("toast")?.textContent, focus: document.activeElement?.outerHTML.slice(0, 200), focused: document.hasFocus(),
    fields: [...document.querySelectorAll("input, textarea")].filter((one) => one.value).map((one) => `${one.className || one.ariaLabel}: ${one.value.slice(0, 200)}`),
    text: document.querySelector("main")?.innerText.slice(0, 1000),
  })).catch((problem) => String(problem)),
  new Promise((done) => { setTimeout(() => done(`${page.url()} does not answer`), 10000); }),
])));

export function watch(page, address, troubles) {
  page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => { troubles.push(`a dialog opened: ${dialog.message()}`); dialog.dismiss(); });
  page.on("console", (message) => { if (message.type() === "error" && !/status of 4\d\d|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE/.test(message.text())) troubles.push(message.text()); });
  page.on("request", (request) => { if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(address)) troubles.push(`foreign request: ${request.url()}`); });
}

// For who holds answers: what is asked while the only route comes or goes may pass by it.
export const steady = (context) => context.route(/\/api\//, (route) => route.fallback());

// What the browser's driver has no limit for: a request that is held, the end of an answer, a promise of the page.
export async function soon(work, what) {
  let timer;
  const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error(`${what} did not come`)), LIMIT); });
  try { return await Promise.race([work, late]); } finally { clearTimeout(timer); }
}

// Waits until a session rests, and what was said last was answered: before its turn begins it rests, too.
export const rests = (page) => page.waitForFunction(() => {
  const all = [...document.querySelectorAll(".part > *")];
  const last = all.findLastIndex((one) => one.matches(".said.user"));
  return last >= 0 && last < all.length - 1 && document.querySelector('.status[data-status="idle"], .status[data-status="failed"], .status[data-status="interrupted"]');
});

export async function say(page, text) {
  const before = await page.locator(".said.user").count();
  await page.fill(".composer textarea", text);
  await page.press(".composer textarea", "Enter");
  await page.waitForFunction((many) => document.querySelectorAll(".said.user").length > many, before);
}

// Everything that axe-core finds wrong, on the page as it is now.
export async function checked(page, name) {
  await page.evaluate(`${readFileSync(require.resolve("axe-core/axe.min.js"), "utf8")};0`);
  await page.emulateMedia({ reducedMotion: "reduce" }); // nothing is looked at while it fades
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"], rules: { "color-contrast": { enabled: true } } }));
  await page.emulateMedia({ reducedMotion: null });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  // Nothing that is pressed or listed is cut from below, or wraps where it should not.
  const cut = await page.evaluate(() => [...document.querySelectorAll("a.session, button, .tab, .menu a")].filter((one) => one.clientHeight && one.scrollHeight > one.clientHeight + 1).map((one) => `${one.className} ${one.textContent.slice(0, 40)}`));
  cut.push(...await page.evaluate(() => [...document.querySelectorAll(".options")].filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => `${one.className} ${one.scrollWidth - one.clientWidth} px`)));
  // What a field says while it is empty is there as a whole.
  cut.push(...await page.evaluate(() => [...document.querySelectorAll("input[placeholder], textarea[placeholder]")].filter((one) => {
    if (!one.clientWidth || one.value) return false;
    const style = getComputedStyle(one);
    const pen = Object.assign(document.createElement("canvas").getContext("2d"), { font: style.font });
    return pen.measureText(one.placeholder).width > one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) + 1;
  }).map((one) => `placeholder ${one.placeholder}`)));
  return { name, over, cut, violations: found.violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.any[0]?.message ?? ""}`).join(" | ")}`) };
}

// Notes what the browser shows of this page from now on. It is not asked for a list: while it shows
// one, a look at the list makes it forget that one.
export const notes = (page) => page.evaluate(() => {
  window.shown = [];
  const note = (title, { body, data }) => window.shown.push([title, body, data.path]);
  const show = ServiceWorkerRegistration.prototype.showNotification;
  ServiceWorkerRegistration.prototype.showNotification = async function (...words) { await show.apply(this, words); note(...words); };
  window.Notification = class extends Notification { // where the worker is not there to show it, the page does so itself
    constructor(...words) { super(...words); note(...words); }
  };
});

export const noted = async (page, at = 0) => (await page.waitForFunction((at) => window.shown[at], at)).jsonValue();
