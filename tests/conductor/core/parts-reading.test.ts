/** What a reading of sensors asks of drivers. */
import { readParts } from '../../../conductor/core/parts-reading';
import type { SensorNotes, Task } from '../../../drivers/interfaces';

it.each([true, false])('drivers get no notes to make, which cost requests, unless somebody judges them: %s', async (isJudged) => {
  const given: (SensorNotes | undefined)[] = [];
  const sensors = async (...[, , notes]: readonly unknown[]): Promise<object> => {
    given.push(notes as SensorNotes | undefined);
    return { Fan: { F1: { health: 'Critical', state: 'Enabled' } } };
  };
  const task = { options: { 'health.enabled': isJudged }, driver: { management: { sensors } } } as unknown as Task;
  const read = await readParts(task, () => true);
  expect(given.map((notes) => notes !== undefined)).toEqual([isJudged]);
  expect(read!.payload).toMatchObject({ Fan: { F1: { health: 'Critical' } } });
  expect([read!.signals.length, read!.found !== undefined]).toEqual(isJudged ? [1, true] : [0, false]);
});
