// Two sessions in worktrees of their own: one is merged, one is dropped. Usage: node worktree.mjs ADDRESS CODE CHROMIUM CWD
import { browse, checked, rests, tell } from "./driver.mjs";

const [address, code, executable, cwd] = process.argv.slice(2);

await browse({ address, code, executable, width: 1400, height: 900 }, async ({ page }) => {
  const seen = [], pages = [];
  for (const word of ["Merge", "Drop"]) {
    await page.goto(`${address}/`);
    await page.fill(".folder", cwd);
    await page.selectOption('select[name="mode"]', "full");
    await page.check('input[name="worktree"]');
    await page.waitForSelector('select[name="mode"] option[value="plan"]', { state: "attached" });
    await page.fill(".big-box textarea", `Make the ${word} file`);
    await page.press(".big-box textarea", "Enter");
    await page.waitForURL(/\/sessions\//);
    await rests(page);
    if (await page.isHidden(".panel")) await page.click(".tool-link[aria-expanded]");
    await page.waitForSelector(".worktree button");
    const branch = await page.textContent(".worktree bdi");
    pages.push(await checked(page, `worktree ${word}`));
    await page.click(`.worktree button:has-text("${word}")`);
    await page.click('dialog button:has-text("Cancel")'); // nothing without the user's word
    await page.click(`.worktree button:has-text("${word}")`);
    await page.click("dialog .danger");
    await page.waitForSelector("p.worktree");
    seen.push({ branch, ended: await page.textContent("p.worktree"), files: await page.$$eval(".panel-body details, .panel-body .file", (all) => all.length) });
  }
  tell({ step: "ended", seen, pages });
});
