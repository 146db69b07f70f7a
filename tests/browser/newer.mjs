// The answer to a prompt comes when the stream has told more of its session. Usage: node newer.mjs ADDRESS CODE CHROMIUM CWD
import { browse, steady, tell } from "./driver.mjs";

const [address, code, executable, cwd] = process.argv.slice(2);
const BOX = ".big-box textarea";

await browse({ address, code, executable }, async ({ page, context }) => {
  await steady(context);
  await page.fill(".folder", cwd);
  let free;
  const word = new Promise((done) => { free = done; });
  await page.route(/\/prompt$/, async (route) => { const answer = await route.fetch(); await word; await route.fulfill({ response: answer }); }, { times: 1 });
  const prompted = page.waitForRequest(/\/prompt$/);
  await page.fill(BOX, "tell me more");
  await page.press(BOX, "Enter");
  const asked = await prompted;
  await page.waitForFunction(() => document.querySelector(".now")?.textContent.includes("tell me more"));
  await page.click('.tabs a[href$="/clients"]');
  free();
  await (await asked.response()).finished();
  await page.evaluate(() => new Promise((done) => { setTimeout(done); }));
  await page.click('.tabs a[href$="/"]');
  await page.waitForSelector(BOX);
  tell({ step: "newer", running: await page.locator(".now").textContent() });
});
