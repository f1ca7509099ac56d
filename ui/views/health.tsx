/** The alerts of a node: the open ones, which can be masked and cleared, and the latest of the others. */
import { useState } from 'preact/hooks';
import { maskAction } from '../lib/actions';
import { events } from '../lib/fleet';
import type { NodeRow } from '../lib/rows';
import { api, messageOf, pendingAction, userMay } from '../state';
import { Head, Scrolled, timeText, useApi } from './shared';

interface Alert {
  readonly uuid: string;
  readonly source: string;
  readonly rule: string;
  readonly severity: string;
  readonly text: string;
  readonly since: string;
  readonly cleared_at: string | null;
  readonly reported_by: string | null;
  readonly mask: { readonly until: string; readonly reason: string; readonly by: string | null } | null;
  readonly masked: boolean;
}
const saidBy = ({ source, rule, reported_by: by }: Alert): string => {
  const who = by === null ? '' : ` (${by})`;
  return source === 'report' ? `${rule}${who}` : `${source}: ${rule}`;
};
const maskText = ({ masked, mask }: Alert): string =>
  masked && mask ? `until ${timeText(mask.until)}: ${mask.reason}${mask.by === null ? '' : `, ${mask.by}`}` : '';

export function Health({ row }: { readonly row: NodeRow }) {
  const { uuid } = row;
  const [problem, setProblem] = useState('');
  const [round, setRound] = useState(0);
  const last = events.value.find(({ kind, node_uuid: node }) => kind === 'health' && node === uuid)?.id;
  const { data, error } = useApi(`v1/nodes/${uuid}/health?cleared=true`, `${last} ${round}`);
  if (error !== undefined) return <p role="alert">{error}</p>;
  if (data === undefined) return <p>Loading …</p>;
  const open = data['alerts'] as readonly Alert[];
  const cleared = data['cleared'] as readonly Alert[];
  const change = async (path: string): Promise<void> => {
    try {
      await api.send('DELETE', `v1/nodes/${uuid}/health/alerts/${path}`);
      setProblem('');
    } catch (failure) {
      setProblem(messageOf(failure));
    }
    setRound((count) => count + 1);
  };
  const mask = ({ uuid: alert, text }: Alert): void => void (pendingAction.value = { action: maskAction(alert, text), rows: [row] });
  const canMask = userMay('node:health:mask', row);
  const canClear = userMay('node:health:clear', row);
  return (
    <>
      {problem !== '' && <p role="alert">{problem}</p>}
      {open.length === 0 ? (
        <p>No open alerts.</p>
      ) : (
        <Scrolled label="Open alerts">
          <table>
            <Head titles={['Severity', 'Alert', 'Since', 'Known from', 'Masked', 'Actions']} />
            <tbody>
              {open.map((alert) => (
                <tr key={alert.uuid}>
                  <td class={alert.severity === 'critical' && !alert.masked ? 'error' : ''}>{alert.severity}</td>
                  <td>{alert.text}</td>
                  <td>{timeText(alert.since)}</td>
                  <td>{saidBy(alert)}</td>
                  <td>{maskText(alert)}</td>
                  <td>
                    {canMask && !alert.masked && <button onClick={() => mask(alert)}>Mask</button>}
                    {canMask && alert.masked && <button onClick={() => void change(`${alert.uuid}/mask`)}>End mask</button>}
                    {canClear && <button onClick={() => void change(alert.uuid)}>Clear</button>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolled>
      )}
      {cleared.length > 0 && (
        <details>
          <summary>Cleared lately</summary>
          <Scrolled label="Cleared alerts">
            <table>
              <Head titles={['Severity', 'Alert', 'Since', 'Cleared', 'Known from']} />
              <tbody>
                {cleared.map((alert) => (
                  <tr key={alert.uuid}>
                    <td>{alert.severity}</td>
                    <td>{alert.text}</td>
                    <td>{timeText(alert.since)}</td>
                    <td>{timeText(alert.cleared_at!)}</td>
                    <td>{saidBy(alert)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scrolled>
        </details>
      )}
    </>
  );
}
