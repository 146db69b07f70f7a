// Pictures of the dashboard for the guides. Usage: node scripts/dashboard_pictures.mjs ADDRESS CODE CHROMIUM CWD
// Run by scripts/dashboard_pictures.py, which starts a host for it.
import { fileURLToPath } from "node:url";
import { browse, rests, say } from "../tests/browser/driver.mjs";

const [address, code, executable, cwd] = process.argv.slice(2);
const place = (name) => fileURLToPath(new URL(`../docs/pictures/dashboard-${name}.png`, import.meta.url));

await browse({ address, code, executable, width: 1280, height: 800 }, async ({ page }) => {
  await page.fill(".folder", cwd);
  await page.fill(".big-box textarea", "think, then count to 12");
  await page.press(".big-box textarea", "Enter");
  await page.waitForURL(/\/sessions\//);
  await rests(page);
  const session = page.url();
  for (const text of ["run ls -la", 'write "a calm morning" to hello.txt']) {
    await say(page, text);
    await page.click(".ask [data-verdict=allow]");
    await rests(page);
  }
  await page.click(".tool-link[aria-expanded]");
  await page.waitForSelector(".changed");
  await page.screenshot({ path: place("session") });
  await page.click('[aria-label="Close the panel"]');
  await page.goto(`${session}/timeline`);
  await page.waitForSelector(".turn");
  await page.screenshot({ path: place("timeline") });
  await page.goto(`${address}/`);
  await page.waitForSelector(".plot");
  await page.screenshot({ path: place("home") });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(session);
  await page.waitForSelector(".said.agent");
  await page.screenshot({ path: place("phone") });
});
