/** `bloomery steps` and the steps of `bloomery why`: what they print, and the word that an operator gives. */
import { runCommand } from '../../support/command';
import { useDatabase } from '../../support/database';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), { machines: 1 });
});
afterAll(() => whole.close(), 30_000);

it('shows the steps, and lets them go on', async () => {
  const uuid = await whole.enrol(whole.fleet.machines[0]!);
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'clean', {
    clean_steps: [
      { interface: 'power', step: 'power_off' },
      { interface: 'power', step: 'power_on', confirm: 'Is the cable in port 2?' },
    ],
  });
  await whole.reach(uuid, 'clean hold');
  const command = (...words: readonly string[]) => runCommand([...words, uuid, '--url', whole.server.apiUrl!]);
  const line = '? 2 power.power_on (waiting: waits for an operator: Is the cable in port 2?)';
  expect((await command('steps')).output).toBe(`✓ 1 power.power_off (done)\n${line}\n`);
  expect((await command('why')).output).toContain(`    ${line}\n`);
  expect(await command('steps', '--continue', '--abort')).toMatchObject({ code: 2, output: '' });
  expect(await command('steps', '--continue')).toMatchObject({ code: 0, output: `${uuid}: the steps go on\n` });
  await whole.reach(uuid, 'manageable');
  expect((await command('steps')).output).toBe(`${uuid}: no steps run\n`);
  expect(await command('steps', '--continue')).toMatchObject({ code: 2 });
});
