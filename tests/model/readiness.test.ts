import { readiness, waitEnd, type Facts, type Probes, type Readiness } from '../../model/readiness';
import type { NodeRecord, PortRecord } from '../../model/records';
import { STATES, type ProvisionState } from '../../model/states';

const NODE = {
  uuid: '11111111-1111-4111-8111-111111111111',
  name: 'node-1',
  driver: 'redfish',
  conductor_group: 'rack-1',
  provision_state: 'available',
  maintenance: false,
  maintenance_reason: null,
  out_of_service: {},
  fault: null,
  retired: false,
  retired_reason: null,
  reservation: null,
  boot_interface: 'ipxe',
  boot_mode: null,
  instance_info: {},
  instance_uuid: null,
  properties: {},
  traits: ['CUSTOM_A'],
  lessee: null,
  last_error: null,
  health: null,
  provision_updated_at: '2026-01-02T03:04:05.000Z',
  driver_internal_info: {},
} as unknown as NodeRecord;
const PORT = { pxe_enabled: true } as PortRecord;
const PROBES: Probes = {
  validation: {},
  power: { state: 'power off' },
  bootMode: { now: 'uefi', changeable: false },
  images: [],
  deploying: { count: 0, limit: 2 },
  cleans: true,
  missingSteps: { steps: [], agentKnown: false },
};
interface Changed {
  readonly node?: Partial<NodeRecord>;
  readonly probes?: Partial<Probes>;
  readonly facts?: Partial<Facts>;
}
const look = ({ node = {}, probes = {}, facts = {} }: Changed): Readiness =>
  readiness({
    node: { ...NODE, ...node },
    ports: [PORT],
    allocation: undefined,
    conductor: 'here',
    waitEnd: null,
    probes: { ...PROBES, ...probes },
    ...facts,
  });

it('readiness of an available node without problems is ready, and runs all checks', () => {
  expect(look({})).toMatchObject({ ready: true, blockers: [], warnings: [], provision_state: 'available', node: NODE.uuid });
  expect(look({}).checks.filter(({ result }) => result !== 'ok')).toEqual([]);
});

