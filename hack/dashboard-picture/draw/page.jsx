// The page that the picture is taken of: each panel at its place in Grafana's grid.

import { createTheme, dateTime, dateTimeFormat, ThemeContext } from '@grafana/data';
import { GlobalStyles, Icon, PanelChrome } from '@grafana/ui';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { drawings } from './panels.jsx';

const theme = createTheme({ colors: { mode: 'dark' } });
const columns = 24, rowHeight = 30, gap = 8; // of the grid, in pixels

window.drawPage = async ({ title, panels, range, width }) => {
  const [from, to] = [dateTime(range.from * 1000), dateTime(range.to * 1000)];
  const root = createRoot(document.getElementById('page'));
  const show = (content) => flushSync(() => root.render(<ThemeContext.Provider value={theme}><GlobalStyles />{content}</ThemeContext.Provider>));
  show(null);
  // What is painted on a canvas does not change when its font arrives later.
  await Promise.all([theme.typography.fontWeightRegular, theme.typography.fontWeightMedium].map((weight) => document.fonts.load(`${weight} 12px Inter`)));
  show(<>
    <Header title={title} from={from} to={to} />
    <Grid panels={panels} width={width - 2 * gap} timeRange={{ from, to, raw: { from, to } }} />
  </>);
};

function Header({ title, from, to }) {
  const time = (moment) => dateTimeFormat(moment, { timeZone: 'utc', format: 'YYYY-MM-DD HH:mm' });
  return (
    <div style={{ display: 'flex', justifyContent: 'space-between', alignItems: 'baseline', padding: `${gap}px ${2 * gap}px` }}>
      <h3 style={{ margin: 0 }}>{title}</h3>
      <span style={{ color: theme.colors.text.secondary }}>{time(from)} to {time(to)} UTC</span>
    </div>
  );
}

function Grid({ panels, width, timeRange }) {
  const column = (width + gap) / columns;
  const height = Math.max(...panels.map(({ panel: { gridPos } }) => gridPos.y + gridPos.h)) * (rowHeight + gap);
  return (
    <div style={{ position: 'relative', margin: `0 ${gap}px ${gap}px`, height }}>
      {panels.map(({ panel, frames }) => {
        const { x, y, w, h } = panel.gridPos;
        const size = { width: w * column - gap, height: h * (rowHeight + gap) - gap };
        return (
          <div key={panel.id} style={{ position: 'absolute', left: x * column, top: y * (rowHeight + gap), ...size }}>
            {panel.type === 'row' ? <Row title={panel.title} /> : <Panel panel={panel} frames={frames} timeRange={timeRange} {...size} />}
          </div>
        );
      })}
    </div>
  );
}

function Row({ title }) {
  return <div style={{ display: 'flex', alignItems: 'center', gap: 4, height: '100%', ...theme.typography.h6 }}><Icon name="angle-down" /> {title}</div>;
}

function Panel({ panel, frames, timeRange, width, height }) {
  const Drawing = drawings[panel.type];
  return (
    <PanelChrome title={panel.title} description={panel.description} width={width} height={height}>
      {(innerWidth, innerHeight) => <Drawing panel={panel} frames={frames} timeRange={timeRange} theme={theme} width={innerWidth} height={innerHeight} />}
    </PanelChrome>
  );
}
