/** Machines in enroll: discovery found them, or their BMC is not yet verified. The user accepts them with the credentials of the BMC. */
import { useState } from 'preact/hooks';
import type { JsonObject } from '../../model/json';
import { revision, rows } from '../lib/fleet';
import { partsOf } from '../lib/inventory';
import { acceptMachine, DRIVER_FIELDS } from '../lib/machines';
import type { NodeRow } from '../lib/rows';
import { api, userMay, messageOf } from '../state';
import { Field } from './field';
import { Head, Scrolled, textOf, useApi } from './shared';

const MAX_SHOWN = 500;

function List() {
  void revision.value;
  const waiting = [...rows.values()].filter(({ state }) => state === 'enroll');
  return (
    <>
      <h1>Machines to accept</h1>
      {waiting.length === 0 && <p>No node is in enroll. Machines that discovery finds appear here.</p>}
      {waiting.length > 0 && (
        <Scrolled label="Machines to accept">
          <table>
            <Head titles={['Node', 'Driver', 'Hardware', 'Last error', 'Actions']} />
            <tbody>
              {waiting.slice(0, MAX_SHOWN).map((row) => (
                <tr key={row.uuid}>
                  <td>
                    <a href={`#/node/${row.uuid}`}>{row.name ?? row.uuid}</a>
                  </td>
                  <td>{row.driver}</td>
                  <td>{row.hardware === '' ? 'unknown' : row.hardware}</td>
                  <td>{row.error ?? ''}</td>
                  <td>{userMay('node:set_provision_state', row) && <a href={`#/accept/${row.uuid}`}>Accept</a>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolled>
      )}
      {waiting.length > MAX_SHOWN && <p>and {waiting.length - MAX_SHOWN} more</p>}
    </>
  );
}

function Form({ row }: { readonly row: NodeRow }) {
  const { uuid, driver } = row;
  const { data: node, error } = useApi(`v1/nodes/${uuid}?fields=name,driver_info`, uuid);
  const { data: found, error: none } = useApi(`v1/nodes/${uuid}/inventory`, uuid);
  const [problem, setProblem] = useState('');
  if (error !== undefined) return <p role="alert">{error}</p>;
  if (node === undefined || (found === undefined && none === undefined)) return <p>Loading …</p>;
  const info = node['driver_info'] as JsonObject;
  const inventory = (found?.['inventory'] ?? {}) as JsonObject;
  const plugins = (found?.['plugin_data'] ?? {}) as JsonObject;
  const fields = DRIVER_FIELDS[driver] ?? [];
  // The API shows secrets as asterisks, which must not be stored.
  const initialOf = (name: string, type: string): string =>
    type === 'password' ? '' : textOf(info[name] ?? (name.endsWith('_address') ? inventory['bmc_address'] : ''));
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)) as Record<string, string>;
    try {
      await acceptMachine(api, uuid, values);
      location.hash = `/node/${uuid}`;
    } catch (refusal) {
      setProblem(messageOf(refusal));
    }
  };
  return (
    <section class="narrow">
      <h1>Accept {row.name ?? uuid}</h1>
      {plugins['auto_discovered'] === true && <p>Discovery found this machine.</p>}
      <ul>
        {partsOf(found ?? {}).map(({ part, name, details }, index) => (
          <li key={index}>
            {textOf(part)} {textOf(name)}: {textOf(details)}
          </li>
        ))}
      </ul>
      <form onSubmit={(event) => void submit(event)}>
        <Field name="name" title="Name" type="text" initial={textOf(node['name'])} />
        {fields.map((field) => (
          <Field key={field.name} {...field} initial={initialOf(field.name, field.type)} />
        ))}
        {problem !== '' && <p role="alert">{problem}</p>}
        <button class="first">Accept</button>
      </form>
    </section>
  );
}

export function Accept({ rest }: { readonly rest: string }) {
  void revision.value;
  const row = rows.get(rest);
  return row ? <Form key={row.uuid} row={row} /> : <List />;
}
