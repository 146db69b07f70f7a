// Questions that come while a page changes, or while nobody sees it. Usage: node notified.mjs ADDRESS CODE CHROMIUM
import { browse, noted, notes, soon, steady, tell } from "./driver.mjs";

const [address, code, executable] = process.argv.slice(2);
const state = (page, word) => page.waitForFunction((word) => document.body.dataset.live === word, word);

// As the browser says it to a page that another tab covers: here all tabs count as seen.
const hide = (page, hidden) => page.evaluate((hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

await browse({ address, code, executable }, async ({ page, context, wait }) => {
  await steady(context);
  const asleep = async (one) => { await hide(one, true); await one.clock.runFor(20000); };
  await context.grantPermissions(["notifications"], { origin: address });
  await context.clock.install();
  await page.goto(`${address}/config`);
  await state(page, "live");
  await soon(page.evaluate(() => navigator.serviceWorker.ready.then(() => 0)), "the service worker");

  // --- another page, whose stream comes late ---
  let free;
  const word = new Promise((done) => { free = done; });
  await page.route(/\/api\/live/, async (route) => { await word; await route.continue().catch(() => {}); }, { times: 1 });
  const begun = page.waitForRequest(/\/api\/live/);
  await page.click('.tabs a[href$="/clients"]');
  await begun;
  tell({ step: "between" });
  await wait();
  await page.waitForSelector(".tabs .badge");
  const between = await page.textContent(".tabs .badge");
  free();
  await page.waitForSelector("text=dashboard");
  tell({ step: "changed", between });
  await wait();
  await page.waitForFunction(() => document.querySelector(".tabs .badge").textContent === "2");

  // --- hidden, and nothing wanted: it sleeps, and knows all when it is seen again ---
  await asleep(page);
  await state(page, "asleep");
  tell({ step: "asleep" });
  await wait();
  // A question comes when the list of them was answered already, and the last answer was not.
  let last;
  const late = new Promise((done) => { last = done; });
  await page.route(/\/api\/status$/, async (route) => { await late; await route.continue().catch(() => {}); });
  const listed = page.waitForResponse(/\/api\/approvals$/);
  await hide(page, false);
  await soon((await listed).finished(), "the list of questions");
  await page.waitForFunction(() => document.body.dataset.live === "live");
  tell({ step: "awake" });
  await wait();
  await page.waitForFunction(() => document.querySelector(".tabs .badge").textContent === "3"); // the second, and the one that came now
  const over = page.waitForResponse(/\/api\/overview$/);
  last();
  await over;
  await page.waitForFunction(() => document.querySelector(".tabs .badge").textContent === "4");
  await page.unroute(/\/api\/status$/);

  // --- hidden, and nobody else tells: one of two pages watches, and the other when that one is gone ---
  await page.goto(`${address}/config`);
  await page.click("#notify");
  await page.waitForFunction(() => localStorage.getItem("notify") === "1");
  const second = await context.newPage();
  await second.goto(`${address}/clients`);
  await state(second, "live");
  await notes(page);
  await notes(second);
  await asleep(page);
  await state(page, "live");
  await asleep(second);
  await state(second, "asleep");
  tell({ step: "watching" });
  await wait();
  const first = await noted(page);
  const quiet = await second.evaluate(() => [document.body.dataset.live, window.shown.length]);
  await page.close();
  await state(second, "live");
  tell({ step: "alone", first, quiet });
  await wait();
  // What the other page told of in the meantime is told of here, too, and not twice by the browser.
  const later = await second.waitForFunction(() => window.shown.find(([title]) => /Fifth/.test(title)));
  tell({ step: "told", later: await later.jsonValue() });
  await hide(second, false);
  await second.waitForFunction(async () => !(await navigator.locks.query()).held.length); // another page may watch
  tell({ step: "seen", live: await second.evaluate(() => document.body.dataset.live) });
});
