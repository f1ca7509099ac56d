/** Runs the checks of `bloomery probe` against a BMC, with the clients that the server uses. */
import type { Log } from '../../model/log';
import type { IpmiPool, IpmiTarget } from '../../wire/ipmi/client';
import type { RedfishPool, RedfishTarget } from '../../wire/redfish';
import { ProbeEnd, runChecks, type Finding, type ProbeReport } from './check';
import { ipmiMachine, ipmiOutcome, IPMI_CHECKS, probedIpmi } from './ipmi-checks';
import { makerOf } from './maker';
import { probedMachine, REDFISH_CHECKS, type ProbedMachine } from './redfish-checks';
import { connectionEnd, openService, redfishOutcome, type ProbedService } from './service';
import { withoutSecrets } from './report';

interface Surroundings {
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly log: Log;
  readonly progress: (text: string) => void;
}
/** Most requests of the checks. Machines with many parts need 200. */
const MAX_REQUESTS = 600;

const EMPTY = { machine: {}, quirks: [] } as const;
const ended = (bmc: string, protocol: ProbeReport['protocol'], end: ProbeEnd): ProbeReport => {
  const login: Finding = { check: 'login', needed_for: ['everything'], optional: false, ...end.outcome };
  return { bmc, protocol, ...EMPTY, findings: [login] };
};

interface RedfishProbe {
  readonly report: ProbeReport;
  /** For a recording; undefined: the login failed. */
  readonly service: ProbedService | undefined;
}
/**
 * @param systemId path of the system; undefined: the service's first
 * @param requests most requests, if more are wanted than the checks need
 */
export async function probeRedfish(
  pool: RedfishPool,
  target: RedfishTarget,
  systemId: string | undefined,
  { signal, now, log, progress }: Surroundings,
  requests = MAX_REQUESTS,
): Promise<RedfishProbe> {
  const bmc = target.address;
  const masked = (report: ProbeReport): ProbeReport => withoutSecrets(report, [target.password]);
  progress('login');
  let service: ProbedService | undefined;
  try {
    service = await openService(pool, target, { signal, requests });
    const machine: ProbedMachine = await probedMachine(service, systemId, { log, now });
    const findings = await runChecks(REDFISH_CHECKS, machine, { signal, explain: redfishOutcome, progress });
    const maker = makerOf(machine.root.body, machine.system, machine.managers[0]);
    return { report: masked({ bmc, protocol: 'redfish', ...maker, findings }), service };
  } catch (error) {
    const end = error instanceof ProbeEnd ? error : connectionEnd(error);
    const late = signal.aborted
      ? new ProbeEnd({ result: 'wrong', text: 'The service did not answer in the time for the probe.', todo: 'Give more by --timeout.' })
      : undefined;
    const known = end ?? late;
    if (!known) throw error;
    return { report: masked(ended(bmc, 'redfish', known)), service: undefined };
  }
}

export async function probeIpmi(pool: IpmiPool, target: IpmiTarget, { signal, now, progress }: Surroundings): Promise<ProbeReport> {
  const bmc = `ipmi://${target.address}:${target.port}`;
  const machine = probedIpmi(pool, target, signal, now);
  const findings = await runChecks(IPMI_CHECKS, machine, { signal, explain: ipmiOutcome, progress });
  const isIn = findings[0]?.result === 'ok' && !signal.aborted;
  const told = isIn ? await ipmiMachine(machine).catch(() => ({})) : {};
  return withoutSecrets({ bmc, protocol: 'ipmi', machine: told, quirks: [], findings }, [target.password]);
}
