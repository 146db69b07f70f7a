// Looks at questions in Chromium. Usage: node questions.mjs ADDRESS CODE CHROMIUM ASK_ID...
// Each question is opened on the page of approvals; what is seen of it is said as a JSON line.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRequire } from "node:module";

const require = createRequire(new URL("../interop/node/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const [address, code, executable, ...ids] = process.argv.slice(2);
const tell = (row) => process.stdout.write(`${JSON.stringify(row)}\n`);
const profile = mkdtempSync(join(tmpdir(), "dragoman-browser-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: executable, headless: true, viewport: { width: 1280, height: 820 },
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
context.setDefaultTimeout(45000);
const page = context.pages()[0] ?? (await context.newPage());
const troubles = [];
page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
page.on("dialog", (dialog) => { troubles.push("a dialog opened"); dialog.dismiss(); });

try {
  await page.goto(`${address}/`);
  await page.fill("input.code", code);
  await page.click("text=Pair this browser");
  await page.waitForSelector(".hello h1");
  await page.goto(`${address}/approvals`);
  for (const id of ids) {
    const card = `[data-ask="${id}"]`;
    await page.waitForSelector(`${card} [data-verdict=allow]`);
    const text = await page.$eval(card, (node) => node.textContent);
    const clipped = await page.$$eval(`${card} pre.summary, ${card} .diff`, (all) => all.some((one) =>
      one.scrollWidth > one.clientWidth + 1 || (one.scrollHeight > one.clientHeight + 1 && !["auto", "scroll"].includes(getComputedStyle(one).overflowY))));
    tell({ step: "seen", id, text, clipped, plus: await page.$$eval(`${card} .plus`, (all) => all.length), minus: await page.$$eval(`${card} .minus`, (all) => all.length) });
  }
  // the first is remembered with a scope, and withdrawn again
  const first = `[data-ask="${ids[0]}"]`;
  await page.click(`${first} [data-verdict=always]`);
  const scopes = await page.$$eval(`${first} [data-scope]`, (all) => all.map((one) => [one.dataset.scope, one.textContent]));
  await page.click(`${first} [data-scope="exact:project"]`);
  await page.waitForSelector("[data-rule]");
  const rule = await page.textContent("[data-rule]");
  await page.click("[data-rule] button");
  await page.waitForFunction(() => !document.querySelector("[data-rule]"));
  for (const id of ids.slice(1)) await page.click(`[data-ask="${id}"] [data-verdict=deny]`);
  await page.waitForFunction(() => !document.querySelector("[data-ask]"));
  tell({ step: "over", scopes, rule, troubles });
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
