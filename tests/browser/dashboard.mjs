// Drives the dashboard in Chromium. Usage: node dashboard.mjs ADDRESS CODE CWD SCREENS
// Says what it did as JSON lines; waits for a line on stdin where the test has to act in between.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const require = createRequire(new URL("../interop/node/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const [address, code, cwd, screens, executable] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const tell = (row) => process.stdout.write(`${JSON.stringify(row)}\n`);
const wait = async () => (await lines.next()).value;
mkdirSync(screens, { recursive: true });

const profile = mkdtempSync(join(tmpdir(), "dragoman-browser-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: executable,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  viewport: { width: 1280, height: 820 },
});
context.setDefaultTimeout(45000);
const page = context.pages()[0] ?? (await context.newPage());
const troubles = [];
page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
page.on("console", (message) => { if (message.type() === "error" && !/status of 40[13]/.test(message.text())) troubles.push(message.text()); });
page.on("request", (request) => { if (!request.url().startsWith(address) && !request.url().startsWith("data:")) troubles.push(`foreign request: ${request.url()}`); });
const shot = (name) => page.screenshot({ path: join(screens, `${name}.png`) });

try {
  // --- pair ---
  await page.goto(`${address}/`);
  await page.waitForSelector("input.code");
  await page.fill("input.code", "WRNG-CODE");
  await page.click("text=Pair this browser");
  await page.waitForSelector(".login .wrong:not(:empty)");
  await page.fill("input.code", code);
  await shot("01-pair");
  const held = [];
  await page.route(/api\/folders/, (answer) => (answer.request().url().endsWith("text=") ? held.push(answer) : answer.continue()));
  await page.click("text=Pair this browser");
  await page.waitForSelector(".hello h1");
  await shot("02-home");
  const cookies = await context.cookies();
  tell({ step: "paired", httpOnly: cookies.every((one) => one.httpOnly), sameSite: cookies.map((one) => one.sameSite), readable: await page.evaluate(() => document.cookie) });

  // --- start a session by keyboard, see its text stream ---
  await page.keyboard.press("Escape");
  const asked = page.waitForRequest(/api\/folders\?text=$/);
  await page.keyboard.press("n");
  await asked;
  await page.fill(".big-box input[name=cwd]", cwd);
  const late = page.waitForResponse((answer) => answer.request() === held.at(-1).request());
  for (const answer of held) answer.continue(); // what was asked before a word was typed
  await late;
  await page.unroute(/api\/folders/);
  await page.waitForFunction(() => document.querySelector("#folders option"));
  await page.fill(".big-box textarea", "think, then count slowly to 40");
  await shot("03-new-session");
  await page.press(".big-box textarea", "Enter");
  await page.waitForURL(/\/sessions\//);
  await page.waitForFunction(() => /\d/.test(document.querySelector(".said.agent")?.textContent ?? ""));
  const first = await page.textContent(".said.agent:last-of-type");
  await shot("04-streaming");
  await page.waitForFunction((before) => {
    const all = [...document.querySelectorAll(".said.agent")];
    return (all[all.length - 1]?.textContent ?? "").length > before.length;
  }, first);
  await page.waitForSelector('.status[data-status="idle"]');
  tell({ step: "streamed", session: decodeURIComponent(page.url().split("/sessions/")[1]), text: await page.textContent(".talk") });

  // --- an approval, while an ACP client watches ---
  await wait();
  await page.fill(".composer textarea", "run echo hello from the browser");
  await page.press(".composer textarea", "Enter");
  await page.waitForSelector(".ask [data-verdict=allow]");
  await shot("05-approval");
  tell({ step: "asked", badge: await page.textContent(".badge"), group: await page.textContent(".sessions h2"), title: await page.title() });
  await page.goto(`${address}/approvals`);
  await page.waitForSelector(".asklist [data-verdict=allow]");
  await shot("06-approvals");
  await page.goBack();
  await page.waitForSelector(".ask [data-verdict=allow]");
  await page.locator(".scroll").click({ position: { x: 4, y: 4 } });
  await page.locator("body").press("Escape");
  await page.keyboard.press("a");
  await page.waitForSelector(".call .settled");
  await page.waitForSelector('.status[data-status="idle"]');
  await shot("07-settled");
  tell({ step: "settled", output: await page.textContent(".call pre.term"), by: await page.textContent(".call .settled") });

  // --- a change with its diff ---
  await page.fill(".composer textarea", "write hello.txt with a calm morning");
  await page.press(".composer textarea", "Enter");
  await page.waitForSelector(".ask .diff .plus");
  await shot("08-diff");
  await page.click(".ask [data-verdict=allow]");
  await page.waitForSelector('.status[data-status="idle"]');

  // --- stop a turn, change mode, rename ---
  await page.fill(".composer textarea", "count slowly to 5000");
  await page.press(".composer textarea", "Enter");
  await page.waitForSelector(".round.stop:not([hidden])");
  await page.click(".round.stop");
  await page.waitForSelector('.status[data-status="idle"], .status[data-status="interrupted"]');
  await page.selectOption('select[aria-label="Mode"]', "readonly");
  await page.waitForFunction(() => /Mode: readonly/.test(document.querySelector(".talk")?.textContent ?? ""));
  await page.click("h1.title");
  await page.fill("input.rename", "A calm morning");
  await page.press("input.rename", "Enter");
  await page.waitForFunction(() => document.querySelector(".sessions .title")?.textContent === "A calm morning");
  tell({ step: "changed", mode: await page.inputValue('select[aria-label="Mode"]') });

  // --- the configuration of the running daemon ---
  await page.goto(`${address}/config`);
  await page.waitForSelector(".card");
  await shot("09-settings");
  await page.click("text=Editors and IDEs");
  await page.waitForSelector('[data-key="acp.max_sessions"]');
  await page.fill('[id="f-acp.max_sessions"]', "0");
  await page.press('[id="f-acp.max_sessions"]', "Enter");
  const valid = await page.$eval('[id="f-acp.max_sessions"]', (input) => input.checkValidity());
  await page.fill('[id="f-acp.max_sessions"]', "3");
  await page.click('[data-key="acp.max_sessions"] .save');
  await page.waitForSelector('[data-key="acp.max_sessions"] .note:not(:empty)');
  await shot("10-config-acp");
  tell({ step: "configured", note: await page.textContent('[data-key="acp.max_sessions"] .note'), zeroIsValid: valid, keys: await page.$$eval(".setting", (all) => all.map((one) => one.dataset.key)) });

  // --- who is connected, and what they say ---
  await page.goto(`${address}/wire`);
  await page.waitForSelector(".pulse");
  await page.waitForFunction(() => document.body.dataset.live === "live");
  tell({ step: "wire" });
  await wait();
  await page.waitForSelector(".wire .row");
  await page.click(".wire .row summary");
  await page.waitForSelector(".wire .row pre");
  await shot("11-wire");
  const wire = await page.textContent(".wire");
  await page.goto(`${address}/clients`);
  await page.waitForFunction(() => /acp/.test(document.querySelector(".clients")?.textContent ?? ""));
  await shot("12-clients");
  tell({ step: "clients", wire, dialects: await page.$$eval(".clients h2", (all) => all.map((one) => one.firstChild.textContent)) });

  // --- dark, and on a phone ---
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(`${address}/`);
  await page.waitForSelector("a.session");
  await shot("13-dark-home");
  await page.click("a.session");
  await page.waitForSelector(".said.agent");
  await shot("14-dark-session");
  await page.setViewportSize({ width: 390, height: 844 });
  await shot("15-phone-session");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  await page.click(".bar .back");
  await page.waitForSelector(".list-page .session");
  await shot("16-phone-home");
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(`${address}/config/acp`);
  await page.waitForSelector(".setting");
  await shot("17-phone-config");
  tell({ step: "phone", overflow: wide });

  // --- by keyboard alone ---
  await page.setViewportSize({ width: 1280, height: 820 });
  await page.goto(`${address}/`);
  await page.waitForSelector("a.session");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  // Somebody renames it meanwhile: its row is drawn anew, and the keyboard stays there.
  const stands = await page.evaluate(() => document.activeElement.dataset.id);
  await page.evaluate((id) => fetch(`/api/sessions/${encodeURIComponent(id)}`, { method: "PATCH", headers: { "x-dragoman": "1", "content-type": "application/json" }, body: JSON.stringify({ title: "Renamed meanwhile" }) }), stands);
  await page.waitForFunction((id) => document.querySelector(`a.session[data-id="${CSS.escape(id)}"]`)?.textContent.includes("Renamed meanwhile"), stands);
  const goes = await page.evaluate(() => document.activeElement.dataset.id);
  if (goes !== stands) throw new Error(`the keyboard was at ${stands}, and is at ${goes}`);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/sessions\//);
  await page.waitForSelector(".said");
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.waitForSelector("dialog .keys");
  await shot("18-keys");
  tell({ step: "over", troubles });
} catch (problem) {
  await shot("99-failed").catch(() => {});
  tell({ step: "failed", problem: String(problem.stack ?? problem), troubles });
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
  process.exit(0);
}
