/** Settings and firmware of hardware that is not there. */
import { pause } from './fake-delay';
import { type Interface, type Step, type Task, done } from './interfaces';

const configuring = pause('fake.bios_delay');
const updating = pause('fake.firmware_delay');

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
        settings: { description: 'List of BIOS settings, each item needs to contain a dictionary with name/value pairs', required: true },
      },
      resumable: true,
      run: after(configuring),
    },
    { step: 'cache_bios_settings', priority: { clean: 0 }, resumable: true, run: after(configuring) },
    { step: 'factory_reset', priority: { clean: 0 }, resumable: true, run: after(configuring) },
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
        },
      },
      resumable: true,
      run: after(updating),
    },
  ],
};