it.each<[string, 'blocks' | 'warns', Changed, RegExp, RegExp]>([
  [
    'provision-state',
    'blocks',
    { node: { provision_state: 'enroll' } },
    /state enroll/,
    /node manage node-1, then .* provide node-1; its disks are cleaned/,
  ],
  ['provision-state', 'blocks', { node: { provision_state: 'manageable' }, probes: { cleans: false } }, /manageable/, /provide node-1$/],
  ['provision-state', 'blocks', { node: { provision_state: 'active' } }, /runs an instance/, /undeploy node-1/],
  ['provision-state', 'blocks', { node: { provision_state: 'cleaning' } }, /cleaning/, /^wait/],
  [
    'provision-state',
    'blocks',
    { node: { provision_state: 'wait call-back' } },
    /has been in the state wait call-back since 2026-01-02T03:04:05.*no agent has looked the node up or sent a heartbeat yet/,
    /^wait .*sends boot requests$/,
  ],
  [
    'provision-state',
    'blocks',
    { node: { provision_state: 'clean wait' }, facts: { bootRequests: {}, waitEnd: Date.UTC(2026, 0, 2, 4) } },
    /since 2026-01-02T03:04:05.* \(times out at 2026-01-02T04:00:00.000Z\): no agent .*; its machine has sent no boot request by DHCP, TFTP or HTTP$/,
    /^wait .*sends boot requests$/,
  ],
  [
    'provision-state',
    'blocks',
    { node: { provision_state: 'rescue wait' }, facts: { bootRequests: { DHCP: '2026-01-02T03:05:00', HTTP: '2026-01-02T03:05:02' } } },
    /; the last boot requests of its machine: HTTP at 2026-01-02T03:05:02, DHCP at 2026-01-02T03:05:00$/,
    /^wait/,
  ],
  [
    'provision-state',
    'blocks',
    { node: { provision_state: 'clean wait', driver_internal_info: { agent_secret_token: '******' } } },
    /since .*: its agent looked the node up, and has sent no heartbeat yet$/,
    /^wait .*console/,
  ],
  [
    'provision-state',
    'blocks',
    {
      node: {
        provision_state: 'service wait',
        driver_internal_info: { agent_url: 'https://192.0.2.1:9999', agent_last_heartbeat: '2026-01-02T03:05:06.000000' },
      },
    },
    /the last heartbeat of its agent was at 2026-01-02T03:05:06/,
    /^wait until it is over$/,
  ],
  [
    'provision-state',
    'blocks',
    { node: { provision_state: 'clean wait', driver_internal_info: { step_poll_every: 30 } } },
    /its running step is polled every 30 s$/,
    /^wait/,
  ],
  [
    'maintenance',
    'blocks',
    { node: { maintenance: true, maintenance_reason: 'disk' } },
    /in maintenance: disk$/,
    /maintenance unset node-1/,
  ],
  ['maintenance', 'blocks', { node: { maintenance: true, fault: 'power failure' } }, /for a power failure/, /ends by itself/],
  ['retired', 'warns', { node: { retired: true, retired_reason: 'old' } }, /retired: old/, /unset node-1 --retired/],
  ['retired', 'blocks', { node: { retired: true, provision_state: 'manageable' } }, /retired$/, /--retired/],
  ['reservation', 'blocks', { node: { reservation: 'host-1' } }, /host-1 has reserved it/, /^wait/],
  [
    'conductor',
    'blocks',
    { facts: { conductor: undefined } },
    /driver redfish in the conductor group 'rack-1'/,
    /enabled_hardware_types = redfish/,
  ],
  ['conductor', 'blocks', { facts: { probes: { error: 'refused' } } }, /here could not check it: refused/, /conductor list/],
  [
    'validate-power',
    'blocks',
    { probes: { validation: { power: { result: false, reason: 'no address' } } } },
    /^no address$/,
    /--driver-info/,
  ],
  [
    'validate-deploy',
    'blocks',
    { probes: { validation: { deploy: { result: false, reason: 'no image' } } } },
    /^no image$/,
    /--instance-info/,
  ],
  ['validate-network', 'warns', { probes: { validation: { network: { result: false } } } }, /not valid/, /validate node-1/],
  ['power', 'blocks', { probes: { power: { error: 'timed out' } } }, /cannot be read: timed out/, /BMC/],
  ['boot-mode', 'warns', { node: { properties: { capabilities: 'a:b,boot_mode:bios' } } }, /mode uefi, .* ask for bios/, /boot_mode:uefi/],
  ['boot-mode', 'warns', { node: { instance_info: { capabilities: { boot_mode: 'bios' } } } }, /ask for bios/, /firmware/],
  [
    'traits',
    'blocks',
    { node: { instance_info: { traits: ['CUSTOM_A', 'CUSTOM_B'] } } },
    /does not have: CUSTOM_B$/,
    /add trait node-1 CUSTOM_B/,
  ],
  ['traits', 'blocks', { node: { instance_info: { traits: 'CUSTOM_A' } } }, /not a list/, /unset node-1/],
  [
    'images',
    'blocks',
    { probes: { images: [{ name: 'image_source', href: 'http://x', error: 'HTTP 404' }] } },
    /image_source \(http:\/\/x\): HTTP 404/,
    /--instance-info image_source=URL/,
  ],
  [
    'images',
    'blocks',
    { probes: { images: [{ name: 'deploy_kernel', href: 'http://x', error: 'HTTP 404' }] } },
    /deploy_kernel/,
    /--driver-info deploy_kernel=URL/,
  ],
  [
    'deploy-steps',
    'warns',
    { probes: { missingSteps: { steps: ['raid.shred'], agentKnown: false } } },
    /driver does not have the deploy steps raid\.shred: /,
    /deploy template/,
  ],
  [
    'deploy-steps',
    'blocks',
    { probes: { missingSteps: { steps: ['raid.shred'], agentKnown: true } } },
    /neither its driver nor its agent/,
    /deploy template/,
  ],
  ['boot-port', 'blocks', { facts: { ports: [] } }, /\(ipxe\) and has no port/, /port create MAC --node/],
  ['boot-port', 'warns', { facts: { ports: [{ ...PORT, pxe_enabled: false }] } }, /none of its 1 ports/, /--pxe-enabled/],
  ['instance', 'warns', { node: { instance_uuid: 'i' } }, /instance i$/, /--instance-uuid/],
  [
    'instance',
    'warns',
    { facts: { allocation: { name: 'mine', uuid: 'u' } as Facts['allocation'] } },
    /allocation mine$/,
    /allocation delete mine/,
  ],
  ['lessee', 'warns', { node: { lessee: 'p' } }, /project p$/, /--lessee/],
  ['limit', 'blocks', { probes: { deploying: { count: 2, limit: 2 } } }, /max_concurrent_deploy = 2/, /^wait/],
  ['health', 'warns', { node: { health: 'Critical' } }, /Critical/, /machine/],
  ['last-error', 'warns', { node: { last_error: 'no disk' } }, /failed: no disk$/, /history list/],
])('check "%s" %s', (code, result, changed, message, todo) => {
  const said = look(changed);
  const found = said.checks.find((check) => check.code === code)!;
  expect(found).toEqual({ code, result, message: expect.stringMatching(message) as string, todo: expect.stringMatching(todo) as string });
  expect(said[result === 'blocks' ? 'blockers' : 'warnings']).toContain(code);
  expect(said.ready).toBe(said.blockers.length === 0);
});

