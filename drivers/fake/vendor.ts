/** Vendor methods and steps that only demonstrate vendor calls. */
import { Fault } from '../../model/errors';
import { pause } from './delay';
import { type Outcome, type Task, type VendorInterface, type VendorMethod, done, wait } from '../interfaces';

const vending = pause('fake.vendor_delay');

/** A method that returns whether its argument `bar` is the word. */
const guess = (name: string, word: string, options: Pick<VendorMethod<Task>, 'async' | 'exclusive'> = {}): VendorMethod<Task> => ({
  ...options,
  http: ['POST'],
  args: ['bar'],
  description: `Test if the value of bar is ${word}`,
  validate: async (_task, { bar }) => {
    if (!bar) throw new Fault('MissingParameterValue', { message: `Parameter 'bar' not passed to method '${name}'.` });
  },
  run: async (task, { bar }) => {
    await vending(task);
    return bar === word;
  },
});

const log = async (task: Task, args: unknown): Promise<Outcome> => {
  task.log.debug('Fake vendor step', { args });
  await vending(task);
  return done;
};

export const fakeVendor: VendorInterface = {
  properties: {
    B1: { description: 'B1 description. Required.' },
    B2: { description: 'B2 description. Required.' },
  },
  methods: {
    second_method: guess('second_method', 'kazoo'),
    third_method_sync: guess('third_method_sync', 'meow', { async: false }),
    fourth_method_shared_lock: guess('fourth_method_shared_lock', 'woof', { exclusive: false }),
    log_passthrough: {
      http: ['POST'],
      description: 'Test pass-through to wait.',
      run: async (task, args) => {
        await log(task, args);
      },
    },
  },
  steps: [
    { step: 'log_passthrough', priority: { clean: 1 }, resumable: true, run: log },
    { step: 'log_passthrough', priority: { service: 0 }, requiresRamdisk: false, resumable: true, run: log },
    { step: 'trigger_servicewait', priority: { service: 0 }, run: async () => wait },
  ],
};
