// A model that plans, hands work to another, and answers in Markdown. Usage: node tour.mjs ADDRESS CODE CHROMIUM CWD SCREENS
import { join } from "node:path";
import { browse, checked, rests, say, tell } from "./driver.mjs";

const [address, code, executable, cwd, screens] = process.argv.slice(2);

// What Markdown became, as a reader sees it.
function shape(node) {
  const box = node.querySelector(".task-list-item > input");
  const size = box?.getBoundingClientRect();
  return {
    html: node.querySelector(".prose").innerHTML,
    nested: node.querySelectorAll("ol > li > ul > li > ul > li").length,
    cells: [...node.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)),
    tasks: [...node.querySelectorAll(".task-list-item > input")].map((one) => one.checked),
    beside: box && size.width < 20 && Math.abs(size.bottom - box.parentElement.getBoundingClientRect().bottom) < 12,
    struck: node.querySelector("s")?.textContent, words: node.querySelectorAll("pre.code .k").length, links: [...node.querySelectorAll("a[target]")].map((one) => one.textContent),
  };
}

await browse({ address, code, executable, width: 1400, height: 900 }, async ({ page }) => {
  await page.fill(".folder", cwd);
  await page.fill(".big-box textarea", "Give me a tour");
  await page.press(".big-box textarea", "Enter");
  await page.waitForURL(/\/sessions\//);
  await page.waitForSelector(".said.agent pre.code .k"); // coloured while the rest still comes
  await rests(page);
  const last = page.locator(".said.agent", { has: page.locator("table") });
  await last.waitFor();
  const streamed = await last.evaluate(shape);
  const plan = await page.$$eval(".part .plan li", (all) => all.map((one) => [one.textContent, one.dataset.status]));
  await page.click(".tool-link[aria-expanded]");
  await page.click("#tab-plan");
  await page.waitForSelector(".panel .plan li");
  const beside = await page.$$eval(".panel .plan li", (all) => all.map((one) => [one.textContent, one.dataset.status]));
  await page.click("#tab-agents");
  await page.waitForSelector(".tree a.session");
  const tree = await page.$$eval(".tree a.session .title", (all) => all.map((one) => one.textContent));
  await page.click('[aria-label="Close the panel"]');
  const pages = [];
  for (const colorScheme of ["light", "dark"])
    for (const width of [1400, 390]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize({ width, height: 844 });
      pages.push(await checked(page, `tour ${colorScheme} ${width}`));
      await page.screenshot({ path: join(screens, `tour-${colorScheme}-${width}.png`) });
    }
  await page.setViewportSize({ width: 1400, height: 900 });
  await page.reload();
  await last.waitFor();
  const again = await last.evaluate(shape);
  tell({ step: "toured", streamed, again, plan, beside, tree, pages });

  // --- a turn that fails says so once, and the session is not idle ---
  await say(page, "and now?");
  await page.waitForSelector('.status[data-status="failed"]');
  const errors = await page.$$eval('.part > .note[data-level="error"]', (all) => all.map((one) => one.textContent));
  await page.goto(`${address}/`);
  await page.waitForSelector('.side .rows a.session[data-kind="failed"]');
  tell({ step: "failed turn", errors, row: await page.textContent('.side .rows a.session[data-kind="failed"]') });
});
