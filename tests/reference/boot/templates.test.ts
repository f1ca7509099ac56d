/** Ironic's own templates of boot scripts: ours renders them as Ironic's Jinja2 does. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadBootTemplates } from '../../../boot/boot-templates';
import type { ServedBoot } from '../../../model/records';
import { inIronicsPython } from '../random-cases';

type TemplateOptions = Parameters<typeof loadBootTemplates>[0];
const TOKEN = '0123456789abcdef0123456789abcdef';
const URL = 'http://10.0.0.1:8080';
const folder = mkdtempSync(join(tmpdir(), 'bloomery-templates-'));
afterAll(() => rmSync(folder, { recursive: true }));

const record = (purpose: ServedBoot['purpose'], files: ServedBoot['files'] = { kernel: '/k', ramdisk: '/r' }): ServedBoot => ({
  node_uuid: '1be26c0b-03f2-4d2e-ae87-c02d7f33c123',
  token: TOKEN,
  macs: ['52:54:00:00:00:01'],
  method: 'ipxe',
  purpose,
  kernel_args: 'nofb',
  files,
});
/** What Ironic gives to its templates for such a machine. */
const values = (at: string, timeout: number, params: string, iso = false) => ({
  pxe_options: {
    deployment_aki_path: `${at}/kernel`,
    deployment_ari_path: `${at}/ramdisk`,
    aki_path: `${at}/kernel`,
    ari_path: `${at}/ramdisk`,
    initrd_filename: 'ramdisk',
    pxe_append_params: params,
    tftp_server: '10.0.0.1',
    ipxe_timeout: timeout * 1000,
    ...(iso ? { boot_iso_url: `${at}/boot_iso` } : {}),
  },
  ROOT: '{{ ROOT }}',
  DISK_IDENTIFIER: '{{ DISK_IDENTIFIER }}',
});

it('renders the templates of Ironic 39 as Ironic does', async () => {
  const [remote, local] = [`${URL}/boot/${TOKEN}`, `/boot/${TOKEN}`];
  const asked: readonly (readonly [string, unknown])[] = [
    ['ipxe_config.template', values(remote, 0, 'nofb')],
    ['ipxe_config.template', values(remote, 60, 'nofb')],
    ['ipxe_config.template', values(remote, 0, 'nofb', true)],
    ['pxe_config.template', values(local, 0, 'nofb')],
    ['pxe_grub_config.template', values(local, 0, "'nofb'")],
    ['boot.ipxe', { ipxe_for_mac_uri: `${URL}/ipxe/`, ipxe_fallback_script: null }],
    ['boot.ipxe', { ipxe_for_mac_uri: `${URL}/ipxe/`, ipxe_fallback_script: 'inspector.ipxe' }],
    ['initial_grub_cfg.template', { tftp_root: '' }],
  ];
  const rendered = await inIronicsPython<readonly [template: string, text: string]>(join(__dirname, 'render.py'), asked, 120_000);
  const place = (name: string): string => {
    writeFileSync(join(folder, name), rendered[asked.findIndex(([asking]) => asking === name)]![0]);
    return join(folder, name);
  };
  const given: TemplateOptions = {
    'pxe.ipxe_config_template': place('ipxe_config.template'),
    'pxe.pxe_config_template': place('pxe_config.template'),
    'pxe.uefi_pxe_config_template': place('pxe_grub_config.template'),
    'pxe.pxe_config_template_by_arch': {},
    'pxe.ipxe_boot_script': place('boot.ipxe'),
    'pxe.initial_grub_template': place('initial_grub_cfg.template'),
    'pxe.ipxe_fallback_script': null,
    'pxe.ipxe_timeout': 0,
    'pxe.tftp_server': '10.0.0.1',
  };
  const ours = (changes: Partial<TemplateOptions> = {}) => loadBootTemplates({ ...given, ...changes }, async () => undefined);
  const [usual, slow, fallback] = [
    await ours(),
    await ours({ 'pxe.ipxe_timeout': 60 }),
    await ours({ 'pxe.ipxe_fallback_script': 'inspector.ipxe' }),
  ];
  expect([
    usual.ipxe(record('ramdisk'), URL),
    slow.ipxe(record('ramdisk'), URL),
    usual.ipxe(record('instance', { boot_iso: '/i' }), URL)?.replaceAll(/^goto boot_ramdisk$/gm, 'goto deploy'),
    await usual.pxe('pxelinux', record('ramdisk')),
    await usual.pxe('grub', record('ramdisk')),
    usual.ipxeStart(URL),
    fallback.ipxeStart(URL),
    usual.grubStart(),
  ]).toEqual(rendered.map(([, text]) => text));
}, 300_000);
