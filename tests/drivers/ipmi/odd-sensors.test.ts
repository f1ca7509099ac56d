/** Sensors of a BMC that leaves some of its sensors without a response. */
import { ipmiManagement } from '../../../drivers/ipmi/management';
import { IpmiError } from '../../../wire/ipmi/client';
import { COMMANDS } from '../../../wire/ipmi/constants';
import { oddStores } from '../../support/odd-ipmi/stores';
import { bmcTask } from '../bmc-task';

const [SENSOR, GET_SENSOR_READING] = COMMANDS.getSensorReading;
async function temperatures(silent: readonly number[]): Promise<readonly (readonly [string, string])[]> {
  const { ask } = oddStores({ change: (correct) => correct() });
  const { task } = bmcTask({
    node: { driver: 'ipmi', driver_info: { ipmi_address: '192.0.2.7' } },
    driver: { management: ipmiManagement },
    connections: {
      ipmi: {
        request: async (_, networkFunction, command, data) => {
          if (networkFunction !== SENSOR || command !== GET_SENSOR_READING) return ask([networkFunction, command], [...data]);
          if (silent.includes(data[0]!)) throw new IpmiError('unreachable', 'no response');
          return Buffer.from([40, 0xc0, 0xc0]);
        },
        close: async () => {},
      },
    },
  });
  const found = (await ipmiManagement.sensors!(task)) as Record<string, Record<string, Record<string, string>>>;
  return Object.values(found['Temperature']!).map((fields) => [fields['Sensor ID']!, fields['Sensor Reading']!] as const);
}

it('one sensor without a response does not cost the others', async () => {
  const read = '40 (+/- 0) degrees C';
  expect(await temperatures([2])).toEqual([
    ['S1 (0x1)', read],
    ['S2 (0x2)', 'No Reading'],
    ['S3 (0x3)', read],
    ['S4 (0x4)', read],
    ['S5 (0x5)', read],
  ]);
});
it('a BMC that no longer answers is no BMC without readings', async () => {
  await expect(temperatures([2, 3, 4, 5])).rejects.toThrow('no response');
});
