/** The sensors of a machine, read again while the view is open. */
import { useEffect, useState } from 'preact/hooks';
import { lineOf, rangeOf, withReadings, type Reading, type SensorHistory } from '../lib/sensors';
import { api, messageOf } from '../state';
import { Scrolled } from './shared';

const PERIOD_MS = 10_000;

export function Sensors({ uuid }: { readonly uuid: string }) {
  const [histories, setHistories] = useState<readonly SensorHistory[] | null>(null);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    const read = async (): Promise<void> => {
      try {
        const { sensors } = await api.get<{ readonly sensors: readonly Reading[] }>(`v1/nodes/${uuid}/sensors`);
        if (isOver) return;
        setHistories((before) => withReadings(before ?? [], Date.now(), sensors));
        setProblem('');
      } catch (error) {
        setProblem(messageOf(error));
      }
      if (!isOver) timer = setTimeout(() => void read(), PERIOD_MS);
    };
    void read();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [uuid]);
  if (histories === null) return problem === '' ? <p>Loading …</p> : <p role="alert">{problem}</p>;
  return (
    <>
      {problem !== '' && <p role="alert">{problem}</p>}
      {histories.length === 0 && <p>None.</p>}
      {histories.length > 0 && (
        <Scrolled label="Sensors">
          <table>
            <thead>
              <tr>
                {['Kind', 'Sensor', 'Place', 'Value', 'Lowest … highest', 'Since this view is open'].map((title) => (
                  <th key={title} scope="col">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {histories.map(({ kind, sensor, entity, unit, values }, index) => (
                <tr key={index}>
                  <td>{kind}</td>
                  <td>{sensor}</td>
                  <td>{entity}</td>
                  <td>
                    {values.at(-1)!.value} {unit === 'other' ? '' : unit}
                  </td>
                  <td>{rangeOf(values)}</td>
                  <td>
                    <svg class="line" viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
                      <polyline points={lineOf(values)} />
                    </svg>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolled>
      )}
    </>
  );
}
