/** Requests that change nodes: verbs, power, boot devices and other management, and the requests of ramdisks. */
import { at, get, MAX, send, type Step } from './steps';
import { MAC, NOBODY, NODE, PORT, op } from './requests-world';
import { NEWEST_VERSION } from '../../support/newest';

/** Verbs and their bodies on a node that is taken through its life. */
const states = (): Step[] => {
  const power = `/v1/nodes/${NODE}/states/power`;
  const provision = `/v1/nodes/${NODE}/states/provision`;
  const verbs = [
    'active',
    'deploy',
    'rebuild',
    'deleted',
    'undeploy',
    'manage',
    'provide',
    'inspect',
    'abort',
    'clean',
    'adopt',
    'rescue',
    'unrescue',
    'unhold',
    'service',
    'nosuch',
    'done',
    '',
  ];
  // In a state that permits none of these verbs, all of them can be tried.
  const impossible = (...possible: string[]): Step[] =>
    verbs
      .filter((verb) => !possible.includes(verb))
      .flatMap((target) =>
        [1, 3, 4, 5, 6, 12, 13, 14, 15, 16, 17, 37, 38, 72, 73, 84, 85, 86, 87, MAX].map((minor) =>
          send('PUT', provision, { target }, minor),
        ),
      );
  const clean = [
    [],
    [{}],
    [5],
    [{ interface: 'power' }],
    [{ interface: 'nosuch', step: 'x' }],
    [{ interface: 'power', step: '' }],
    [{ interface: 'power', step: 'x', args: [] }],
    [{ interface: 'power', step: 'x', bogus: 1 }],
    [{ interface: 'vendor', step: 'send_raw' }],
    [{ interface: 'power', step: 'x', priority: 1 }],
  ];
  const keys = [
    { configdrive: 'abc' },
    { configdrive: {} },
    { configdrive: { meta_data: {} } },
    { configdrive: 5 },
    { clean_steps: 5 },
    { clean_steps: [] },
    { deploy_steps: 5 },
    { deploy_steps: [] },
    { deploy_steps: [{ interface: 'deploy', step: 's', args: {}, priority: 1 }] },
    { service_steps: [{ interface: 'deploy', step: 's' }] },
    { clean_steps: [{ interface: 'deploy', step: 's' }] },
    { rescue_password: 'x' },
    { rescue_password: 5 },
    { disable_ramdisk: true },
    { disable_ramdisk: 'zz' },
    { runbook: 'x' },
    { runbook: 5 },
    { nosuch: 1 },
  ];
  const drives = [
    'abc=',
    '{"a":1}',
    'http://x/y',
    { meta_data: {} },
    { vendor_data: {} },
    { bogus: 1 },
    { meta_data: 5 },
    { user_data: ['a'] },
  ];
  return [
    ...impossible('manage'),
    send('PUT', provision, {}),
    send('PUT', provision, { target: null }),
    send('PUT', provision, { target: 5 }),
    { method: 'PUT', path: provision, version: at(MAX), body: '{bad' },
    send('PUT', `/v1/nodes/one/states/provision`, { target: 'manage' }, 4),
    ...keys
      .filter(
        (body) =>
          !('deploy_steps' in body && (body.deploy_steps as unknown[]).length === 0) &&
          !('clean_steps' in body && (body.clean_steps as unknown[]).length === 0),
      )
      .map((body) => send('PUT', provision, { target: 'manage', ...body }))
      .filter(
        ({ body }) => !('configdrive' in (body as object) && JSON.stringify((body as { configdrive: unknown }).configdrive) === '{}'),
      ),
    ...[
      { target: 'power on' },
      {},
      { target: null },
      { target: 'nosuch' },
      { target: 5 },
      { target: 'power on', timeout: 0 },
      { target: 'power on', timeout: 'x' },
      { target: 'power on', timeout: '5' },
      { target: 'power on', nosuch: 1 },
    ].flatMap((body) => [send('PUT', power, body), { settle: NODE }]),
    ...['soft power off', 'soft rebooting', 'rebooting', 'power off'].flatMap((target) =>
      [26, 27].flatMap((minor) => [send('PUT', power, { target }, minor), { settle: NODE }]),
    ),
    send('PUT', power, { target: 'power on', timeout: 5 }, 26),
    send('PUT', '/v1/nodes/one/states/power', { target: 'power on' }, 4),
    send('PUT', '/v1/nodes/nobody/states/power', { target: 'power on' }),
    send('PUT', `${power}?target=power%20on`, undefined),
    { settle: NODE },
    send('PUT', provision, { target: 'manage' }, 4),
    { settle: NODE },
    ...impossible('provide', 'inspect', 'clean', 'adopt', 'manage'),
    ...clean.map((steps) => send('PUT', provision, { target: 'clean', clean_steps: steps })),
    send('PUT', provision, { target: 'clean' }),
    send('PUT', provision, { target: 'clean', clean_steps: [{ interface: 'power', step: 'x' }], disable_ramdisk: true }, 69),
    send('PUT', provision, { target: 'clean', runbook: 'nosuch' }),
    send('PUT', provision, { target: 'clean', runbook: 'nosuch' }, 91),
    send('PUT', provision, { target: 'inspect' }),
    { settle: NODE },
    get(`/v1/nodes/${NODE}/inventory`),
    send('PUT', provision, { target: 'provide' }),
    { settle: NODE },
    get(`/v1/nodes/${NODE}`, 1),
    get(`/v1/nodes/${NODE}`, 2),
    get(`/v1/nodes/${NODE}/states`, 1),
    ...impossible('active', 'deploy', 'manage'),
    ...drives.flatMap((configdrive) => [34, 55, 56, 58].map((minor) => send('PUT', provision, { target: 'deploy', configdrive }, minor))),
    ...drives.slice(5, 7).map((configdrive) => send('PUT', provision, { target: 'active', configdrive })),
    send('PUT', provision, { target: 'active', configdrive: '{"a":1}' }),
    send('PUT', provision, { target: 'active', deploy_steps: [{ interface: 'deploy', step: 's' }] }),
    send('PUT', provision, { target: 'active', deploy_steps: [{ interface: 'deploy', step: 's', args: {}, priority: 1 }] }, 68),
    send('PUT', provision, { target: 'deploy', deploy_steps: [{ interface: 'deploy', step: 's', args: {}, priority: 1 }] }),
    send('PUT', `/v1/nodes/${NODE}/maintenance`, { reason: 'tested' }),
    send('PUT', provision, { target: 'active' }),
    send('DELETE', `/v1/nodes/${NODE}/maintenance`, undefined),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/retired', true)]),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/protected', true)]),
    send('PUT', provision, { target: 'active' }),
    { settle: NODE },
    ...impossible('rebuild', 'deleted', 'undeploy', 'rescue', 'service'),
    send('PUT', provision, { target: 'rescue' }),
    send('PUT', provision, { target: 'rescue', rescue_password: ' ' }),
    send('PUT', provision, { target: 'service' }),
    send('PUT', provision, { target: 'service', service_steps: [{ interface: 'power', step: 'x' }] }, 86),
    send('PUT', provision, { target: 'service', service_steps: [{ interface: 'network', step: 5 }] }),
    send('PUT', provision, { target: 'service', service_steps: [{ interface: 'power', step: 'x' }], disable_ramdisk: true }, 107),
    send('DELETE', `/v1/nodes/${NODE}`, undefined),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/protected', true), op('replace', '/protected_reason', 'kept')]),
    send('PUT', provision, { target: 'deleted' }),
    send('PUT', provision, { target: 'rebuild' }),
    send('DELETE', `/v1/nodes/${NODE}`, undefined),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/resource_class', 'x')]),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/boot_interface', 'ipxe')]),
    send('PATCH', `/v1/ports/${PORT}`, [op('replace', '/address', '52:54:00:00:00:cc')]),
    send('PATCH', `/v1/ports/${PORT}`, [op('replace', '/pxe_enabled', false)]),
    send('PATCH', `/v1/nodes/${NODE}`, [op('replace', '/protected', false)]),
    get(`/v1/nodes/${NODE}`),
    send('PUT', provision, { target: 'undeploy' }),
    { settle: NODE },
    send('PUT', provision, { target: 'manage' }),
    get(`/v1/nodes/${NODE}`),
  ];
};

