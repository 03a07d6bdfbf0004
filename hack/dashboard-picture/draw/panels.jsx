// What is in a panel, by its type: Grafana's components over Grafana's data frames.

import {
  applyFieldOverrides, FieldConfigOptionsRegistry, getDisplayValueAlignmentFactors, getFieldDisplayValues, identityOverrideProcessor, toDataFrame, VizOrientation,
} from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, VizRepeater } from '@grafana/ui';

const timeZone = 'utc';
const asItIs = (text) => text; // the variables are filled in already

// The options of a field that a dashboard can set. Grafana registers an editor for each;
// here nobody edits.
const standard = ['unit', 'min', 'max', 'decimals', 'displayName', 'noValue', 'thresholds', 'mappings', 'color', 'links'];

function registry({ defaults, overrides }) {
  const custom = new Set([...Object.keys(defaults.custom ?? {}),
    ...overrides.flatMap(({ properties }) => properties.map(({ id }) => id).filter((id) => id.startsWith('custom.')).map((id) => id.slice('custom.'.length)))]);
  const item = (id, path, isCustom) => ({ id, path, isCustom, name: path, process: identityOverrideProcessor, shouldApply: () => true });
  return new FieldConfigOptionsRegistry(() => [
    ...standard.map((path) => item(path, path, false)), ...[...custom].map((path) => item(`custom.${path}`, path, true)),
  ]);
}

// JSON has no -Infinity: Grafana writes null for the base of the thresholds.
function withBase({ defaults, overrides }) {
  if (!defaults.thresholds) return { defaults, overrides };
  const steps = defaults.thresholds.steps.map((step) => ({ ...step, value: step.value ?? -Infinity }));
  return { defaults: { ...defaults, thresholds: { ...defaults.thresholds, steps } }, overrides };
}

function configured(panel, frames, theme) {
  const fieldConfig = withBase(panel.fieldConfig);
  const data = applyFieldOverrides({
    data: frames.map((frame) => toDataFrame(frame)), fieldConfig, fieldConfigRegistry: registry(fieldConfig), replaceVariables: asItIs, theme, timeZone,
  });
  return { data, fieldConfig };
}

function values(panel, frames, theme) {
  const { data, fieldConfig } = configured(panel, frames, theme);
  return getFieldDisplayValues({ data, fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables: asItIs, theme, timeZone });
}

// One drawing per value, shared out over the panel.
function Repeated({ panel, frames, theme, width, height, itemSpacing, children }) {
  return (
    <VizRepeater
      source={frames} getValues={() => values(panel, frames, theme)} getAlignmentFactors={getDisplayValueAlignmentFactors} renderValue={children}
      orientation={panel.options.orientation ?? VizOrientation.Auto} itemSpacing={itemSpacing} renderCounter={0} autoGrid width={width} height={height}
    />
  );
}

function Stat({ panel, theme, ...rest }) {
  const { colorMode, graphMode, textMode, justifyMode } = panel.options;
  return (
    <Repeated panel={panel} theme={theme} {...rest}>
      {({ value, width, height, alignmentFactors, count }) => (
        <BigValue
          value={value.display} count={count} colorMode={colorMode} graphMode={graphMode} textMode={textMode} justifyMode={justifyMode}
          alignmentFactors={alignmentFactors} theme={theme} width={width} height={height}
        />
      )}
    </Repeated>
  );
}

function Bars({ panel, theme, ...rest }) {
  const { displayMode, showUnfilled, valueMode, namePlacement } = panel.options;
  return (
    <Repeated panel={panel} theme={theme} itemSpacing={8} {...rest}>
      {({ value, width, height, orientation, alignmentFactors }) => (
        <BarGauge
          value={value.display} field={value.field} display={value.view?.getFieldDisplayProcessor(value.colIndex)} orientation={orientation}
          displayMode={displayMode} showUnfilled={showUnfilled} valueDisplayMode={valueMode} namePlacement={namePlacement}
          alignmentFactors={alignmentFactors} itemSpacing={8} theme={theme} width={width} height={height}
        />
      )}
    </Repeated>
  );
}

function Lines({ panel, frames, timeRange, theme, width, height }) {
  const { data } = configured(panel, frames, theme);
  return (
    <TimeSeries
      frames={data} timeRange={timeRange} timeZone={timeZone} legend={{ calcs: [], ...panel.options.legend }} width={width} height={height}
    />
  );
}

// drawings by the panel's type; dashboard.mjs refuses the others.
export const drawings = { stat: Stat, bargauge: Bars, timeseries: Lines };
