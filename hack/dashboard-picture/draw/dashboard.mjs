// Reads a dashboard as Grafana exports it. What this tool cannot draw as Grafana would is
// refused, by the panel's name.

const drawable = new Set(['row', 'stat', 'bargauge', 'timeseries']);

// The panels, with the variables filled into their queries as Grafana does before anybody
// has chosen a value. from and to are in seconds since 1970.
export function readDashboard(text, { from, to }) {
  const dashboard = JSON.parse(text);
  const values = variables(dashboard.templating?.list ?? []);
  values.set('__range', `${Math.round(to - from)}s`);
  return { ...dashboard, panels: dashboard.panels.map((panel) => readPanel(panel, values)) };
}

function variables(list) {
  const values = new Map();
  for (const { name, type, allValue, current } of list) {
    if (type === 'datasource') continue; // there is one: the one that is asked
    const value = current?.value === '$__all' ? allValue : current?.value;
    if (typeof value !== 'string') throw new Error(`variable ${name}: its value is neither a text nor All with an allValue`);
    values.set(name, value);
  }
  return values;
}

function readPanel(panel, values) {
  const refuse = (why) => { throw new Error(`panel "${panel.title}": ${why}`); };
  if (!drawable.has(panel.type)) refuse(`its type is ${panel.type}, and only ${[...drawable].join(', ')} can be drawn`);
  if (panel.collapsed) refuse('a collapsed row hides its panels');
  if (panel.transformations?.length) refuse('its transformations cannot be drawn');
  if (panel.type === 'row') return panel;
  if (!panel.targets?.length) refuse('it has no query');
  const targets = panel.targets.map((target) => {
    if (!target.legendFormat) refuse(`query ${target.refId} has no legendFormat`);
    return { ...target, expr: fillIn(target.expr, values, refuse) };
  });
  return { ...panel, targets };
}

function fillIn(expression, values, refuse) {
  return expression.replace(/\$(?:\{(\w+)\}|(\w+))/g, (whole, braced, plain) =>
    values.get(braced ?? plain) ?? refuse(`the variable ${whole} cannot be filled in`));
}
