import { nodeForAgent, withPsids } from '../../../drivers/agent/view';
import { maskSecrets } from '../../../model/masks';
import { testTask } from '../../support/task';

const PSIDS = `S1=${'A1'.repeat(16)}`;
const { node } = testTask({
  node: {
    driver_info: { opal_psids: PSIDS },
    properties: { skip_block_devices: [{ serial: 'S9' }], root_device: { serial: 'S1' } },
    driver_internal_info: { erase_choice: { erase: 'full', keep: [{ serial: 'S2' }] } },
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

it('gives PSIDs to the agent that erases, and to nobody else', () => {
  const view = nodeForAgent(node(), false);
  expect(view).toMatchObject({ driver_info: { opal_psids: '******' } });
  expect(withPsids(view, node())).toMatchObject({ driver_info: { opal_psids: PSIDS } });
  expect(JSON.stringify(maskSecrets({ driver_info: { opal_psids: PSIDS }, text: `opal_psids=${PSIDS}` }))).not.toContain('A1A1');
});
