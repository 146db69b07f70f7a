// A page whose stream lives shows what the host has, whatever came late. Usage: node behind.mjs ADDRESS CODE CHROMIUM
import { browse, rests, say, steady, tell } from "./driver.mjs";

const [address, code, executable] = process.argv.slice(2);
const agent = (page, text) => page.waitForFunction((text) => [...document.querySelectorAll(".said.agent")].some((one) => one.textContent.includes(text)), text);

// As the browser says it to a page that another tab covers, for as long as makes it sleep.
const hide = (page, hidden) => page.evaluate((hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);
const state = (page, word) => page.waitForFunction((word) => document.body.dataset.live === word, word);
const nap = async (page) => { await hide(page, true); await page.clock.runFor(20000); await state(page, "asleep"); await hide(page, false); await state(page, "live"); };

await browse({ address, code, executable }, async ({ page, wait, context }) => {
  await steady(context);
  await page.clock.install();
  const session = await wait();
  const EVENTS = new RegExp(`/api/sessions/${session}/events`);

  // --- the session says that it is over when its last events are not stored yet ---
  const cut = async (route) => {
    const rows = await (await route.fetch()).json();
    await route.fulfill({ json: rows.filter((one) => one.seq <= 3) });
  };
  for (const hash of ["", "#m2"]) {
    await page.goto("about:blank");
    await page.route(EVENTS, cut, { times: 1 });
    await page.goto(`${address}/sessions/${session}${hash}`);
    await agent(page, "The first answer");
  }
  tell({ step: "ahead" });

  // --- somebody jumps to the newest while a turn ends ---
  await page.goto("about:blank");
  await page.goto(`${address}/sessions/long#m2`);
  await page.waitForSelector('.said.user[data-seq="2"]');
  await state(page, "live");
  let free;
  const word = new Promise((done) => { free = done; });
  const held = new Promise((done) => {
    page.route(/\/api\/sessions\/long\/events/, async (route) => { const answer = await route.fetch(); done(); await word; await route.fulfill({ response: answer }); }, { times: 1 });
  });
  await page.click(".jump");
  await held;
  tell({ step: "jumping" });
  await wait(); // a turn runs, and then the session has another title
  await page.waitForFunction(() => document.querySelector("h1.title")?.textContent === "Over");
  free();
  await agent(page, "The first answer");
  tell({ step: "jumped", asked: await page.$$eval(".said.user", (all) => all.filter((one) => one.textContent.includes("What now?")).length) });

  // --- what is streamed when a stream begins again is there once ---
  await say(page, "Go on");
  await agent(page, "One two three");
  await nap(page);
  await page.waitForFunction(() => document.querySelector(".said.agent:last-of-type")?.textContent.includes("One two three"));
  const drafts = await page.$$eval(".said.agent", (all) => all.map((one) => one.querySelector(".prose").textContent).filter((text) => text.includes("One two")));
  await page.click(".stop");
  await rests(page);
  await say(page, "Run it");
  await page.click(".ask [data-verdict=allow]");
  await page.waitForFunction(() => document.querySelector('.call[data-state="running"] pre.term')?.textContent.includes("tick 1"));
  await nap(page);
  await page.waitForFunction(() => document.querySelector('.call[data-state="running"] pre.term')?.textContent.includes("tick 1"));
  const output = await page.textContent('.call[data-state="running"] pre.term');
  await page.click(".stop");
  await page.waitForSelector('.status:not([data-status="running"]):not([data-status="interrupting"])');
  tell({ step: "again", drafts, output });

  // --- a hidden page draws nothing, but its title says that somebody is needed ---
  await page.evaluate(() => { window.frames_ = window.requestAnimationFrame; window.requestAnimationFrame = () => 1; });
  await hide(page, true);
  tell({ step: "hidden" });
  await wait(); // a question
  await page.waitForFunction(() => document.title.startsWith("● "));
  tell({ step: "called" });

  // --- a call that began on one page of events and ends on another, in a session of two pages ---
  await page.goto(`${address}/sessions/edge`);
  await page.waitForSelector(".call");
  const edge = await page.evaluate(async () => {
    const { Transcript } = await import(`${location.origin}/static/transcript.js`);
    const scroll = document.createElement("div"), log = document.createElement("div");
    scroll.append(log);
    document.body.append(scroll);
    const talk = new Transcript("edge", scroll, log, () => {}, () => {});
    await talk.openEnd(84);
    while (talk.hasOlder) await talk.older();
    const cards = () => [...log.querySelectorAll(".call")].map((one) => [one.querySelector(".tool").textContent, one.dataset.state, Boolean(one.querySelector(".ask"))]);
    const before = cards();
    const told = (seq, body) => talk.take({ session: "edge", seq, at: 0, body });
    told(85, { type: "call_ended", turn: "t", call_id: "c1", name: "one", outcome: "done", content: [{ type: "text", text: "out" }] });
    told(86, { type: "asked", ask: { id: "again", session: "edge", kind: "tool", title: "Once more", at: 1, call_id: "c2" } });
    talk.paint();
    const after = cards();
    told(87, { type: "settled", ask_id: "again", verdict: "deny" });
    talk.paint();
    return [before, after, cards()];
  });
  tell({ step: "edge", edge });
});
