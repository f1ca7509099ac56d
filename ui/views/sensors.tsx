/** The sensors of a machine, read every ten seconds while the view is open. */
import { useEffect, useState } from 'preact/hooks';
import { keyOf, lineOf, rangeOf, unitText, withReadings, type Reading, type SensorHistory } from '../lib/sensors';
import { api, messageOf } from '../state';
import { SensorChart } from './sensor-chart';
import { Head, Scrolled } from './shared';

const PERIOD_MS = 10_000;

export function Sensors({ uuid }: { readonly uuid: string }) {
  const [histories, setHistories] = useState<readonly SensorHistory[] | null>(null);
  const [problem, setProblem] = useState('');
  /** The key of the sensor in the chart; empty: there is no chart. */
  const [chosen, setChosen] = useState('');
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
  const shown = histories.find((history) => keyOf(history) === chosen);
  return (
    <>
      {problem !== '' && <p role="alert">{problem}</p>}
      {histories.length === 0 && <p>None.</p>}
      {shown && <SensorChart {...shown} />}
      {histories.length > 0 && (
        <Scrolled label="Sensors">
          <table>
            <Head titles={['Kind', 'Sensor', 'Place', 'Value', 'Lowest … highest', 'Since this view is open']} />
            <tbody>
              {histories.map((history, index) => (
                <tr key={index}>
                  <td>{history.kind}</td>
                  <td>{history.sensor}</td>
                  <td>{history.entity}</td>
                  <td>
                    {history.values.at(-1)!.value} {unitText(history.unit)}
                  </td>
                  <td>{rangeOf(history.values)}</td>
                  <td>
                    <button
                      type="button"
                      aria-label={`Chart of ${history.sensor}`}
                      aria-pressed={chosen === keyOf(history)}
                      onClick={() => setChosen(chosen === keyOf(history) ? '' : keyOf(history))}
                    >
                      <svg class="spark" viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
                        <polyline points={lineOf(history.values)} />
                      </svg>
                    </button>
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