it.each<[string, Changed]>([
  ['a boot interface without a network and no port', { node: { boot_interface: 'no-boot' }, facts: { ports: [] } }],
  [
    'another boot mode that can be changed',
    { node: { properties: { capabilities: 'boot_mode:bios' } }, probes: { bootMode: { now: 'uefi', changeable: true } } },
  ],
  [
    'an unknown boot mode',
    { node: { properties: { capabilities: 'boot_mode:bios' } }, probes: { bootMode: { now: null, changeable: false } } },
  ],
  ['a failed deployment, which may be retried', { node: { provision_state: 'deploy failed' } }],
  ['images that exist', { probes: { images: [{ name: 'kernel', href: 'http://x' }] } }],
])('no check objects to %s', (_what, changed) => expect(look(changed).checks.filter(({ result }) => result !== 'ok')).toEqual([]));

it('checks that the conductor cannot run are unknown, and the node is not ready', () => {
  const said = look({ facts: { probes: { error: 'gone' } } });
  expect(said.checks.filter(({ result }) => result === 'unknown').map(({ code }) => code)).toEqual(
    expect.arrayContaining(['power', 'images', 'limit', 'validate-deploy']),
  );
  expect(said.ready).toBe(false);
});

const CLI = 'openstack baremetal node';
const CLEANED = '; its disks are cleaned on the way';
it.each<[ProvisionState, string]>([
  ['enroll', `${CLI} manage node-1, then ${CLI} provide node-1${CLEANED}`],
  ['manageable', `${CLI} provide node-1${CLEANED}`],
  ['active', `${CLI} undeploy node-1${CLEANED}`],
  ['error', `${CLI} undeploy node-1${CLEANED}`],
  ['rescue', `${CLI} unrescue node-1, then ${CLI} undeploy node-1${CLEANED}`],
  ['clean failed', `${CLI} manage node-1, then ${CLI} provide node-1${CLEANED}`],
  ['inspect failed', `${CLI} manage node-1, then ${CLI} provide node-1${CLEANED}`],
  ['adopt failed', `${CLI} manage node-1, then ${CLI} provide node-1${CLEANED}`],
  ['rescue failed', `${CLI} undeploy node-1${CLEANED}`],
  ['unrescue failed', `${CLI} undeploy node-1${CLEANED}`],
  ['service failed', `${CLI} undeploy node-1${CLEANED}`],
  // The node goes on with what it did, which may be a deployment.
  ['deploy hold', `${CLI} unhold node-1`],
  ['clean hold', `${CLI} unhold node-1`],
  ['service hold', `${CLI} unhold node-1`],
  ['cleaning', 'wait until it is over'],
  ['deploying', 'wait until it is over'],
])('suggests in the state %s: %s', (state, todo) => {
  const first = (probes: Facts['probes']): unknown => look({ node: { provision_state: state }, facts: { probes } }).checks[0];
  const code = 'provision-state';
  const message = state === 'active' ? 'it runs an instance' : `it is in the state ${state}, not available`;
  expect(first(PROBES)).toEqual({ code, result: 'blocks', message, todo });
  const uncleaned = todo.replace(CLEANED, '');
  expect(first({ ...PROBES, cleans: false })).toEqual({ code, result: 'blocks', message, todo: uncleaned });
  expect(first({ error: 'gone' })).toEqual({ code, result: 'blocks', message, todo: uncleaned });
});

