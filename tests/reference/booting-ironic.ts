/** The real Ironic in a lab, with a DHCP server and a web server that others wrote, so that machines of the lab boot its ramdisk. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Lab } from '../../demo/lab/machines';
import { type RealIronic, startRealIronic } from '../lab/inspection/real-ironic';

/** Where its machines find the files below RealIronic.httpRoot. */
export const HTTP = 'http://10.77.0.1:8080';

/**
 * @param ramdisk the paths of its kernel and its initrd
 * @param settings of Ironic, over those for this lab, by section
 */
export async function startBootingIronic(
  lab: Lab,
  ramdisk: { readonly kernel: string; readonly initrd: string },
  settings: Readonly<
    Record<'pxe' | 'conductor', Readonly<Record<string, string>>> & Partial<Record<'agent', Readonly<Record<string, string>>>>
  >,
): Promise<RealIronic> {
  await lab.exec('ip', 'addr', 'add', 'fd77::1/64', 'dev', lab.bridge, 'nodad');
  const folder = (name: string): string => join(lab.folder, 'ironic', name);
  const { kernel, initrd } = ramdisk;
  const ironic = await startRealIronic(
    join(lab.folder, 'ironic'),
    lab.address,
    6385,
    {
      deploy: { http_root: folder('http'), http_url: HTTP },
      conductor: {
        deploy_kernel: `file://${kernel}`,
        deploy_ramdisk: `file://${initrd}`,
        file_url_allowed_paths: [join(kernel, '..'), join(initrd, '..')].join(','),
        ...settings.conductor,
      },
      pxe: {
        tftp_root: folder('tftp'),
        images_path: folder('images'),
        instance_master_path: '',
        tftp_master_path: folder('tftpmasters'),
        ...settings.pxe,
      },
      agent: settings.agent ?? {},
      inspector: { require_managed_boot: 'true' },
    },
    lab.namespace,
  );
  lab.start('python3', '-m', 'http.server', '--bind', lab.address, '--directory', ironic.httpRoot, '8080');
  await promisify(execFile)('cp', ['/usr/lib/ipxe/snponly.efi', ironic.tftpRoot]);
  const dnsmasq = join(lab.folder, 'dnsmasq.conf');
  writeFileSync(
    dnsmasq,
    [
      'port=0',
      `interface=${lab.bridge}`,
      'bind-interfaces',
      'no-ping',
      'dhcp-range=10.77.0.100,10.77.0.200,1h',
      'dhcp-option=option:router',
      // A router advertisement, or else iPXE waits for one.
      'dhcp-range=::,constructor:br0,ra-only',
      'enable-ra',
      'enable-tftp',
      `tftp-root=${ironic.tftpRoot}`,
      'dhcp-userclass=set:ipxe,iPXE',
      `dhcp-boot=tag:ipxe,${HTTP}/boot.ipxe`,
      'dhcp-boot=tag:!ipxe,snponly.efi',
      `dhcp-leasefile=${join(lab.folder, 'leases')}`,
    ].join('\n'),
  );
  lab.start('dnsmasq', '-k', '-C', dnsmasq, '--user=root', `--pid-file=${join(lab.folder, 'dnsmasq.pid')}`);
  return ironic;
}
