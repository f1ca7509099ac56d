import { forgottenAt, INTERNAL_INFO, isDeferred, setting, type InternalInfo } from '../../model/internal-info';

const AGENT = ['agent_secret_token', 'agent_secret_token_giver', 'agent_url', 'agent_verify_ca'];
const AGENT_END = [...AGENT, 'agent_secret_token_pregenerated'];
const STEPS_END = [
  ...AGENT_END,
  'raid_configs',
  'ramdisk_boot',
  'redfish_bios_state',
  'idrac_reset',
  'redfish_network_state',
  'resident_kexec',
  'step_poll_every',
];
const REBOOTING = ['cleaning_reboot', 'servicing_reboot'];
const listed = (kind: string): string[] => [
  ...STEPS_END,
  `agent_cached_${kind}_steps`,
  `${kind}_step_index`,
  `${kind}_steps`,
  'steps_validated',
];
const DEPLOYMENT = [...listed('deploy'), 'ks_template', 'stage2', 'image_source', 'kexec', 'deployment_reboot', 'user_deploy_steps'];
const INSTANCE = [
  'container_image_type',
  'instance',
  'root_uuid_or_disk_id',
  'is_whole_disk_image',
  'is_source_a_path',
  'deploy_boot_mode',
  'automatic_lessee',
];

it.each<[Parameters<typeof forgottenAt>[0], readonly string[]]>([
  ['system end', [...AGENT, 'agent_version', 'kexec', ...['clean', 'deploy', 'service'].map((kind) => `agent_cached_${kind}_steps`)]],
  ['agent end', AGENT_END],
  ['poll end', ['resident_kexec', 'step_poll_every']],
  ['steps end', STEPS_END],
  ['clean end', [...listed('clean'), 'cleaning_disable_ramdisk', 'cleaning_held', 'declarative_cleaning', 'cleaning_reboot']],
  ['deploy end', DEPLOYMENT],
  ['service end', [...listed('service'), 'service_disable_ramdisk', 'servicing_reboot']],
  ['clean failure', [...STEPS_END, ...REBOOTING, 'cleaning_held', 'clean_step_index', 'steps_validated']],
  ['service failure', [...STEPS_END, ...REBOOTING, 'service_step_index', 'steps_validated']],
  ['instance end', [...DEPLOYMENT, ...INSTANCE, 'boot_from_volume']],
  ['inspect end', ['discoverd_asked', 'inspector_manage_boot', 'lookup_bmc_addresses']],
])('%s forgets exactly its keys', (moment, keys) => {
  expect(Object.keys(forgottenAt(moment)).sort()).toEqual([...keys].sort());
});

it('lists of steps become null, as in Ironic, and all other keys are removed', () => {
  const lists = ['clean_steps', 'deploy_steps', 'service_steps'];
  for (const moment of ['clean end', 'instance end', 'service end'] as const)
    for (const [key, value] of Object.entries(forgottenAt(moment)))
      expect([key, value]).toEqual([key, lists.includes(key) ? null : undefined]);
});

it.each<[string, InternalInfo, boolean, boolean]>([
  ['no update', { agent_url: 'x' }, false, false],
  ['an update of the management interface', { firmware_updates: [] }, false, true],
  ['an update of the firmware interface', { redfish_fw_updates: [] }, true, true],
])('%s defers only what the rows say', (_, info, powerSync, fastTrack) => {
  expect([isDeferred('power sync', info), isDeferred('fast track', info)]).toEqual([powerSync, fastTrack]);
});

it('a key without a row, or a value of another type, is a compile error', () => {
  // @ts-expect-error: no such key
  const typo: InternalInfo = { agent_uri: 'x' };
  // @ts-expect-error: a number
  const wrong: InternalInfo = { agent_url: 1 };
  // @ts-expect-error: no such key
  const computed = setting('agent_uri', 'x');
  expect([typo, wrong, computed].flatMap((info) => Object.keys(info)).filter((key) => key in INTERNAL_INFO)).toEqual(['agent_url']);
});
