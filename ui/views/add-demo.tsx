/** A button that adds the simulated machines, if the server was started for a demonstration. */
import { useState } from 'preact/hooks';
import { addDemoMachines } from '../lib/demo';
import { rows } from '../lib/fleet';
import { api, userMay, messageOf, session } from '../state';
import { inspectWhenManageable } from './inspect-when-manageable';

export function AddDemoMachines() {
  const [notice, setNotice] = useState('');
  const [isWorking, setWorking] = useState(false);
  if (session.value?.has_demo_machines !== true || !userMay('node:create')) return null;
  const add = async (): Promise<void> => {
    setWorking(true);
    try {
      const names = new Set([...rows.values()].flatMap(({ name }) => (name === null ? [] : [name])));
      const count = await addDemoMachines(api, names, inspectWhenManageable);
      if (count === 0) setNotice('All of them have been added.');
      else location.hash = '/nodes';
    } catch (error) {
      setNotice(messageOf(error));
    } finally {
      setWorking(false);
    }
  };
  return (
    <p>
      <button disabled={isWorking} onClick={() => void add()}>
        Add the simulated machines
      </button>{' '}
      <span role="status">{notice}</span>
    </p>
  );
}
