// Draws the dashboard's icons from its mark. Usage: node scripts/make_icons.mjs CHROMIUM
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(new URL("../tests/interop/node/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const folder = new URL("../src/dragoman/gateway/static/", import.meta.url);
const mark = readFileSync(new URL("mark.svg", folder), "utf8").replace('rx="8" ', ""); // systems cut the corners
const browser = await chromium.launch({ executablePath: process.argv[2] || "chromium", args: ["--no-sandbox"] });
for (const size of [192, 512]) {
  const page = await browser.newPage({ viewport: { width: size, height: size } });
  await page.setContent(`<style>body{margin:0}svg{display:block;width:${size}px;height:${size}px}</style>${mark}`);
  await page.screenshot({ path: fileURLToPath(new URL(`icon-${size}.png`, folder)) });
}
await browser.close();
