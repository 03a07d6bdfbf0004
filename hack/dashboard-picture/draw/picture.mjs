// Bundles the page and takes its picture with Chromium.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import UPNG from 'upng-js';

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, 'node_modules');
const scale = 1.125; // pixels of the picture per CSS pixel

const html = `<!doctype html><html><head><meta charset="utf-8"><link rel="stylesheet" href="/page.css"></head>
<body><div id="page"></div><script src="/page.js"></script></body></html>`;

// executablePath is Chromium's.
export async function takePicture(content, executablePath, out) {
  const bundled = await bundle();
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  try {
    const page = await browser.newPage({ viewport: { width: content.width, height: 800 }, deviceScaleFactor: scale, timezoneId: 'UTC' });
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(error.stack ?? error.message));
    await page.route('**/*', (route) => serve(route, bundled));
    await page.goto('http://picture.invalid/'); // answered by serve: nothing leaves the machine
    await page.evaluate((given) => window.drawPage(given), content);
    await page.waitForLoadState('networkidle'); // the icons
    if (complaints.length > 0) throw new Error(`the page failed: ${complaints[0]}`);
    const picture = await page.screenshot({ fullPage: true });
    await mkdir(dirname(out), { recursive: true });
    await writeFile(out, small(picture));
  } finally {
    await browser.close();
  }
}

// With at most 256 colours it is a third of the size, and looks the same.
function small(picture) {
  const image = UPNG.decode(picture.buffer.slice(picture.byteOffset, picture.byteOffset + picture.byteLength));
  return Buffer.from(UPNG.encode(UPNG.toRGBA8(image), image.width, image.height, 256));
}

// The page's script and style.
async function bundle() {
  const { outputFiles } = await build({
    entryPoints: [join(here, 'page.jsx')], outdir: '/', write: false, bundle: true, format: 'iife', jsx: 'automatic', minify: true, logLevel: 'silent',
    define: { 'process.env.NODE_ENV': '"production"', global: 'window' },
    loader: { '.ttf': 'empty' }, // of the code editor, which is not shown
  });
  return Object.fromEntries(outputFiles.map(({ path, text }) => [path, text]));
}

// Grafana's icons and its font lie in their packages.
const files = [
  [/^\/public\/fonts\/inter\/Inter-Regular\.woff2$/, () => join(modules, '@fontsource/inter/files/inter-latin-400-normal.woff2')],
  [/^\/public\/fonts\/inter\/Inter-Medium\.woff2$/, () => join(modules, '@fontsource/inter/files/inter-latin-500-normal.woff2')],
  [/^\/public\/(?:build\/)?img\/(icons\/[\w/-]+\.svg)$/, ([, icon]) => join(modules, '@grafana/ui/dist/public/img', icon)],
];

async function serve(route, bundled) {
  const path = new URL(route.request().url()).pathname;
  if (path === '/') return route.fulfill({ contentType: 'text/html', body: html });
  if (path in bundled) return route.fulfill({ contentType: path.endsWith('.css') ? 'text/css' : 'text/javascript', body: bundled[path] });
  for (const [pattern, file] of files) {
    const match = pattern.exec(path);
    if (match) return route.fulfill({ contentType: path.endsWith('.svg') ? 'image/svg+xml' : 'font/woff2', body: await readFile(file(match)) });
  }
  return route.fulfill({ status: 404 });
}
