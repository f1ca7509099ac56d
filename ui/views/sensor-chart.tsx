/** The values of a sensor over time, with axes. */
import { chartOf, rangeOf, unitText, type SensorHistory } from '../lib/sensors';

const [WIDTH, HEIGHT] = [720, 240];
/** The area of the line; the marks of the axes are outside of it. */
const AREA = { left: 70, top: 12, right: 670, bottom: 204 };
const x = (percent: number): number => AREA.left + ((AREA.right - AREA.left) * percent) / 100;
const y = (percent: number): number => AREA.bottom - ((AREA.bottom - AREA.top) * percent) / 100;

export function SensorChart({ kind, sensor, entity, unit, values }: SensorHistory) {
  const { points, horizontal, vertical } = chartOf(values);
  const name = `${entity === '' ? kind : `${entity}, ${kind}`} (${sensor})${unitText(unit) === '' ? '' : ` in ${unitText(unit)}`}`;
  return (
    <figure class="chart">
      <figcaption>{name}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${name}: ${rangeOf(values)}, now ${values.at(-1)!.value}`}>
        {vertical.map(({ place, value }) => (
          <g key={place}>
            <line x1={AREA.left} x2={AREA.right} y1={y(place)} y2={y(place)} />
            <text class="value" x={AREA.left - 8} y={y(place)}>
              {value}
            </text>
          </g>
        ))}
        {horizontal.map(({ place, value }) => (
          <g key={place}>
            <line x1={x(place)} x2={x(place)} y1={AREA.bottom} y2={AREA.bottom + 5} />
            <text class="time" x={x(place)} y={AREA.bottom + 22}>
              {new Date(value).toLocaleTimeString()}
            </text>
          </g>
        ))}
        <polyline points={points.map((point) => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`).join(' ')} />
        {points.length === 1 && <circle cx={x(points[0]!.x)} cy={y(points[0]!.y)} r="3" />}
      </svg>
    </figure>
  );
}
