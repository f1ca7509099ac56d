/** Settings and firmware of hardware that is not there. */
import { str } from '../../model/python';
import { pause } from './delay';
import { type BiosSetting, type Interface, type Step, type Task, done } from '../interfaces';
import { namedValues } from '../common/named-values';

const configuring = pause('fake.bios_delay');
const updating = pause('fake.firmware_delay');

/** Settings as steps get them; their values are kept as text. */
const settingsOf = (given: unknown): readonly BiosSetting[] =>
  [...namedValues(given)].map(([name, value]) => ({ name, value: value === null ? null : str(value) }));

const after =
  (waits: (task: Task) => Promise<void>): Step['run'] =>
  async (task) => {
    await waits(task);
    return done;
  };

export const fakeBios: Interface = {
  steps: [
    {
      step: 'apply_configuration',
      priority: { clean: 0 },
      args: {
        settings: {
          description: 'List of BIOS settings, each item needs to contain a dictionary with name/value pairs',
          required: true,
          type: 'list',
        },
      },
      resumable: true,
      run: async (task, { settings }) => {
        await configuring(task);
        await task.saveBiosSettings(settingsOf(settings));
        return done;
      },
    },
    { step: 'cache_bios_settings', priority: { clean: 0 }, resumable: true, run: after(configuring) },
    {
      step: 'factory_reset',
      priority: { clean: 0 },
      resumable: true,
      run: async (task) => {
        await configuring(task);
        await task.saveBiosSettings([]);
        return done;
      },
    },
  ],
};

export const fakeFirmware: Interface = {
  steps: [
    {
      step: 'update',
      priority: { clean: 0 },
      args: {
        settings: {
          description: 'List of Firmware components, each item needs to contain a dictionary with name/value pairs',
          required: true,
          type: 'list',
        },
      },
      resumable: true,
      run: after(updating),
    },
  ],
};