const invalid = (kind: string): Changed => ({ probes: { validation: { [kind]: { result: false } } } });
const SET = `${CLI} set node-1`;
it.each<[string, Changed, string]>([
  ['validate-power', invalid('power'), `${SET} --driver-info KEY=VALUE, as the message says`],
  ['validate-deploy', invalid('deploy'), `${SET} --instance-info KEY=VALUE (or --driver-info), as the message says`],
  ['validate-boot', invalid('boot'), `${SET} --driver-info KEY=VALUE (or --instance-info), as the message says`],
  ['validate-management', invalid('management'), `${SET} --driver-info KEY=VALUE, as the message says`],
  ['validate-network', invalid('network'), `${CLI} validate node-1`],
  ['validate-storage', invalid('storage'), `${CLI} validate node-1`],
  ['maintenance', { node: { maintenance: true } }, `${CLI} maintenance unset node-1`],
  ['maintenance', { node: { maintenance: true, fault: 'clean failure' } }, `${CLI} maintenance unset node-1`],
  ['maintenance', { node: { maintenance: true, fault: 'power failure' } }, 'make its BMC reachable: this maintenance ends by itself then'],
  ['retired', { node: { retired: true } }, `${CLI} unset node-1 --retired`],
  ['reservation', { node: { reservation: 'host-1' } }, 'wait until it is over'],
  [
    'conductor',
    { facts: { conductor: undefined } },
    `start one with [DEFAULT]enabled_hardware_types = redfish and [conductor]conductor_group = rack-1, or ${SET} --driver DRIVER --conductor-group GROUP`,
  ],
  ['conductor', { facts: { probes: { error: 'e' } } }, 'openstack baremetal conductor list; look at its log'],
  [
    'power',
    { probes: { power: { error: 'e' } } },
    `look at the BMC's address, name and password (driver_info) and its network: ${CLI} show node-1 -f json -c driver_info`,
  ],
  [
    'boot-mode',
    { node: { instance_info: { capabilities: { boot_mode: 'bios' } } } },
    `set it in the firmware, or ${SET} --property capabilities=boot_mode:uefi`,
  ],
  ['kexec', { probes: { kexecObstacle: 'x' } }, `accept the reboot, or ${SET} --instance-info deploy_kexec=false`],
  [
    'resident-kexec',
    { probes: { residentObstacle: 'x' } },
    `accept the reboot, or bloomery resident install node-1, or ${SET} --driver-info resident_kexec=false`,
  ],
  ['traits', { node: { instance_info: { traits: 'x' } } }, `${CLI} unset node-1 --instance-info traits`],
  ['traits', { node: { instance_info: { traits: ['X', 'Y'] } } }, `${CLI} add trait node-1 X Y`],
  [
    'deploy-steps',
    { probes: { missingSteps: { steps: ['a.b'], agentKnown: true } } },
    `check that the ramdisk has them, or change the deploy template, or ${CLI} unset node-1 --instance-info traits`,
  ],
  [
    'images',
    { probes: { images: [{ name: 'deploy_ramdisk', href: 'h', error: 'e' }] } },
    `make it reachable from the conductor, or ${SET} --driver-info deploy_ramdisk=URL`,
  ],
  [
    'images',
    {
      probes: {
        images: [
          { name: 'kernel', href: 'h', error: 'e' },
          { name: 'deploy_ramdisk', href: 'h', error: 'f' },
        ],
      },
    },
    `make it reachable from the conductor, or ${SET} --instance-info kernel=URL`,
  ],
  [
    'boot-port',
    { facts: { ports: [{ pxe_enabled: false } as PortRecord] } },
    'openstack baremetal port set PORT --pxe-enabled, for the port that it boots from',
  ],
  ['boot-port', { facts: { ports: [] } }, `openstack baremetal port create MAC --node ${NODE.uuid}`],
  ['instance', { node: { instance_uuid: 'i' } }, `deploy it for that, or ${CLI} unset node-1 --instance-uuid`],
  [
    'instance',
    { facts: { allocation: { name: null, uuid: 'u' } as Facts['allocation'] } },
    'deploy it for that, or openstack baremetal allocation delete u',
  ],
  ['lessee', { node: { lessee: 'p' } }, `deploy it for that, or ${CLI} unset node-1 --lessee`],
  ['limit', { probes: { deploying: { count: 3, limit: 2 } } }, 'wait until it is over'],
  ['health', { node: { health: 'Warning' } }, 'look at the machine'],
  ['last-error', { node: { last_error: 'e' } }, `${CLI} history list node-1`],
])('check "%s" suggests what to do about %j: %s', (code, changed, todo) => {
  expect(look(changed).checks.find((check) => check.code === code)!.todo).toBe(todo);
});
it.each<[string, Changed, string]>([
  ['maintenance', { node: { maintenance: true } }, 'it is in maintenance'],
  [
    'maintenance',
    { node: { maintenance: true, fault: 'power failure', maintenance_reason: 'r' } },
    'it is in maintenance for a power failure: r',
  ],
  ['retired', { node: { retired: true } }, 'it is retired'],
  ['retired', { node: { retired: true, retired_reason: 'r' } }, 'it is retired: r'],
  ['reservation', { node: { reservation: 'h' } }, 'the conductor h has reserved it for a running operation'],
  [
    'conductor',
    { facts: { conductor: undefined, probes: { error: 'e' } } },
    "no conductor that is alive serves the driver redfish in the conductor group 'rack-1'",
  ],
  ['validate-storage', invalid('storage'), 'it is not valid'],
  [
    'boot-mode',
    { node: { instance_info: { capabilities: { boot_mode: 'bios' } } } },
    'it boots in the mode uefi, and its capabilities ask for bios, which its management interface cannot set',
  ],
  ['traits', { node: { instance_info: { traits: ['X', 'Y'] } } }, 'its instance asks for traits that it does not have: X, Y'],
  [
    'deploy-steps',
    { probes: { missingSteps: { steps: ['a.b', 'a.c'], agentKnown: false } } },
    'its driver does not have the deploy steps a.b, a.c: the deployment fails if its agent does not have them either',
  ],
  [
    'deploy-steps',
    { probes: { missingSteps: { steps: ['a.b', 'a.c'], agentKnown: true } } },
    'neither its driver nor its agent has the deploy steps a.b, a.c, which its instance asks for',
  ],
  [
    'images',
    {
      probes: {
        images: [
          { name: 'a', href: 'h', error: 'e' },
          { name: 'b', href: 'i' },
          { name: 'c', href: 'j', error: 'f' },
        ],
      },
    },
    'a (h): e; c (j): f',
  ],
  ['boot-port', { facts: { ports: [] } }, 'it boots from the network (ipxe) and has no port'],
  ['instance', { facts: { allocation: { name: null, uuid: 'u' } as Facts['allocation'] } }, 'it is taken by the allocation u'],
  [
    'limit',
    { probes: { deploying: { count: 3, limit: 2 } } },
    '3 nodes are being deployed, and no more may be at once ([conductor]max_concurrent_deploy = 2)',
  ],
  ['health', { node: { health: 'Warning' } }, 'its BMC reports the health Warning'],
])('check "%s" says about %j: %s', (code, changed, message) => {
  expect(look(changed).checks.find((check) => check.code === code)!.message).toBe(message);
});
it('commands name a node without a name by its UUID', () => {
  expect(look({ node: { name: null, provision_state: 'active' } }).checks[0]!.todo).toBe(`${CLI} undeploy ${NODE.uuid}${CLEANED}`);
});

