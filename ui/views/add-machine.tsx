/** Adds a machine: creates the node, verifies its BMC and, if the user wants it, inspects it. Then shows the node's view. */
import { useState } from 'preact/hooks';
import { addMachine, DRIVER_FIELDS, machineIn } from '../lib/machines';
import { api, userMay, messageOf } from '../state';
import { AddDemoMachines } from './add-demo';
import { Field } from './field';
import { inspectWhenManageable } from './inspect-when-manageable';
import { useApi } from './shared';

export function AddMachine() {
  const { data, error } = useApi('v1/drivers', null);
  const [driver, setDriver] = useState('');
  const [problem, setProblem] = useState('');
  const drivers = ((data?.['drivers'] ?? []) as readonly { readonly name: string }[]).map(({ name }) => name);
  const chosen = driver === '' ? (drivers.find((name) => name === 'redfish') ?? drivers[0] ?? '') : driver;
  if (error !== undefined) return <p role="alert">{error}</p>;
  if (!userMay('node:create')) return <p>You may not create nodes.</p>;
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const { inspect, ...values } = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)) as Record<string, string>;
    try {
      const uuid = await addMachine(api, machineIn(values));
      if (inspect !== undefined) inspectWhenManageable(uuid);
      location.hash = `/node/${uuid}`;
    } catch (refusal) {
      setProblem(messageOf(refusal));
    }
  };
  return (
    <section class="narrow">
      <h1>Add a machine</h1>
      <AddDemoMachines />
      <form onSubmit={(event) => void submit(event)}>
        <label>
          Name
          <input name="name" required />
        </label>
        <label>
          Hardware type
          <select name="driver" value={chosen} onChange={(event) => setDriver(event.currentTarget.value)}>
            {drivers.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {(DRIVER_FIELDS[chosen] ?? []).map((field) => (
          <Field key={field.name} {...field} />
        ))}
        <label>
          MAC addresses, if the server boots the machine by network, in any spelling
          <input name="macs" placeholder="52:54:00:12:34:56" />
        </label>
        <label>
          Owner
          <input name="owner" />
        </label>
        <label>
          Resource class
          <input name="resource_class" />
        </label>
        <label class="line">
          <input type="checkbox" name="inspect" defaultChecked />
          Inspect the hardware after the BMC is verified
        </label>
        {problem !== '' && <p role="alert">{problem}</p>}
        <button class="first">Add</button>
      </form>
    </section>
  );
}
