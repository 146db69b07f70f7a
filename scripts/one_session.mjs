// Two terminals and a browser on one session, as one picture.
// Usage: node scripts/one_session.mjs LINK SESSION CHROMIUM TERMINALS.svg OUTPUT.png
// Run by scripts/terminals_svg.py, which starts the host and the terminals.
import { readFileSync } from "node:fs";
import { browse } from "../tests/browser/driver.mjs";

const [link, session, executable, terminals, output] = process.argv.slice(2);
const address = new URL(link).origin;
const svg = readFileSync(terminals, "utf8");
const wide = Math.round(Number(svg.match(/viewBox="0 0 ([\d.]+)/)[1]));

await browse({ address, executable, width: wide, height: 620 }, async ({ page, context }) => {
  await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
  await page.goto(link);
  await page.waitForSelector(".hello h1");
  await page.goto(`${address}/sessions/${encodeURIComponent(session)}`);
  await page.waitForSelector(".ask [data-verdict=allow]");
  await page.waitForFunction(() => document.body.dataset.live === "live");
  await page.evaluate(() => document.activeElement?.blur());
  const shown = (await page.screenshot()).toString("base64");
  const sheet = await context.newPage();
  await sheet.setViewportSize({ width: wide + 48, height: 400 });
  await sheet.setContent(`<!doctype html><body style="margin:0;padding:24px;background:#010409;font:13px sans-serif;color:#8b949e">
    ${svg.replace("<svg", '<svg style="display:block;width:100%;height:auto"')}
    <div style="margin-top:18px;border:1px solid #30363d;border-radius:10px;overflow:hidden">
      <div style="display:flex;gap:8px;align-items:center;padding:9px 14px;background:#161b22">
        ${["#ff5f56", "#ffbd2e", "#27c93f"].map((one) => `<i style="width:12px;height:12px;border-radius:50%;background:${one}"></i>`).join("")}
        <span style="margin-left:12px;padding:3px 14px;border-radius:7px;background:#0d1117">127.0.0.1 · the same session in a browser</span>
      </div>
      <img style="display:block;width:100%" src="data:image/png;base64,${shown}">
    </div></body>`);
  await sheet.waitForFunction(() => document.querySelector("img").complete);
  await sheet.screenshot({ path: output, fullPage: true });
});