it.each<[Partial<NodeRecord>, string | undefined]>([
  [{ properties: { capabilities: 'boot_mode:bios' } }, 'bios'],
  [{ properties: { capabilities: 'a:b, boot_mode:bios,c:d' } }, 'bios'],
  [{ properties: { capabilities: 'my_boot_mode:bios' } }, undefined],
  [{ properties: { capabilities: 'a:b' } }, undefined],
  [{ properties: { capabilities: { boot_mode: 'bios' } } }, undefined],
  [{ properties: { capabilities: ['boot_mode:bios'] } }, undefined],
  [{ instance_info: { capabilities: null } }, undefined],
  [{ instance_info: { capabilities: 'boot_mode:bios' } }, undefined],
  [{ instance_info: { capabilities: { boot_mode: null } } }, undefined],
  [{ instance_info: { capabilities: { boot_mode: 'uefi' } }, properties: { capabilities: 'boot_mode:bios' } }, undefined],
  [{ instance_info: { capabilities: { secure_boot: 'true' } }, properties: { capabilities: 'boot_mode:bios' } }, 'bios'],
])('check "boot-mode" reads in %j that the boot mode should be %s instead of uefi', (node, mode) => {
  const { message } = look({ node }).checks.find(({ code }) => code === 'boot-mode')!;
  expect(message === null ? undefined : /ask for (\w+)/.exec(message)![1]).toBe(mode);
});
it.each<[string | null, boolean]>([
  ['pxe', true],
  ['ipxe', true],
  ['http', true],
  ['http-ipxe', true],
  ['redfish-virtual-media', false],
  ['redfish-https', false],
  ['ilo-pxe', false],
  ['pxe-x', false],
  [null, false],
])('check "boot-port" wants a port for the boot interface %j: %s', (boot_interface, wanted) => {
  expect(look({ node: { boot_interface }, facts: { ports: [] } }).blockers).toEqual(wanted ? ['boot-port'] : []);
  const ports = [{ pxe_enabled: false }, { pxe_enabled: true }] as PortRecord[];
  expect(look({ node: { boot_interface }, facts: { ports } })).toMatchObject({ ready: true, warnings: [] });
});
it.each<[string, Changed]>([
  ['an invalid interface that no deployment needs', invalid('console')],
  ['a valid interface', { probes: { validation: { power: { result: true, reason: 'r' } } } }],
  ['an unknown power state', { probes: { power: { state: null } } }],
  ['a healthy machine', { node: { health: 'OK' } }],
  ['requested traits that the node has', { node: { instance_info: { traits: ['CUSTOM_A'] } } }],
  ['fewer deployments than permitted', { probes: { deploying: { count: 1, limit: 2 } } }],
])('no check objects to %s either', (_what, changed) => expect(look(changed)).toMatchObject({ ready: true, blockers: [], warnings: [] }));

