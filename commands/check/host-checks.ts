/** What `bloomery check` finds about this host: a table of checks. It changes nothing, and uses what the start of the server uses. */
import { withoutUrlCredentials } from '../../model/urls';
import { bootHostsOf, resolveConfigured } from '../../server/settings';
import { findEmbedded } from '../../store/embedded/embedded';
import { authentication, keystone, policies, users } from './access';
import { agentFiles, bootLoaders, bootTemplates } from './boot-files';
import { certificates } from './certificates';
import { database } from './database';
import { clock, stateDirectory } from './host';
import { refusalsOf, type CheckContext, type Finding, type HostCheck, type HostToCheck, type Result } from './check-row';
import { dhcp, ports, tftp } from './ports';
import { addresses, bootAddresses, inspectionFiles, settingChecks } from './settings';

/** In the order of the report. */
const CHECKS: readonly HostCheck[] = [
  ...settingChecks,
  addresses,
  authentication,
  users,
  policies,
  inspectionFiles,
  stateDirectory,
  clock,
  database,
  certificates,
  bootAddresses,
  ports,
  tftp,
  dhcp,
  agentFiles,
  bootTemplates,
  bootLoaders,
  keystone,
];

export async function checkHost(host: HostToCheck): Promise<readonly Finding[]> {
  const running = await findEmbedded(host.stateDir).then(
    (found) => found?.running?.process,
    () => undefined,
  );
  const resolved = resolveConfigured(host.options, host.stateDir);
  const bootHosts: CheckContext['bootHosts'] = (option) => {
    try {
      return bootHostsOf(resolved, option);
    } catch {
      return [];
    }
  };
  const context: CheckContext = { ...host, resolved, running, bootHosts };
  const findings: Finding[] = [];
  for (const { what, roles, check } of CHECKS) {
    if (roles && !roles.some((role) => host.roles.includes(role))) continue;
    let results: readonly Result[];
    try {
      results = await check(context);
    } catch (error) {
      results = refusalsOf(error);
    }
    findings.push(...results.map(([severity, message]) => ({ what, severity, message: withoutUrlCredentials(message) })));
  }
  return findings;
}
