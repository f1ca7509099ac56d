/** The role boot: HTTP boot, TFTP and DHCP. */
import { randomBytes } from 'node:crypto';
import { startDhcp } from '../boot/dhcp/service';
import { loadBootTemplates } from '../boot/boot-templates';
import { pxeFilter, type ReportBoots } from '../boot/discovery';
import { startHttpBoot } from '../boot/http';
import { createBootRequestLog } from '../boot/requests';
import { startTftp } from '../boot/tftp';
import type { Options } from '../config/options';
import { filesByArchitecture, wholePair } from '../drivers/common/configured-ramdisk';
import { tlsOf } from '../config/tls';
import type { ServedBoot } from '../model/records';
import type { StoreContext } from './context';
import { bootHostsOf, bootRoleFolders, prepareFolder } from './settings';

/** The ports of HTTP boot. `https` is the second port, with TLS; null: there is none. */
export interface BootPorts {
  readonly http: number;
  readonly https: number | null;
}

/** The deploy kernel and ramdisk for all machines, and those for an architecture (boot/architectures.ts). Empty: none are set. */
function reportFiles(options: Options): ServedBoot['files'] {
  const { 'conductor.deploy_kernel': kernel, 'conductor.deploy_ramdisk': ramdisk } = options;
  return { ...wholePair({ kernel, ramdisk }), ...filesByArchitecture(options, 'deploy') };
}

/**
 * Boot records for machines that the PXE filter admits although no node's boot record has their address. They boot the agent, which reports
 * the inventory. Undefined: no deploy kernel and ramdisk are set.
 */
function reportBoots(options: Options): ReportBoots | undefined {
  const { 'service_catalog.endpoint_override': api } = options;
  const files = reportFiles(options);
  if (Object.keys(files).length === 0) return undefined;
  const append = [options['pxe.kernel_append_params'], options['inspector.extra_kernel_params']].filter((part) => part !== '').join(' ');
  const reporting = (uuid: string, callback: string): ServedBoot => ({
    node_uuid: uuid,
    token: uuid,
    macs: [],
    method: options['boot.discovery_boot_interface'],
    purpose: 'ramdisk',
    kernel_args: `selinux=0 troubleshoot=0 text ${append} ipa-api-url=${api} ipa-inspection-callback-url=${callback}`,
    files,
  });
  return {
    discovery: reporting('00000000-0000-0000-0000-000000000000', `${api}/v1/continue_inspection`),
    introspection: reporting('00000000-0000-0000-0000-000000000001', options['inspector_service.callback_url']),
  };
}

/** Starts HTTP boot, TFTP and DHCP. Returns the options with the port of HTTP boot, and the URLs that it is bound to. */
export async function startBoot(
  { options, store, services, clock, metrics, stops, ...context }: StoreContext,
  resolveWith: (ports: BootPorts) => Options,
): Promise<{ readonly options: Options; readonly bound: readonly string[] }> {
  for (const { what, path } of bootRoleFolders(options)) prepareFolder(path, what);
  const reports = reportBoots(options);
  const filter = pxeFilter(options);
  if (filter.discovers && !reports)
    context.log.warn('unknown machines get nothing to boot: [conductor]deploy_kernel and deploy_ramdisk are not set');
  const log = context.log.child({ component: 'boot' });
  const requests = createBootRequestLog(store.boots, clock, log);
  stops.push(async () => requests.stop());
  const templates = await loadBootTemplates(options, async (uuid) => {
    const [node] = await store.nodes.list({ where: { uuid }, children: 'all' });
    const cpu = node?.properties['cpu_arch'];
    return typeof cpu === 'string' ? cpu : undefined;
  });
  const http = await startHttpBoot({
    options,
    store,
    filter,
    requests,
    glance: services.glance,
    log,
    clock,
    random: randomBytes,
    metrics,
    hosts: bootHostsOf(options, 'boot.http_host'),
    tls: tlsOf(options, 'boot'),
    secondTls: tlsOf(options, 'boot with TLS'),
    reports,
    templates,
  });
  stops.push(() => http.stop());
  context.reloads.push(() => http.reload());
  const resolved = resolveWith({ http: http.port, https: http.httpsPort });
  if (resolved['boot.tftp']) {
    const tftp = await startTftp({
      options: resolved,
      hosts: bootHostsOf(options, 'boot.tftp_host'),
      boots: http.files,
      templates,
      log,
      clock,
      metrics,
    });
    stops.push(() => tftp.stop());
  }
  if (resolved['dhcp.dhcp_provider'] === 'builtin') {
    const dhcp = await startDhcp({ options: resolved, store, filter, requests, log, clock, metrics, random: randomBytes });
    stops.push(() => dhcp.stop());
  }
  return { options: resolved, bound: http.bound };
}
