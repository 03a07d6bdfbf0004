// Draws a dashboard from what a Prometheus answers:
//
//   node draw.mjs --dashboard FILE --prometheus URL --from TIME --to TIME --chromium PROGRAM --out FILE
//
// Ends with 1, and names the panel, when one cannot be drawn or has nothing to show.

import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { readDashboard } from './dashboard.mjs';
import { ask } from './prometheus.mjs';

const width = 1440; // of the page, in CSS pixels

const text = { type: 'string' };
const { values: options } = parseArgs({ options: { dashboard: text, prometheus: text, from: text, to: text, chromium: text, out: text } });

async function run() {
  const range = { from: Date.parse(options.from) / 1000, to: Date.parse(options.to) / 1000 };
  const dashboard = readDashboard(await readFile(options.dashboard, 'utf8'), range);
  const panels = [];
  for (const panel of dashboard.panels) {
    const frames = panel.type === 'row' ? [] : await ask(options.prometheus, panel, range, (panel.gridPos.w / 24) * width);
    panels.push({ panel, frames });
  }
  const { takePicture } = await import('./picture.mjs'); // needs what npm installs
  await takePicture({ title: dashboard.title, panels, range, width }, options.chromium, options.out);
}

try {
  await run();
} catch (error) {
  console.error(`draw: ${error.message}`);
  process.exitCode = 1;
}
