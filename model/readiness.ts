/**
 * A table of checks: what prevents the deployment of a node, and what to do about it. The caller reads the facts from machines and servers.
 */
import type { AllocationRecord, BootRequests, InterfaceKind, NodeRecord, PortRecord, PowerState } from './records';
import { outageOf } from './rules/out-of-service';
import { isWaiting, nextState, stateRow, type ProvisionState, type WaitTimeout } from './states';
import { missingTraits } from './traits';

/** Facts that only the node's conductor can determine. */
export interface Probes {
  /** The result of `validate` for each interface. */
  readonly validation: Readonly<Partial<Record<InterfaceKind, { readonly result: boolean; readonly reason?: string }>>>;
  /** The actual power state. Absent: the power interface cannot read it, or is not valid. */
  readonly power?: { readonly state: PowerState | null } | { readonly error: string } | undefined;
  /** The present boot mode, and whether the management interface can change it. */
  readonly bootMode: { readonly now: string | null; readonly changeable: boolean };
  /** The images of the deployment, with the error if one is not accessible. */
  readonly images: readonly { readonly name: string; readonly href: string; readonly error?: string | undefined }[];
  /** The number of nodes in deployment, and its limit. */
  readonly deploying: { readonly count: number; readonly limit: number };
  /** Whether `provide` cleans the node. */
  readonly cleans: boolean;
  /** Why the deployment will end with a reboot, although a kexec is asked for. */
  readonly kexecObstacle?: string | undefined;
  /** Why a service or a rescue will begin with a reboot, although a kexec from the instance is asked for. */
  readonly residentObstacle?: string | undefined;
  /** Requested deploy steps (`interface.step`) that the driver lacks, and the agent too, if its steps are known. */
  readonly missingSteps: { readonly steps: readonly string[]; readonly agentKnown: boolean };
  /** What differs between the machine and the node's default config. */
  readonly differences?: readonly string[];
}
export interface Facts {
  readonly node: NodeRecord;
  readonly ports: readonly PortRecord[];
  readonly allocation: AllocationRecord | undefined;
  /** When the node's machine last sent requests to the boot services. Undefined: the node has no boot row, or does not wait. */
  readonly bootRequests?: BootRequests | undefined;
  /** When the node's wait times out, in milliseconds since the epoch. Null: never, or the node does not wait. */
  readonly waitEnd: number | null;
  /** The node's conductor; undefined: no conductor of its group has its driver. */
  readonly conductor: string | undefined;
  /** The facts of the conductor, or the reason why it gave none. */
  readonly probes: Probes | { readonly error: string };
}
type Severity = 'blocks' | 'warns';
interface Finding {
  readonly message: string;
  /** A command or an instruction. */
  readonly todo: string;
  /** Overrides the severity of the check. */
  readonly severity?: Severity;
}
/** `unknown`: the facts are not available. */
export interface CheckResult {
  readonly code: string;
  readonly result: 'ok' | Severity | 'unknown';
  readonly message: string | null;
  readonly todo: string | null;
}
export interface Readiness {
  readonly node: string;
  readonly provision_state: ProvisionState;
  /** No check blocks, and all facts are available. */
  readonly ready: boolean;
  readonly blockers: readonly string[];
  readonly warnings: readonly string[];
  readonly checks: readonly CheckResult[];
}

interface NodeCheck {
  readonly code: string;
  readonly severity: Severity;
  /** Undefined: the check passes. */
  readonly check: (facts: Facts) => Finding | undefined;
}
interface ProbeCheck {
  readonly code: string;
  readonly severity: Severity;
  readonly probe: (probes: Probes, facts: Facts) => Finding | undefined;
}

const command = (node: NodeRecord, words: string): string => `openstack baremetal node ${words.replace('NODE', node.name ?? node.uuid)}`;
const WAIT = 'wait until it is over';

/** State → the commands that lead to `available`. In other states, wait. */
const WAYS: Partial<Record<ProvisionState, readonly string[]>> = {
  enroll: ['manage NODE', 'provide NODE'],
  manageable: ['provide NODE'],
  active: ['undeploy NODE'],
  error: ['undeploy NODE'],
  rescue: ['unrescue NODE', 'undeploy NODE'],
  'deploy hold': ['unhold NODE'],
  'clean hold': ['unhold NODE'],
  'clean failed': ['manage NODE', 'provide NODE'],
  'inspect failed': ['manage NODE', 'provide NODE'],
  'adopt failed': ['manage NODE', 'provide NODE'],
  'rescue failed': ['undeploy NODE'],
  'unrescue failed': ['undeploy NODE'],
  'service failed': ['undeploy NODE'],
  'service hold': ['unhold NODE'],
};
/**
 * When the node's wait for its machine times out, in milliseconds since the epoch. Null: the node does not wait, or waits without a limit.
 * A node in maintenance has no limit, because it waits for its operator.
 */
