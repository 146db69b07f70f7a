// Shows what is hostile, everywhere it can be shown, and looks whether any of it did something.
// Usage: node hostile.mjs ADDRESS CODE CHROMIUM SESSION WORKER EXPORT
import { browse, tell } from "./driver.mjs";

const [address, code, executable, session, worker] = process.argv.slice(2);

// What must not be anywhere in a page: handlers, scripts, frames, foreign sources and addresses.
function found() {
  const wrong = [];
  for (const node of document.querySelectorAll("body *")) {
    for (const attr of node.attributes) {
      if (/^on/i.test(attr.name)) wrong.push(`${node.tagName} ${attr.name}`);
      if (attr.name === "style" && /url\(|expression|import/i.test(attr.value)) wrong.push(`${node.tagName} style`);
      if (["href", "src", "action", "formaction", "data", "srcdoc", "xlink:href", "ping"].includes(attr.name) && !/^(https?:|mailto:|data:image\/(png|jpeg|gif|webp);base64,|\/|#|[\w.-]+\/|$)/i.test(attr.value)) wrong.push(`${node.tagName} ${attr.name}=${attr.value.slice(0, 60)}`);
    }
    if (["SCRIPT", "IFRAME", "OBJECT", "EMBED", "META", "LINK", "BASE", "STYLE", "FORM", "MATH"].includes(node.tagName) && !(node.tagName === "FORM" && /compose|verdict|begin|setting/.test(node.className))) wrong.push(node.tagName);
    if (node.tagName === "IMG" && !node.src.startsWith(location.origin) && !node.src.startsWith("data:image/")) wrong.push(`IMG ${node.src}`);
  }
  return { wrong, pwned: window.pwned ?? null, title: document.title.length };
}

await browse({ address, code, executable }, async ({ page, troubles }) => {
  await page.addInitScript(() => { document.addEventListener("securitypolicyviolation", (event) => { window.pwned = `${event.violatedDirective} ${event.blockedURI}`; }); });
  const seen = [];
  const look = async (name) => seen.push({ name, ...(await page.evaluate(found)) });
  await page.goto(`${address}/`);
  await page.waitForSelector(".side .rows a.session");
  await look("home");
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 820 });
    await page.goto(`${address}/sessions/${session}`);
    await page.waitForSelector(".said.agent .prose *");
    await page.waitForFunction(() => document.querySelectorAll(".part > *").length > 30);
    for (const node of await page.$$("details:not([open]).call > summary, details:not([open]).thinking > summary")) await node.evaluate((one) => { one.parentElement.open = true; });
    for (const button of await page.$$(".permalink >> nth=0")) await button.click();
    await look(`session ${width}`);
    while (await page.isVisible(".earlier")) {
      const first = await page.getAttribute(".part [data-seq]", "data-seq");
      await page.evaluate(() => { document.querySelector(".scroll").scrollTop = 0; });
      await page.waitForFunction((before) => document.querySelector(".earlier").hidden || document.querySelector(".part [data-seq]").dataset.seq !== before, first);
    }
    await look(`older ${width}`);
  }
  const shown = await page.textContent(".talk");
  await page.setViewportSize({ width: 1280, height: 820 });
  await page.goto(`${address}/sessions/${session}/timeline`);
  await page.waitForSelector(".turn");
  await look("timeline");
  await page.goto(`${address}/sessions/${session}`);
  await page.waitForSelector(".said.agent");
  await page.keyboard.press("Escape");
  await page.keyboard.press("t");
  await page.waitForSelector(".turn-choice");
  await look("turns");
  await page.keyboard.press("Escape");
  await page.goto(`${address}/sessions/${worker}`);
  await page.waitForSelector(".said.agent");
  await page.click(".tool-link[aria-expanded]");
  await page.waitForSelector(".changed");
  await look("files");
  const files = await page.$$eval(".changed .path", (all) => all.map((one) => one.textContent));
  await page.click("#tab-undo");
  await page.waitForSelector(".checkpoint");
  await look("checkpoints");
  await page.type(".composer textarea", "@f");
  await page.waitForSelector(".offer");
  await look("menu");
  await page.fill(".composer textarea", "");
  await page.fill(".side .search", "<img src=x onerror=window.pwned=1>");
  await page.waitForFunction(() => /Found/.test(document.querySelector(".sessions section:last-of-type h2").textContent));
  await look("search");
  await page.goto(`${address}/approvals`);
  await page.waitForSelector(".asklist [data-verdict=allow]");
  await look("approvals");
  tell({ step: "seen", seen, shown, files, troubles });
});
