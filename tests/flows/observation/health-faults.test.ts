/** Each rule of health with the fault of a simulated machine that it is for: the server reads the machine, the alert comes and goes. */
import { healthRules } from '../../../model/rules/health-rules';
import { readFaults } from '../../../simulator/bmc/faults';
import { useDatabase } from '../../support/database';
import { until } from '../../support/until';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
const nodes: Record<'redfish' | 'ipmi', string> = { redfish: '', ipmi: '' };
beforeAll(async () => {
  whole = await startWholeServer(database.connection(), {
    machines: 2,
    options: {
      'DEFAULT.enabled_hardware_types': ['redfish', 'ipmi'],
      'conductor.sync_power_state_interval': 1,
      'sensor_data.send_sensor_data': true,
      'sensor_data.enable_for_undeployed_nodes': true,
      'sensor_data.interval': 1,
      'sensor_data.interval_fan': 1,
      'sensor_data.interval_power': 1,
      'sensor_data.interval_temperature': 1,
      'sensor_data.interval_drive': 1,
    },
  });
  const [first, second] = whole.fleet.machines;
  nodes.redfish = await whole.enrol(first!);
  const { address, port, username, password } = second!.ipmi;
  const info = { ipmi_address: address, ipmi_port: port, ipmi_username: username, ipmi_password: password };
  nodes.ipmi = (await whole.call('POST', '/v1/nodes', { driver: 'ipmi', driver_info: info })).body['uuid'] as string;
  for (const uuid of Object.values(nodes)) {
    await whole.order(uuid, 'manage');
    await whole.reach(uuid, 'manageable');
    await whole.call('PUT', `/v1/nodes/${uuid}/states/power`, { target: 'power on' });
    await until('the machine is on', async () => (await whole.call('GET', `/v1/nodes/${uuid}`)).body['power_state'] === 'power on');
  }
});
afterAll(() => whole.close(), 30_000);

const alertsOf = async (uuid: string): Promise<readonly string[]> => {
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}/health`);
  return (body['alerts'] as readonly { readonly rule: string; readonly severity: string }[]).map(
    (alert) => `${alert.rule} ${alert.severity}`,
  );
};
const faultsOf = (driver: 'redfish' | 'ipmi') => whole.fleet.machines[driver === 'redfish' ? 0 : 1]!.faults;

/** Faults that a machine has at the same time, and the rules that then find something. */
const ROWS: readonly (readonly ['redfish' | 'ipmi', object, readonly string[]])[] = [
  [
    'redfish',
    { stopped: ['Fan1'], parts: ['PSU1.failed', 'sda.failed', 'CPU1.hot', 'CPU1.failed', 'DIMM1.fatal', 'System.failed'] },
    [
      'fan_failed critical',
      'fan_stopped critical',
      'power_supply_failed critical',
      'drive_failed critical',
      'temperature_critical critical',
      'processor_failed critical',
      'memory_failed critical',
      'machine_critical critical',
    ],
  ],
  [
    'redfish',
    { parts: ['Fan2.slow', 'PSU1.failing', 'sda.failing', 'sda.worn', 'CPU1.warm', 'DIMM1.errors', 'System.failing'] },
    [
      'fan_warning warning',
      'power_supply_warning warning',
      'drive_failing warning',
      'drive_worn warning',
      'temperature_warning warning',
      'processor_warning warning',
      'memory_errors warning',
      'machine_warning warning',
    ],
  ],
  [
    'ipmi',
    {
      stopped: ['Fan1'],
      parts: ['PSU1.failed', 'Bay0.failed', 'CPU1.hot', 'CPU1.failed', 'DIMM1.fatal', 'P12V.low', 'Battery.failing', 'Bus.fatal'],
    },
    [
      'fan_failed critical',
      'fan_stopped critical',
      'power_supply_failed critical',
      'drive_failed critical',
      'temperature_critical critical',
      'processor_failed critical',
      'memory_failed critical',
      'voltage_critical critical',
      'battery_low warning',
      'other_failed critical',
    ],
  ],
  [
    'ipmi',
    { parts: ['Fan1.slow', 'PSU1.failing', 'Bay0.failing', 'DIMM1.errors'] },
    ['fan_warning warning', 'power_supply_warning warning', 'drive_failing warning', 'memory_errors warning'],
  ],
  ['ipmi', { parts: ['PSU1.no-input', 'Bay0.redundancy-lost'] }, ['power_input_lost warning', 'redundancy_lost warning']],
  ['ipmi', { parts: ['Bay0.degraded'] }, ['redundancy_degraded warning']],
];
it('each rule for what BMCs say has its fault here', () => {
  const ofBmcs = healthRules([]).filter(({ sources }) => !sources.every((source) => source === 'hardware' || source === 'smart'));
  const tried = new Set(ROWS.flatMap(([, , alerts]) => alerts));
  expect(ofBmcs.map(({ name, severity }) => `${name} ${severity}`).filter((alert) => !tried.has(alert))).toEqual([]);
});
it.each(ROWS)(
  '%s: %j',
  async (driver, faults, expected) => {
    const uuid = nodes[driver];
    const usual = await alertsOf(uuid);
    faultsOf(driver).now = readFaults(faults);
    await until(expected.join(), async () => {
      const found = await alertsOf(uuid);
      return expected.every((alert) => found.includes(alert));
    });
    faultsOf(driver).now = {};
    await until('they are gone', async () => {
      const found = await alertsOf(uuid);
      return expected.every((alert) => usual.includes(alert) || !found.includes(alert));
    });
  },
  60_000,
);

it('a drive that is removed takes its alert along, with the reason in the history', async () => {
  const uuid = nodes.redfish;
  faultsOf('redfish').now = readFaults({ parts: ['sda.failed'] });
  await until('the alert', async () => (await alertsOf(uuid)).includes('drive_failed critical'));
  faultsOf('redfish').now = readFaults({ parts: ['sda.gone'] });
  await until('no alert', async () => !(await alertsOf(uuid)).includes('drive_failed critical'));
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}/history?detail=true`);
  const texts = (body['history'] as readonly { readonly event: string }[]).map(({ event }) => event);
  expect(texts.filter((text) => text.includes('the part is not there any more'))).not.toEqual([]);
  faultsOf('redfish').now = {};
}, 60_000);