export function waitEnd(
  node: Pick<NodeRecord, 'provision_state' | 'provision_updated_at' | 'inspection_started_at' | 'maintenance'>,
  options: Readonly<Record<WaitTimeout, number>>,
): number | null {
  const { timeout, since } = stateRow(node.provision_state);
  const began = (since === undefined ? null : node[since]) ?? node.provision_updated_at;
  if (timeout === undefined || node.maintenance || began === null || options[timeout] <= 0) return null;
  return Date.parse(began) + options[timeout] * 1000;
}

/** The last requests of the machine, the latest first. */
function lastRequests(requests: BootRequests | undefined): string {
  if (!requests) return '';
  const known = Object.entries(requests).sort(([, entry], [, other]) => (entry < other ? 1 : -1));
  if (known.length === 0) return '; its machine has sent no boot request by DHCP, TFTP or HTTP';
  return `; the last boot requests of its machine: ${known.map(([protocol, at]) => `${protocol} at ${at}`).join(', ')}`;
}

/** Since when a waiting node waits, and which contact its agent has made since the flow started. */
function waitedFor({
  node: { provision_state: state, provision_updated_at: since, driver_internal_info: internal },
  bootRequests,
  waitEnd: end,
}: Facts): Finding | undefined {
  if (!isWaiting(state) || since === null) return undefined;
  const waits = `it has been in the state ${state} since ${since}${end === null ? '' : ` (times out at ${new Date(end).toISOString()})`}`;
  const { agent_url: url, agent_last_heartbeat: heartbeat, agent_secret_token: token, agent_secret_token_pregenerated: early } = internal;
  if (typeof internal.step_poll_every === 'number')
    return { message: `${waits}: its running step is polled every ${internal.step_poll_every} s`, todo: WAIT };
  if (typeof url === 'string')
    return {
      message: `${waits}: the last heartbeat of its agent was at ${typeof heartbeat === 'string' ? heartbeat : 'an unknown time'}`,
      todo: WAIT,
    };
  if (token !== undefined && early !== true)
    return {
      message: `${waits}: its agent looked the node up, and has sent no heartbeat yet${lastRequests(bootRequests)}`,
      todo: `${WAIT}; if that takes too long, look at the machine's console`,
    };
  return {
    message: `${waits}: no agent has looked the node up or sent a heartbeat yet${lastRequests(bootRequests)}`,
    todo: `${WAIT}; if that takes too long, check on the machine's console whether it boots, and in the server's log whether it sends boot requests`,
  };
}
function provisionState(facts: Facts): Finding | undefined {
  const { node, probes } = facts;
  const { provision_state: state } = node;
  if (nextState(state, 'deploy')) return undefined;
  const waiting = waitedFor(facts);
  if (waiting) return waiting;
  const ways = WAYS[state];
  const todo = ways ? ways.map((way) => command(node, way)).join(', then ') : WAIT;
  const leaves = ways !== undefined && ways.at(-1) !== 'unhold NODE';
  const cleans = leaves && 'cleans' in probes && probes.cleans ? '; its disks are cleaned on the way' : '';
  const holds = stateRow(state).stable && state === 'active' ? 'it runs an instance' : `it is in the state ${state}, not available`;
  return { message: holds, todo: `${todo}${cleans}` };
}

const NETWORK_BOOT = /^(?:pxe|ipxe|http|http-ipxe)$/;
function bootPort({ node, ports }: Facts): Finding | undefined {
  if (!NETWORK_BOOT.test(node.boot_interface ?? '')) return undefined;
  if (ports.some(({ pxe_enabled: enabled }) => enabled)) return undefined;
  if (ports.length > 0)
    return {
      message: `none of its ${ports.length} ports has pxe_enabled`,
      todo: 'openstack baremetal port set PORT --pxe-enabled, for the port that it boots from',
      severity: 'warns',
    };
  return {
    message: `it boots from the network (${node.boot_interface ?? ''}) and has no port`,
    todo: `openstack baremetal port create MAC --node ${node.uuid}`,
  };
}

/** Interfaces whose validation blocks a deployment, and those that only cause warnings. */
const VALIDATED: readonly (readonly [InterfaceKind, Severity])[] = [
  ['power', 'blocks'],
  ['deploy', 'blocks'],
  ['boot', 'warns'],
  ['management', 'warns'],
  ['network', 'warns'],
  ['storage', 'warns'],
];
const WHERE: Partial<Record<InterfaceKind, string>> = {
  power: 'set NODE --driver-info KEY=VALUE, as the message says',
  management: 'set NODE --driver-info KEY=VALUE, as the message says',
  deploy: 'set NODE --instance-info KEY=VALUE (or --driver-info), as the message says',
  boot: 'set NODE --driver-info KEY=VALUE (or --instance-info), as the message says',
};
const validation = ([kind, severity]: (typeof VALIDATED)[number]): ProbeCheck => ({
  code: `validate-${kind}`,
  severity,
  probe: ({ validation: results }, { node }) => {
    const { result = true, reason = 'it is not valid' } = results[kind] ?? {};
    return result ? undefined : { message: reason, todo: command(node, WHERE[kind] ?? 'validate NODE') };
  },
});