it.each(Object.keys(STATES) as ProvisionState[])('the state %s is available for deployment, or has a suggestion what to do', (state) => {
  const [{ result, todo }] = look({ node: { provision_state: state } }).checks as [Readiness['checks'][number]];
  expect([result, todo]).toEqual(['available', 'deploy failed'].includes(state) ? ['ok', null] : ['blocks', expect.any(String)]);
});

const TIMEOUTS = {
  'conductor.deploy_callback_timeout': 60,
  'conductor.clean_callback_timeout': 0,
  'conductor.inspect_wait_timeout': 120,
  'conductor.rescue_callback_timeout': 60,
  'conductor.service_callback_timeout': 60,
};
it.each<[ProvisionState, Partial<NodeRecord>, string | null]>([
  ['wait call-back', {}, '2026-01-02T03:05:05.000Z'],
  ['wait call-back', { maintenance: true }, null],
  ['wait call-back', { provision_updated_at: null }, null],
  ['clean wait', {}, null],
  ['inspect wait', { inspection_started_at: '2026-01-02T03:00:00.000Z' }, '2026-01-02T03:02:00.000Z'],
  ['inspect wait', { inspection_started_at: null }, '2026-01-02T03:06:05.000Z'],
  ['available', {}, null],
])('waitEnd in state %s with %j is %s', (state, changes, end) => {
  const at = waitEnd({ ...NODE, provision_state: state, ...changes }, TIMEOUTS);
  expect(at === null ? null : new Date(at).toISOString()).toBe(end);
});
