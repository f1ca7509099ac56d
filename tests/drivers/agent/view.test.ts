import { nodeForAgent, withPsids } from '../../../drivers/agent/view';
import { maskSecrets } from '../../../model/masks';
import { testTask } from '../../support/task';

const PSIDS = `S1=${'A1'.repeat(16)}`;
const { node } = testTask({
  node: {
    driver_info: { opal_psids: PSIDS },
    properties: { skip_block_devices: [{ serial: 'S9' }], root_device: { serial: 'S1' } },
    driver_internal_info: {
      erase_choice: { erase: 'full', keep: [{ serial: 'S2' }] },
      hardware_manager_version: { BloomeryHardwareManager: '2' },
    },
  },
});

it('gives the disks to keep in the words of ironic-python-agent too, beside those that are always skipped', () => {
  expect(nodeForAgent(node(), false)).toMatchObject({
    properties: { skip_block_devices: [{ serial: 'S9' }, { serial: 'S2' }], root_device: { serial: 'S1' } },
    driver_internal_info: { erase_choice: { keep: [{ serial: 'S2' }] } },
  });
  const plain = testTask({ node: { properties: {} } }).node();
  expect(nodeForAgent(plain, false)).toMatchObject({ properties: {} });
  expect(nodeForAgent(plain, false)['properties']).not.toHaveProperty('skip_block_devices');
});

it('gives PSIDs to our agent for the steps that use them, and to nobody else', () => {
  const view = nodeForAgent(node(), false);
  const given = (step: string, managers?: object) =>
    withPsids(view, { step }, { ...node(), ...(managers ? { driver_internal_info: { hardware_manager_version: managers } } : {}) })[
      'driver_info'
    ];
  for (const step of ['erase_devices', 'erase_devices_express']) expect(given(step)).toEqual({ opal_psids: PSIDS });
  expect(given('erase_devices_metadata')).toEqual({ opal_psids: '******' });
  expect(given('erase_devices', { generic_hardware_manager: '1.1' })).toEqual({ opal_psids: '******' });
  expect(JSON.stringify(maskSecrets({ driver_info: { opal_psids: PSIDS }, text: `opal_psids=${PSIDS}` }))).not.toContain('A1A1');
});
