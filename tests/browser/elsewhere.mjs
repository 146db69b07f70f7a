// What happens elsewhere while a page is open. Usage: node elsewhere.mjs ADDRESS CODE CHROMIUM
import { browse, steady, tell } from "./driver.mjs";

const [address, code, executable] = process.argv.slice(2);
const state = (page, word) => page.waitForFunction((word) => document.body.dataset.live === word, word);
const hide = (page, hidden) => page.evaluate((hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

// The first answer of this kind is made at once and comes when it is let go.
async function late(page, path) {
  let free, made;
  const word = new Promise((done) => { free = done; });
  const answered = new Promise((done) => { made = done; });
  await page.route(path, async (route) => { const answer = await route.fetch(); made(); await word; await route.fulfill({ response: answer }); }, { times: 1 });
  return { answered, free };
}

await browse({ address, code, executable }, async ({ page, wait, context }) => {
  await steady(context);
  await page.clock.install();
  const [one, other] = (await wait()).split(" ");
  const row = (id) => page.locator(`.side .rows a.session[data-id="${id}"]`);

  // --- rows change while one is pressed, and while the keyboard is at a tab ---
  await page.goto(`${address}/config`);
  await state(page, "live");
  const place = await row(other).boundingBox();
  await page.focus('.tabs a[href$="/clients"]');
  await page.mouse.move(place.x + 20, place.y + 20);
  await page.mouse.down();
  await page.focus('.tabs a[href$="/clients"]');
  tell({ step: "pressed" });
  await wait(); // both are renamed
  await page.waitForFunction((id) => document.querySelector(`.side .rows a.session[data-id="${id}"] .title`)?.textContent === "Again", one);
  const focus = await page.evaluate(() => document.activeElement.textContent);
  await page.mouse.up();
  await page.waitForURL(`**/sessions/${other}`);
  tell({ step: "moved", focus });

  // --- a session begins while the list of them is under way ---
  const list = await late(page, /\/api\/sessions\?limit=60/);
  await page.goto(`${address}/config`);
  await list.answered;
  await state(page, "live");
  tell({ step: "listing" });
  await wait(); // one more
  await page.waitForFunction(() => document.title.startsWith("(1)")); // and a question, which is told of behind it
  list.free();
  await page.waitForFunction(() => [...document.querySelectorAll(".side .rows .title")].some((node) => node.textContent === "Late"));
  tell({ step: "listed" });

  // --- a timeline: what comes while it is read, and while it sleeps ---
  const read = await late(page, /\/timeline\?/);
  await page.goto(`${address}/sessions/${one}/timeline`);
  await read.answered;
  await state(page, "live");
  tell({ step: "reading" });
  await wait(); // a turn
  const turns = (least) => page.waitForFunction((least) => document.querySelectorAll("li.turn").length >= least, least);
  await turns(1);
  read.free();
  await hide(page, true);
  await page.clock.runFor(20000);
  await state(page, "asleep");
  tell({ step: "asleep" });
  await wait(); // another turn
  await hide(page, false);
  await turns(2);
  tell({ step: "timed", turns: await page.$$eval("li.turn", (all) => all.length) });

  // --- a session is deleted while it is looked at ---
  const sum = () => document.querySelector(".side .sessions > section h2 span")?.textContent;
  await page.goto(`${address}/sessions/${one}`);
  await page.waitForSelector(".said.agent");
  await state(page, "live");
  const before = await (await page.waitForFunction(sum)).jsonValue();
  tell({ step: "looking" });
  await wait();
  await page.waitForFunction(() => /was deleted/.test(document.querySelector(".scroll .notice")?.textContent));
  await page.clock.runFor(3000);
  await page.waitForFunction((before) => document.querySelector(".side .sessions > section h2 span")?.textContent === String(before - 1), Number(before));
  await page.waitForSelector(`.side a.session[data-id="${one}"]`, { state: "detached" });

  // --- and one that is gone when its stream comes back: the rest goes on ---
  await page.goto(`${address}/sessions/${other}`);
  await page.waitForFunction(() => document.querySelector("h1.title")?.textContent);
  await state(page, "live");
  await hide(page, true);
  await page.clock.runFor(20000);
  await state(page, "asleep");
  tell({ step: "gone" });
  await wait();
  await hide(page, false);
  await page.waitForFunction(() => /not found/.test(document.querySelector(".scroll .notice")?.textContent));
  await state(page, "live");

  // --- the store is stalled, and is back ---
  const instead = (path, answer) => page.route((place) => place.pathname === path, (route) => route.fulfill(answer), { times: 1 });
  await instead("/api/me", { status: 503, json: { error: { code: "store_failed", message: "The database is away." } } });
  await page.goto(`${address}/`);
  await page.waitForFunction(() => /database is away/.test(document.querySelector("main.lost")?.textContent));
  const hello = JSON.stringify({ at: 1, stalled: "The database is gone." });
  await instead("/api/live", { contentType: "text/event-stream", body: `event: hello\ndata: ${hello}\n\n` });
  await page.clock.runFor(2000);
  const alarm = (words) => page.waitForFunction((words) => document.querySelector("[role=alert]")?.textContent.includes(words), words);
  await alarm("The database is gone.");
  await page.clock.runFor(4000); // it asks again, and opens the stream again
  await page.waitForFunction(() => !document.querySelector("[role=alert]").textContent);
  await state(page, "live");

  // --- a page that is locked opens no stream, whatever was under way ---
  await page.goto("about:blank"); // the streams of the page before are over
  let asked = 0;
  page.on("request", (request) => { asked += /\/api\/live/.test(request.url()); });
  await instead("/api/sessions/nobody", { status: 401, json: { error: { message: "A token is needed." } } });
  await page.goto(`${address}/sessions/nobody`);
  await page.waitForSelector("input.code");
  await page.evaluate(async () => { for (let n = 0; n < 20; n++) await fetch("/livez"); });
  tell({ step: "locked", asked });
  await page.goto(`${address}/`);
  await state(page, "live");

  // --- the browser is let in no longer ---
  asked = 0;
  tell({ step: "revoked" });
  await wait();
  await page.waitForSelector("input.code");
  await hide(page, true);
  await hide(page, false);
  await page.evaluate(async () => { for (let n = 0; n < 20; n++) await fetch("/livez"); }); // whoever asks on asks meanwhile
  tell({ step: "shut", asked, live: await page.evaluate(() => document.body.dataset.live) });
});
