// Asks Prometheus what a panel asks, and makes data frames of the answer as Grafana's data
// source for Prometheus does: a frame per series, with the field of times and that of values.

const shortestStep = 15; // seconds: the data source's scrape interval, by default

// The frames of all queries of a panel; from and to are in seconds since 1970, width in
// pixels. The picture has no blank panel: a query that answers nothing is refused, unless
// the panel says in words what that means and another query of it answers.
export async function ask(url, panel, { from, to }, width) {
  const step = Math.max(shortestStep, Math.ceil((to - from) / width / shortestStep) * shortestStep);
  const frames = [];
  for (const target of panel.targets) {
    const answer = await (target.instant
      ? get(`${url}/api/v1/query`, { query: target.expr, time: to })
      : get(`${url}/api/v1/query_range`, { query: target.expr, start: Math.floor(from / step) * step, end: Math.floor(to / step) * step, step }));
    if (answer.length === 0 && !panel.fieldConfig?.defaults.noValue) {
      throw new Error(`panel "${panel.title}": query ${target.refId} answers nothing: ${target.expr}`);
    }
    frames.push(...answer.map((series) => frame(series, target, step)));
  }
  if (frames.length === 0) throw new Error(`panel "${panel.title}": all its queries answer nothing`);
  return frames;
}

async function get(url, parameters) {
  const response = await fetch(`${url}?${new URLSearchParams(parameters)}`);
  const body = await response.json();
  if (body.status !== 'success') throw new Error(`${parameters.query}: ${body.error}`);
  return body.data.result;
}

function frame({ metric, value, values }, { refId, legendFormat }, step) {
  const { __name__: name, ...labels } = metric;
  const points = values ?? [value];
  return {
    refId,
    fields: [
      { name: 'Time', type: 'time', config: { interval: step * 1000 }, values: points.map(([time]) => time * 1000) },
      {
        name: 'Value', type: 'number', labels, values: points.map(([, text]) => number(text)),
        config: { displayNameFromDS: legendFormat.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => metric[label] ?? '') },
      },
    ],
  };
}

function number(text) {
  return { '+Inf': Infinity, '-Inf': -Infinity }[text] ?? Number(text);
}