const management = (): Step[] => {
  const device = `/v1/nodes/${NODE}/management/boot_device`;
  const maintenance = `/v1/nodes/${NODE}/maintenance`;
  const traits = `/v1/nodes/${NODE}/traits`;
  const many = Array.from({ length: 51 }, (_, index) => `CUSTOM_${index}`);
  return [
    get(device),
    get(`${device}/supported`),
    ...[
      {},
      { boot_device: 'pxe' },
      { boot_device: 'nosuch' },
      { boot_device: 5 },
      { boot_device: null },
      { boot_device: 'pxe', persistent: 'zz' },
      { boot_device: 'pxe', persistent: true },
      { boot_device: 'pxe', persistent: 'yes' },
      { boot_device: 'pxe', nosuch: 1 },
    ].map((body) => send('PUT', device, body)),
    send('PUT', `${device}?boot_device=pxe`, undefined),
    ...[{}, { reason: 'r' }, { reason: null }, { reason: 5 }, { nosuch: 1 }, []].flatMap((body) => [
      send('PUT', maintenance, body),
      get(`/v1/nodes/${NODE}?fields=maintenance,maintenance_reason,fault`),
    ]),
    send('DELETE', `${maintenance}?x=1`, undefined),
    send('DELETE', maintenance, undefined),
    get(`/v1/nodes/${NODE}/states`),
    ...[
      { traits: ['CUSTOM_A', 'CUSTOM_B'] },
      { traits: ['a'] },
      { traits: [''] },
      { traits: [5] },
      { traits: 'CUSTOM_A' },
      { traits: null },
      {},
      { nosuch: 1 },
      [],
      { traits: ['HW_CPU_X86_VMX'] },
      { traits: ['HW_NOSUCH'] },
      { traits: ['CUSTOM_' + 'X'.repeat(260)] },
      { traits: many },
    ].flatMap((body) => [36, 37, MAX].map((minor) => send('PUT', traits, body, minor))),
    ...['CUSTOM_C', 'custom', 'HW_CPU_X86_AVX', 'HW_NOSUCH', 'X'.repeat(260)].flatMap((trait) =>
      [36, 37, MAX].map((minor) => send('PUT', `${traits}/${trait}`, undefined, minor)),
    ),
    send('PUT', `${traits}/CUSTOM_C`, { traits: [] }),
    send('PUT', `${traits}/CUSTOM_C`, {}),
    send('PUT', `${traits}/CUSTOM_C`, { x: 1 }),
    get(traits, 36),
    get(traits),
    get(`/v1/nodes/${NODE}?fields=traits`),
    ...['CUSTOM_C', 'CUSTOM_NONE', 'zz'].flatMap((trait) =>
      [36, MAX].map((minor) => send('DELETE', `${traits}/${trait}`, undefined, minor)),
    ),
    send('DELETE', traits, undefined, 36),
    send('DELETE', traits, undefined),
    get(traits),
  ];
};

