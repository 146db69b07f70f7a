// Walks through the dashboard, room by room, wide and narrow, light and dark.
// Usage: node rooms.mjs ADDRESS CODE CHROMIUM CWD SCREENS
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { browse, checked, noted, notes, rests, say, soon, tell } from "./driver.mjs";

const [address, code, executable, cwd, screens] = process.argv.slice(2);
await browse({ address, code, executable, width: 1400, height: 900 }, async ({ page, context, wait }) => {
  const shot = (name) => page.screenshot({ path: join(screens, `rooms-${name}.png`) });
  const text = (selector) => page.textContent(selector);
  const pages = [];

  // --- home: a prompt box ---
  const offered = await page.$$eval(".big-box select", (all) => all.map((one) => one.getAttribute("aria-label")));
  await page.fill(".folder", `${cwd}/pro`);
  await page.waitForFunction(() => [...document.querySelectorAll("#folders option")].some((one) => one.value.endsWith("/project")));
  await page.fill(".folder", `${cwd}/project`);
  await page.setInputFiles(".big-box input[type=file]", [{ name: "note<b>.txt", mimeType: "text/plain", buffer: Buffer.from("a note to read") }]);
  await page.waitForSelector(".thing");
  await page.fill(".big-box textarea", "think, then count to 9");
  await page.press(".big-box textarea", "Enter");
  await page.waitForURL(/\/sessions\//);
  await rests(page);
  const session = decodeURIComponent(page.url().split("/sessions/")[1]);
  tell({ step: "home", offered, session, said: await text(".said.user"), thinking: await page.$eval("details.thinking", (one) => one.open), title: await text(".sessions .title"), attached: await page.$eval(".said.user details.attached", (one) => [one.querySelector("summary").textContent, one.open]) });

  // --- menus ---
  await page.fill(".composer textarea", "");
  await page.type(".composer textarea", "/un");
  await page.waitForSelector(".composer .offer");
  pages.push(await checked(page, "suggestions"));
  const slash = await page.$$eval(".composer .offer .name", (all) => all.map((one) => one.textContent));
  await page.keyboard.press("Tab");
  const filled = await page.inputValue(".composer textarea");
  await page.fill(".composer textarea", "");
  await page.type(".composer textarea", "read @par");
  await page.waitForFunction(() => document.querySelector(".composer .offer .name")?.textContent.includes("parser"));
  const files = await page.$$eval(".composer .offer .name", (all) => all.map((one) => one.textContent));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  tell({ step: "menus", slash, filled, files, at: await page.inputValue(".composer textarea") });

  // --- paste and drop ---
  await page.fill(".composer textarea", "");
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  for (const kind of ["paste", "drop"])
    await page.evaluate(([kind, png]) => {
      const bytes = Uint8Array.from(atob(png), (one) => one.charCodeAt(0));
      const data = new DataTransfer();
      data.items.add(new File([bytes], `${kind}.png`, { type: "image/png" }));
      const target = document.querySelector(".composer textarea");
      target.dispatchEvent(kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }) : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }, [kind, png]);
  await page.waitForFunction(() => document.querySelectorAll(".composer .thing img").length === 2);
  await page.click('[aria-label="Leave paste.png out"]');
  await page.evaluate(() => { const data = new DataTransfer(); data.items.add(new File([new Uint8Array([0, 1, 2])], "blob.bin")); document.querySelector(".composer textarea").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })); });
  await page.waitForFunction(() => /neither a picture nor a text/.test(document.getElementById("toast").textContent));
  await say(page, "echo what you see");
  await page.waitForSelector(".said.user img.picture");
  await rests(page);
  tell({ step: "attached", pictures: await page.$$eval(".said.user img.picture", (all) => all.length) });

  // --- tools: live output, a plan, a change, a failure ---
  await say(page, "run for i in 1 2 3 4 5 6 7 8 9; do echo tick $i; sleep 0.4; done");
  await page.click(".ask [data-verdict=allow]");
  await page.waitForSelector('.call[data-state="running"] pre.term');
  await page.waitForFunction(() => /tick 2/.test(document.querySelector('.call[data-state="running"] pre.term')?.textContent ?? ""));
  const live = await page.$$eval(".call[data-state=running]", (all) => all.length);
  await rests(page);
  await say(page, 'write "calm" to hello.txt');
  await page.click(".ask [data-verdict=allow]");
  await rests(page);
  await say(page, 'edit hello.txt replacing "calm" with "very calm"');
  await page.click(".ask [data-verdict=allow]");
  await rests(page);
  tell({ step: "tools", live, gauge: await page.getAttribute(".gauge", "aria-valuenow"), cards: await page.$$eval(".call .tool", (all) => all.map((one) => one.textContent)) });

  // --- the panel: changes, checkpoints, undo, agents ---
  await page.click(".tool-link[aria-expanded]");
  await page.waitForSelector(".changed");
  const changes = await page.$$eval(".changed", (all) => all.map((one) => [one.dataset.path, one.textContent]));
  await shot("panel");
  pages.push(await checked(page, "changes beside a session"));
  await page.click("#tab-undo");
  await page.waitForSelector(".checkpoint");
  pages.push(await checked(page, "checkpoints"));
  const before = await page.$$eval(".checkpoint:not([data-undone])", (all) => all.length);
  await page.click(".checkpoint:last-of-type button");
  await page.click("dialog .danger");
  await page.waitForSelector(".checkpoint[data-undone]");
  tell({ step: "undone", changes, before, left: await page.$$eval(".checkpoint:not([data-undone])", (all) => all.length) });
  await wait(); // the test looks at the files, and starts a sub-agent
  await page.click("#tab-agents");
  await page.waitForSelector(".tree [role=treeitem] .session");
  tell({ step: "agents", tree: await text(".tree") });

  // --- permalink, jump to a turn, export ---
  await page.hover(".said.user >> nth=0");
  await page.click(".said.user >> nth=0 >> .permalink");
  const place = page.url();
  await page.goto("about:blank");
  let lost = 0; // the first look is lost on the way: the page comes by itself once the stream is there
  await context.route(/\/events\?after=/, (route) => { lost += 1; return route.abort("connectionrefused"); }, { times: 1 });
  await page.goto(place);
  await page.waitForSelector(".said.user");
  const focus = await page.evaluate(() => Number(location.hash.slice(2)));
  await page.keyboard.press("t");
  await page.waitForSelector(".turn-choice");
  pages.push(await checked(page, "turns"));
  const turns = await page.$$eval(".turn-choice bdi", (all) => all.map((one) => one.textContent));
  await page.fill("dialog input", "hello.txt");
  await page.click(".turn-choice >> nth=0");
  await page.waitForFunction((before) => Number(location.hash.slice(2)) > before, focus);
  await page.click(".menu summary");
  pages.push(await checked(page, "menu of a session"));
  const [file] = await Promise.all([page.waitForEvent("download"), page.click("text=Export as Markdown")]);
  const kept = readFileSync(await file.path(), "utf8");
  tell({ step: "places", lost, focus, turns, export: kept.includes("count to 9"), name: file.suggestedFilename() });

  // --- the timeline ---
  await page.keyboard.press("Escape");
  await page.goto(`${address}/sessions/${session}/timeline`);
  await page.waitForSelector(".turn .track i");
  tell({ step: "timeline", turns: await page.$$eval(".turn", (all) => all.length), kinds: [...new Set(await page.$$eval(".track i", (all) => all.map((one) => one.dataset.kind)))].sort(), sums: await text(".sums") });

  // --- search by what was said ---
  await page.fill(".side .search", "tick project");
  const found = await page.waitForFunction(() => {
    const ids = [...document.querySelectorAll(".pages a.session")].map((one) => one.dataset.id);
    return /Found/.test(document.querySelector(".sessions section:last-of-type h2").textContent) && ids.length && ids;
  });
  tell({ step: "found", ids: await found.jsonValue() });
  await page.fill(".side .search", "");

  // --- theme, keys, notifications ---
  await page.goto(`${address}/config`);
  await page.waitForSelector("#theme");
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.selectOption("#theme", "dark");
  const dark = await paper();
  await page.reload();
  await page.waitForSelector("#theme");
  const again = await paper();
  await page.selectOption("#theme", "");
  await page.locator("h1").click();
  await page.keyboard.press("?");
  const keys = await text("dialog");
  pages.push(await checked(page, "keys"));
  await page.keyboard.press("Escape");
  await context.grantPermissions(["notifications"], { origin: address });
  await soon(page.evaluate(() => navigator.serviceWorker.ready.then(() => 0)), "the service worker");
  await page.click("#notify");
  await page.waitForFunction(() => localStorage.getItem("notify") === "1" && document.body.dataset.live === "live");
  await notes(page);
  tell({ step: "own", light, dark, again, keys });
  await wait(); // the test makes a session ask something
  tell({ step: "notified", note: await noted(page) });

  // --- every page, wide and narrow, light and dark, through axe ---
  const paths = ["/", "/sessions", "/approvals", "/clients", "/wire", "/fleet", "/config", "/config/acp", `/sessions/${session}`, `/sessions/${session}/timeline`];
  for (const [scheme, name, width, height] of [["light", "wide", 1400, 900], ["dark", "wide", 1400, 900], ["light", "phone", 390, 844], ["dark", "phone", 390, 844]]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.setViewportSize({ width, height });
    for (const path of paths) {
      await page.goto(address + path);
      await page.waitForSelector("main h1");
      await page.waitForFunction(() => document.body.dataset.live === "live");
      if (path.endsWith(session)) await page.waitForSelector(".said.agent");
      pages.push(await checked(page, `${scheme} ${name} ${path.replace(session, "ID")}`));
      if (["/", `/sessions/${session}`].includes(path)) await shot(`${scheme}-${name}-${path === "/" ? "home" : "session"}`);
    }
  }
  tell({ step: "pages", pages });

  // --- the wire: filter, pause, copy ---
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: address });
  await page.setViewportSize({ width: 1400, height: 900 });
  await page.goto(`${address}/wire`);
  await page.waitForFunction(() => document.body.dataset.live === "live");
  tell({ step: "wire" });
  await wait();
  await page.waitForSelector(".wire .row");
  await page.fill("main .search", "session/list");
  const filtered = await page.$$eval(".wire .row .text", (all) => all.map((one) => one.textContent));
  await page.fill("main .search", "");
  await page.click("text=Pause");
  tell({ step: "paused", filtered });
  await wait();
  const while_paused = await page.$$eval(".wire .row", (all) => all.length);
  await page.click("text=Go on");
  await page.waitForFunction((before) => document.querySelectorAll(".wire .row").length > before, while_paused);
  await page.click("text=Copy as transcript");
  await page.waitForFunction(() => /dragoman replay/.test(document.getElementById("toast").textContent));
  tell({ step: "copied", transcript: await page.evaluate(() => navigator.clipboard.readText()) });

  // --- a question by its link, on a phone that is nobody ---
  const link = await wait();
  await context.clearCookies();
  const phone = await context.newPage();
  await phone.setViewportSize({ width: 390, height: 844 });
  await phone.goto(`${address}/${link}`);
  await phone.waitForSelector("[data-verdict=allow]");
  const early = await phone.isDisabled("[data-verdict=allow]");
  const asked = await phone.textContent(".whole");
  const seen = await checked(phone, "phone /approve");
  await phone.screenshot({ path: join(screens, "rooms-approve.png") });
  await phone.$eval(".end", (node) => node.scrollIntoView());
  await phone.waitForSelector("[data-verdict=allow]:not([disabled])");
  await phone.click("[data-verdict=allow]");
  await phone.waitForFunction(() => /Allowed/.test(document.querySelector(".approve").textContent));
  await phone.reload();
  await phone.waitForFunction(() => /used|answered/.test(document.querySelector(".approve-body").textContent));
  tell({ step: "linked", early, asked, seen });

  // --- installable, and a shell when the host is away ---
  await page.bringToFront();  // a page that is long behind another one may be put to sleep
  const manifest = await page.evaluate(async () => (await fetch(document.querySelector("link[rel=manifest]").href, { signal: AbortSignal.timeout(180000) })).json());
  tell({ step: "installed", manifest });
  await wait(); // the host goes
  await phone.goto(`${address}/`);
  await phone.waitForSelector(".lost h1");
  const away = await checked(phone, "phone away");
  tell({ step: "away", away });
});
