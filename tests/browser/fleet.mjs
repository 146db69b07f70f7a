// The page of a fleet's nodes, wide and narrow, light and dark. Usage: node fleet.mjs ADDRESS CODE CHROMIUM SCREENS
import { join } from "node:path";
import { browse, checked, tell } from "./driver.mjs";

const [address, code, executable, screens] = process.argv.slice(2);

await browse({ address, code, executable, width: 1400, height: 900 }, async ({ page, wait }) => {
  const nodes = () => page.$$eval(".node", (all) => all.map((one) => ({ name: one.querySelector("h2").textContent, state: one.dataset.state, facts: Object.fromEntries([...one.querySelectorAll("dl div")].map((row) => [row.children[0].textContent, row.children[1].textContent])) })));
  await page.click(".tabs >> text=Fleet");
  await page.waitForFunction(() => document.querySelectorAll('.node[data-state="ready"]').length === 2);
  const seen = await nodes();
  const pages = [];
  for (const colorScheme of ["light", "dark"])
    for (const width of [1400, 390]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize({ width, height: 844 });
      pages.push(await checked(page, `fleet ${colorScheme} ${width}`));
      await page.screenshot({ path: join(screens, `fleet-${colorScheme}-${width}.png`) });
    }
  tell({ step: "seen", nodes: seen, pages });
  await wait(); // a session more, and a node less
  await page.waitForFunction(() => [...document.querySelectorAll(".node")].filter((one) => one.dataset.state === "ready").length === 1);
  tell({ step: "changed", nodes: await nodes() });
});
