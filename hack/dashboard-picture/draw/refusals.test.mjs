// What the tool refuses. Needs neither Chromium nor what npm installs.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readDashboard } from './dashboard.mjs';
import { ask } from './prometheus.mjs';

const range = { from: 1_000_000, to: 1_003_600 };
const query = { refId: 'A', expr: 'up{name=~"$name"}', legendFormat: '{{name}}' };
const panel = { id: 1, type: 'stat', title: 'Unsafe inboxes', gridPos: { x: 0, y: 0, w: 6, h: 4 }, targets: [query] };
const board = (changes) => JSON.stringify({
  title: 'Board', panels: [{ ...panel, ...changes }],
  templating: { list: [{ name: 'name', type: 'query', allValue: '.*', current: { value: '$__all' } }] },
});

test('the dashboard of config/grafana can be drawn', async () => {
  const dashboard = readDashboard(await readFile(new URL('../../../config/grafana/inbox.json', import.meta.url), 'utf8'), range);
  const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  assert.ok(expressions.length > 20);
  assert.deepEqual(expressions.filter((expression) => expression.includes('$')), []);
});

test('variables are filled in', () => {
  const text = board({ targets: [{ ...query, expr: 'max_over_time(up{name=~"${name}"}[$__range])' }] });
  assert.equal(readDashboard(text, range).panels[0].targets[0].expr, 'max_over_time(up{name=~".*"}[3600s])');
});

for (const [what, changes, why] of [
  ['a type that it cannot draw', { type: 'heatmap' }, /panel "Unsafe inboxes": its type is heatmap/],
  ['a transformation', { transformations: [{ id: 'merge' }] }, /panel "Unsafe inboxes": its transformations/],
  ['a panel without a query', { targets: [] }, /panel "Unsafe inboxes": it has no query/],
  ['a row that hides its panels', { type: 'row', collapsed: true }, /panel "Unsafe inboxes": a collapsed row/],
  ['a query that names no series', { targets: [{ ...query, legendFormat: '' }] }, /panel "Unsafe inboxes": query A has no legendFormat/],
  ['a variable that nobody knows', { targets: [{ ...query, expr: 'up{name="$nam"}' }] }, /panel "Unsafe inboxes": the variable \$nam /],
]) {
  test(`${what} is refused`, () => assert.throws(() => readDashboard(board(changes), range), { message: why }));
}

// A stand-in for Prometheus' HTTP API: the series that it answers with, whatever it is asked.
let series, url, server;
before(async () => {
  server = createServer((request, response) => {
    const quiet = new URL(request.url, url).searchParams.get('query') === 'quiet';
    response.end(JSON.stringify({ status: 'success', data: { result: quiet ? [] : series } }));
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  url = `http://127.0.0.1:${server.address().port}`;
});
after(() => server.close());

test('a query that answers nothing is refused', async () => {
  series = [];
  await assert.rejects(ask(url, panel, range, 600), { message: 'panel "Unsafe inboxes": query A answers nothing: up{name=~"$name"}' });
});

const up = { metric: { __name__: 'up', name: 'orders' }, values: [[1_000_000, '1'], [1_000_015, '+Inf']] };
const quiet = { refId: 'B', expr: 'quiet', legendFormat: 'none' };
const inWords = { defaults: { noValue: 'none wait' }, overrides: [] };

test('a query beside another that answers is refused too', async () => {
  series = [up];
  await assert.rejects(ask(url, { ...panel, targets: [query, quiet] }, range, 600), { message: 'panel "Unsafe inboxes": query B answers nothing: quiet' });
});

test('unless the panel says in words what nothing means', async () => {
  series = [up];
  const frames = await ask(url, { ...panel, targets: [query, quiet], fieldConfig: inWords }, range, 600);
  assert.deepEqual(frames.map(({ refId }) => refId), ['A']);
});

test('and then some query must answer', async () => {
  await assert.rejects(ask(url, { ...panel, targets: [quiet], fieldConfig: inWords }, range, 600), { message: 'panel "Unsafe inboxes": all its queries answer nothing' });
});

test('an answer becomes a frame with the name that the legend asks for', async () => {
  series = [up];
  assert.deepEqual(await ask(url, panel, range, 600), [{
    refId: 'A',
    fields: [
      { name: 'Time', type: 'time', config: { interval: 15_000 }, values: [1_000_000_000, 1_000_015_000] },
      { name: 'Value', type: 'number', labels: { name: 'orders' }, config: { displayNameFromDS: 'orders' }, values: [1, Infinity] },
    ],
  }]);
});

test('the command ends with 1 and names the panel', async () => {
  series = [];
  const folder = await mkdtemp(join(tmpdir(), 'picture-'));
  try {
    const file = join(folder, 'board.json');
    await writeFile(file, board({}));
    const run = promisify(execFile)(process.execPath, ['draw.mjs', '--dashboard', file, '--prometheus', url,
      '--from', '2026-01-01T00:00:00Z', '--to', '2026-01-01T01:00:00Z', '--out', join(folder, 'out.png')], { cwd: fileURLToPath(new URL('.', import.meta.url)) });
    await assert.rejects(run, (error) => error.code === 1 && error.stderr.includes('panel "Unsafe inboxes": query A answers nothing'));
  } finally {
    await rm(folder, { recursive: true });
  }
});