const ramdisk = (): Step[] => {
  const beat = `/v1/heartbeat/${NODE}`;
  const good = { callback_url: 'https://127.0.0.1:1', agent_version: '10.0', agent_token: 'x' };
  const inventory = { interfaces: [{ name: 'eth0', mac_address: MAC }] };
  return [
    ...[21, 22, 61, 62, MAX].flatMap((minor) => [
      get('/v1/lookup', minor),
      get(`/v1/lookup?addresses=${MAC}`, minor),
      get(`/v1/lookup?node_uuid=${NODE}`, minor),
      get(`/v1/lookup?node_uuid=${NOBODY}`, minor),
      get('/v1/lookup?node_uuid=zz', minor),
      get('/v1/lookup?addresses=zz', minor),
      get('/v1/lookup?nosuch=zz', minor),
    ]),
    ...[21, 22, 35, 36, 61, 62, 67, 68, 71, 72, MAX].flatMap((minor) =>
      [
        {},
        { callback_url: 'https://x' },
        good,
        { ...good, callback_url: 'http://x' },
        { ...good, callback_url: 'ftp://x' },
        { ...good, callback_url: '' },
        { ...good, callback_url: 5 },
        { ...good, callback_url: null },
        { callback_url: 'https://x', agent_token: 'x' },
        { ...good, agent_verify_ca: 'pem' },
        { ...good, agent_status: 'start' },
        { ...good, agent_status: 'nosuch' },
        { ...good, agent_status_message: 'm' },
        { ...good, nosuch: 1 },
      ].map((body) => send('POST', beat, body, minor)),
    ),
    send('POST', '/v1/heartbeat/nobody', good),
    send('POST', '/v1/heartbeat/one', good, 40),
    send('POST', '/v1/heartbeat', good),
    ...[null, '1.1', '1.2', '1.83', '1.84', NEWEST_VERSION].flatMap((version): Step[] =>
      [
        {},
        { inventory: {} },
        { inventory: { interfaces: [] } },
        { inventory: { interfaces: [{}] } },
        { inventory: { interfaces: [{ mac_address: 5 }] } },
        { inventory: { interfaces: [{ mac_address: 'zz' }] } },
        { inventory },
        { inventory: { ...inventory, bmc_address: '10.0.0.1' } },
        { inventory: 'x' },
        [],
      ].flatMap((body) => [
        { method: 'POST', path: '/v1/continue_inspection', version, body },
        { method: 'POST', path: `/v1/continue_inspection?node_uuid=${NODE}`, version, body },
        { method: 'POST', path: '/v1/continue_inspection?node_uuid=zz', version, body },
      ]),
    ),
  ];
};

export const stateGroups: Readonly<Record<string, () => readonly Step[]>> = { management, ramdisk, states };