const requestedBootMode = ({ instance_info: instance, properties }: NodeRecord): string | undefined => {
  const { capabilities } = instance;
  const requested =
    typeof capabilities === 'object' && capabilities !== null ? (capabilities as Record<string, unknown>)['boot_mode'] : undefined;
  if (typeof requested === 'string') return requested;
  return typeof properties.capabilities === 'string' ? /(?:^|,)\s*boot_mode:(\w+)/.exec(properties.capabilities)?.[1] : undefined;
};

const CHECKS: readonly (NodeCheck | ProbeCheck)[] = [
  { code: 'provision-state', severity: 'blocks', check: provisionState },
  {
    code: 'maintenance',
    severity: 'blocks',
    check: ({ node }) =>
      node.maintenance
        ? {
            message: `it is in maintenance${node.fault === null ? '' : ` for a ${node.fault}`}${node.maintenance_reason ? `: ${node.maintenance_reason}` : ''}`,
            todo:
              node.fault === 'power failure'
                ? 'make its BMC reachable: this maintenance ends by itself then'
                : outageOf(node)
                  ? `put it back: bloomery out-of-service ${node.name ?? node.uuid} --end`
                  : command(node, 'maintenance unset NODE'),
          }
        : undefined,
  },
  {
    code: 'retired',
    severity: 'blocks',
    check: ({ node }) =>
      node.retired
        ? {
            message: `it is retired${node.retired_reason ? `: ${node.retired_reason}` : ''}`,
            todo: command(node, 'unset NODE --retired'),
            // A retired node cannot become available. If it is available, it can still be deployed explicitly.
            severity: node.provision_state === 'available' ? 'warns' : 'blocks',
          }
        : undefined,
  },
  {
    code: 'reservation',
    severity: 'blocks',
    check: ({ node }) =>
      node.reservation === null
        ? undefined
        : { message: `the conductor ${node.reservation} has reserved it for a running operation`, todo: WAIT },
  },
  {
    code: 'conductor',
    severity: 'blocks',
    check: ({ node, conductor, probes }) => {
      if (conductor === undefined)
        return {
          message: `no conductor that is alive serves the driver ${node.driver} in the conductor group '${node.conductor_group}'`,
          todo: `start one with [DEFAULT]enabled_hardware_types = ${node.driver} and [conductor]conductor_group = ${node.conductor_group}, or ${command(node, 'set NODE --driver DRIVER --conductor-group GROUP')}`,
        };
      if (!('error' in probes)) return undefined;
      return {
        message: `its conductor ${conductor} could not check it: ${probes.error}`,
        todo: 'openstack baremetal conductor list; look at its log',
      };
    },
  },
  ...VALIDATED.map(validation),
  {
    code: 'power',
    severity: 'blocks',
    probe: ({ power }, { node }) =>
      power && 'error' in power
        ? {
            message: `its power state cannot be read: ${power.error}`,
            todo: `look at the BMC's address, name and password (driver_info) and its network: ${command(node, 'show NODE -f json -c driver_info')}`,
          }
        : undefined,
  },
  {
    code: 'boot-mode',
    severity: 'warns',
    probe: ({ bootMode: { now, changeable } }, { node }) => {
      const requested = requestedBootMode(node);
      if (requested === undefined || now === null || now === requested || changeable) return undefined;
      return {
        message: `it boots in the mode ${now}, and its capabilities ask for ${requested}, which its management interface cannot set`,
        todo: `set it in the firmware, or ${command(node, `set NODE --property capabilities=boot_mode:${now}`)}`,
      };
    },
  },
  {
    code: 'traits',
    severity: 'blocks',
    check: ({ node }) => {
      const missing = missingTraits(node);
      if (missing === undefined)
        return {
          message: 'the traits in its instance_info are not a list of names',
          todo: command(node, 'unset NODE --instance-info traits'),
        };
      return missing.length === 0
        ? undefined
        : {
            message: `its instance asks for traits that it does not have: ${missing.join(', ')}`,
            todo: command(node, `add trait NODE ${missing.join(' ')}`),
          };
    },
  },
  {
    code: 'deploy-steps',
    severity: 'blocks',
    probe: ({ missingSteps: { steps, agentKnown } }, { node }) =>
      steps.length === 0
        ? undefined
        : {
            message: agentKnown
              ? `neither its driver nor its agent has the deploy steps ${steps.join(', ')}, which its instance asks for`
              : `its driver does not have the deploy steps ${steps.join(', ')}: the deployment fails if its agent does not have them either`,
            todo: `check that the ramdisk has them, or change the deploy template, or ${command(node, 'unset NODE --instance-info traits')}`,
            severity: agentKnown ? 'blocks' : 'warns',
          },
  },
  {
    code: 'images',
    severity: 'blocks',
    probe: ({ images }, { node }) => {
      const wrong = images.filter(({ error }) => error !== undefined);
      return wrong.length === 0
        ? undefined
        : {
            message: wrong.map(({ name, href, error }) => `${name} (${href}): ${error!}`).join('; '),
            todo: `make it reachable from the conductor, or ${command(node, `set NODE --${wrong[0]!.name.startsWith('deploy_') ? 'driver' : 'instance'}-info ${wrong[0]!.name}=URL`)}`,
          };
    },
  },
  {
    code: 'kexec',
    severity: 'warns',
    probe: ({ kexecObstacle: obstacle }, { node }) =>
      obstacle === undefined
        ? undefined
        : {
            message: `its deployment is asked to end with a kexec, and will end with a reboot: ${obstacle}`,
            todo: `accept the reboot, or ${command(node, 'set NODE --instance-info deploy_kexec=false')}`,
          },
  },
  {
    code: 'resident-kexec',
    severity: 'warns',
    probe: ({ residentObstacle: obstacle }, { node }) =>
      obstacle === undefined
        ? undefined
        : {
            message: `the agent in its instance is asked to start the ramdisk by kexec, and the machine will reboot: ${obstacle}`,
            todo: `accept the reboot, or bloomery resident install ${node.name ?? node.uuid}, or ${command(node, 'set NODE --driver-info resident_kexec=false')}`,
          },
  },
  { code: 'boot-port', severity: 'blocks', check: bootPort },
  {
    code: 'instance',
    severity: 'warns',
    check: ({ node, allocation }) =>
      allocation
        ? {
            message: `it is taken by the allocation ${allocation.name ?? allocation.uuid}`,
            todo: `deploy it for that, or openstack baremetal allocation delete ${allocation.name ?? allocation.uuid}`,
          }
        : node.instance_uuid === null
          ? undefined
          : {
              message: `it is taken by the instance ${node.instance_uuid}`,
              todo: `deploy it for that, or ${command(node, 'unset NODE --instance-uuid')}`,
            },
  },
  {
    code: 'lessee',
    severity: 'warns',
    check: ({ node }) =>
      node.lessee === null
        ? undefined
        : { message: `it is leased to the project ${node.lessee}`, todo: `deploy it for that, or ${command(node, 'unset NODE --lessee')}` },
  },
  {
    code: 'limit',
    severity: 'blocks',
    probe: ({ deploying: { count, limit } }) =>
      count < limit
        ? undefined
        : {
            message: `${count} nodes are being deployed, and no more may be at once ([conductor]max_concurrent_deploy = ${limit})`,
            todo: WAIT,
          },
  },
  {
    code: 'default-config',
    severity: 'warns',
    probe: ({ differences = [] }, { node }) =>
      differences.length === 0
        ? undefined
        : {
            message: differences.join('; '),
            todo: `${command(node, 'manage NODE')}, then ${command(node, 'provide NODE')}: automated cleaning brings the machine back`,
          },
  },
  {
    code: 'health',
    severity: 'warns',
    check: ({ node }) =>
      node.health === null || node.health === 'OK'
        ? undefined
        : { message: `its BMC reports the health ${node.health}`, todo: 'look at the machine' },
  },
  {
    code: 'last-error',
    severity: 'warns',
    check: ({ node }) =>
      node.last_error === null
        ? undefined
        : { message: `the last operation on it failed: ${node.last_error}`, todo: command(node, 'history list NODE') },
  },
];

export function readiness(facts: Facts): Readiness {
  const { node, probes } = facts;
  const checks = CHECKS.map((check): CheckResult => {
    const none = { code: check.code, message: null, todo: null };
    if ('probe' in check && 'error' in probes) return { ...none, result: 'unknown' };
    const found = 'probe' in check ? check.probe(probes as Probes, facts) : check.check(facts);
    return found
      ? { ...none, result: found.severity ?? check.severity, message: found.message, todo: found.todo }
      : { ...none, result: 'ok' };
  });
  const codes = (result: Severity): readonly string[] => checks.filter((check) => check.result === result).map(({ code }) => code);
  const blockers = codes('blocks');
  return {
    node: node.uuid,
    provision_state: node.provision_state,
    ready: blockers.length === 0,
    blockers,
    warnings: codes('warns'),
    checks,
  };
}
