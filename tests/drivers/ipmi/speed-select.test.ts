import { intelIpmiManagement } from '../../../drivers/ipmi/speed-select';
import { IpmiError } from '../../../wire/ipmi/client';
import { bmcTask } from '../bmc-task';

const step = intelIpmiManagement.steps!.find(({ step: name }) => name === 'configure_intel_speedselect')!;
/** A BMC that fails from the request of this number on. */
function bench(failsFrom = Infinity): ReturnType<typeof bmcTask> & { readonly sent: string[] } {
  const sent: string[] = [];
  const made = bmcTask({
    node: { driver: 'intel-ipmi', driver_info: { ipmi_address: '192.0.2.7' } },
    driver: { management: intelIpmiManagement },
    options: {},
    connections: {
      ipmi: {
        request: async (_, networkFunction, command, data) => {
          sent.push(Buffer.from([networkFunction, command, ...data]).toString('hex'));
          if (sent.length >= failsFrom) throw new IpmiError('completion', 'invalid command', { completionCode: 0xc1 });
          return Buffer.alloc(0);
        },
        close: async () => {},
      },
    },
  });
  return { ...made, sent };
}

it.each([
  [{ intel_speedselect_config: '0x02' }, ['2c4104000002']],
  [{ intel_speedselect_config: '0x01', socket_count: 2 }, ['2c4104000001', '2c4104000101']],
  [{ intel_speedselect_config: '0x00', socket_count: '1' }, ['2c4104000000']],
  [{}, []],
])('configure_intel_speedselect with %j', async (args, expected) => {
  const { task, sent } = bench();
  expect(await step.run(task, args)).toEqual({ kind: 'done' });
  expect(sent).toEqual(expected);
});
it.each([
  [
    { intel_speedselect_config: '0x03' },
    "Invalid Intel SST-PP configuration value 0x03 specified. Valid values are ['0x00', '0x01', '0x02'].",
  ],
  [{ intel_speedselect_config: 1 }, "Invalid Intel SST-PP configuration value 1 specified. Valid values are ['0x00', '0x01', '0x02']."],
  [{ intel_speedselect_config: '0x00', socket_count: 0 }, 'Invalid number of socket 0 value specified. Expected a positive integer.'],
  [{ intel_speedselect_config: '0x00', socket_count: 'two' }, 'Invalid number of socket two value specified. Expected a positive integer.'],
  [{ intel_speedselect_config: '0x00', socket_count: 11 }, 'socket_count 11 is too large'],
])('refuses %j before anything is sent', (args, message) => {
  expect(() => step.checkArguments!(args)).toThrow(message);
});
it('names the socket that failed', async () => {
  const { task } = bench(2);
  await expect(step.run(task, { intel_speedselect_config: '0x01', socket_count: 3 })).rejects.toThrow(
    /^Failed to set Intel SST-PP configuration level 0x01 on socket number 1 due to reason IPMI call failed: raw 0x2c 0x41 0x04 0x00 0x01 0x01/,
  );
});
