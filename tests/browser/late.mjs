// Answers that come late, and somebody who does not wait for them. Usage: node late.mjs ADDRESS CODE CHROMIUM CWD
import { browse, rests, soon, steady, tell } from "./driver.mjs";

const [address, code, executable, cwd] = process.argv.slice(2);

// Holds the first request that fits until it is let go; it goes on, or is refused.
async function hold(page, method, path) {
  let free, come;
  const came = soon(new Promise((done) => { come = done; }), `${method} ${path}`);
  came.catch(() => {}); // heard where it is waited for
  const word = new Promise((done) => { free = done; });
  let held = false;
  const fits = (place) => path.test(place.pathname + place.search);
  const act = async (route) => {
    if (held || route.request().method() !== method) { await route.fallback(); return; }
    held = true;
    come(route.request());
    if ((await word) === "refuse") await route.fulfill({ status: 409, json: { error: { message: "Not now." } } }).catch(() => {});
    else await route.continue().catch(() => {});
  };
  await page.route(fits, act);
  const over = async (request) => { await soon(request.response().then((answer) => answer?.finished()), `the answer to ${method} ${path}`); await page.evaluate(() => new Promise((done) => { setTimeout(done); })); };
  return { came, go: async (how = "on") => { const request = await came; free(how); await over(request); await page.unroute(fits, act); } };
}

const answered = (page, method, path) => page.waitForResponse((one) => one.request().method() === method && path.test(one.url()));
const BOX = ".big-box textarea";

await browse({ address, executable }, async ({ page, context }) => {
  await steady(context);
  // --- the usual folder comes when somebody is about to type one ---
  const usual = await hold(page, "GET", /^\/api\/folders/);
  await page.goto(`${address}/`);
  await page.fill("input.code", code);
  await page.click("text=Pair this browser");
  await page.waitForSelector(".hello h1");
  await usual.came;
  await page.focus(".folder");
  await usual.go();
  await page.keyboard.insertText(cwd);
  const folder = await page.inputValue(".folder");
  // ... and is there for who leaves the field as it was, also when the status, which names it, comes last.
  let free;
  const word = new Promise((done) => { free = done; });
  const late = async (route) => { await word; await route.continue().catch(() => {}); };
  await page.route(/\/api\/status$/, late);
  const folders = answered(page, "GET", /\/api\/folders\?text=$/);
  await page.reload();
  await soon((await folders).finished(), "the folders");
  await page.evaluate(() => new Promise((done) => { setTimeout(done); }));
  const early = await page.inputValue(".folder");
  free();
  await page.waitForFunction(() => document.querySelector(".folder")?.value);
  await page.unroute(/\/api\/status$/, late);
  tell({ step: "folder", folder, early, usual: await page.inputValue(".folder") });

  // --- a refused prompt comes back before what was written since; who went elsewhere stays there ---
  await page.fill(".folder", cwd);
  const refused = await hold(page, "POST", /^\/api\/sessions$/);
  await page.fill(BOX, "first");
  await page.press(BOX, "Enter");
  await refused.came;
  await page.fill(BOX, "second");
  await refused.go("refuse");
  await page.waitForFunction(() => document.querySelector("#toast.wrong"));
  const back = await page.inputValue(BOX);
  const slow = await hold(page, "POST", /^\/api\/sessions\/[^/]+\/prompt/);
  await page.fill(BOX, "hello");
  await page.press(BOX, "Enter");
  const id = new URL((await slow.came).url()).pathname.split("/")[3];
  await page.click('.tabs a[href$="/config"]');
  await slow.go();
  await page.waitForSelector(`.side a.session[data-id="${id}"]`);
  tell({ step: "sent", back, at: new URL(page.url()).pathname });

  // --- a session is written to before it was read ---
  const read = await hold(page, "GET", new RegExp(`^/api/sessions/${id}$`));
  await page.click(`.side a.session[data-id="${id}"]`);
  await read.came;
  await page.fill(".composer textarea", "before it was read");
  await page.press(".composer textarea", "Enter");
  await read.go();
  await page.waitForSelector('.said.user:has-text("before it was read")');
  await rests(page);

  // --- a menu that comes after its words were sent stays away ---
  const menu = await hold(page, "GET", /^\/api\/files/);
  await page.locator(".composer textarea").pressSequentially("see @no");
  await menu.came;
  const gone = answered(page, "POST", /\/prompt$|\/steer$/);
  await page.press(".composer textarea", "Enter");
  await gone;
  await menu.go();
  const hidden = await page.locator(".composer .menu-list").isHidden();

  // --- files that are still being read go along with what is sent, all of them ---
  await page.evaluate(() => {
    const whole = File.prototype.arrayBuffer;
    window.readOn = null;
    const gate = new Promise((done) => { window.readOn = done; });
    File.prototype.arrayBuffer = async function () { await gate; return whole.call(this); };
  });
  await page.setInputFiles('.composer input[type="file"]', [1, 2].map((n) => ({ name: `${n}.txt`, mimeType: "text/plain", buffer: Buffer.from(`text ${n}`) })));
  await page.fill(".composer textarea", "with two files");
  const along = page.waitForRequest((one) => one.method() === "POST" && /\/prompt$|\/steer$/.test(one.url()));
  await page.press(".composer textarea", "Enter");
  await page.evaluate(() => window.readOn());
  const files = (await along).postDataJSON();
  await page.waitForSelector('.said.user:has-text("with two files")');
  tell({ step: "written", hidden, files });

  // --- settings that are changed again while they are being saved ---
  await page.goto(`${address}/config/acp`);
  const field = '[data-key="acp.max_sessions"]';
  const saving = await hold(page, "PUT", /^\/api\/config$/);
  await page.fill(`${field} input`, "7");
  await page.press(`${field} input`, "Enter");
  await saving.came;
  await page.fill(`${field} input`, "8");
  const offered = answered(page, "PUT", /config/);
  await saving.go();
  await offered;
  const unsaved = await page.locator(`${field} .save`).isVisible();
  const next = await hold(page, "PUT", /^\/api\/config$/);
  await page.press(`${field} input`, "Enter");
  await next.came;
  await page.fill(`${field} input`, "9");
  await page.press(`${field} input`, "Enter"); // said while the other is under way
  await next.go();
  await page.waitForFunction((at) => document.querySelector(`${at} .save`).hidden, field);
  const kept = (await page.evaluate(async () => (await fetch("/api/config/fields?path=acp")).json())).find((one) => one.key === "acp.max_sessions").value;
  tell({ step: "settings", unsaved, kept });
});
