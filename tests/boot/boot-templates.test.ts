/** Operators' templates of boot scripts. tests/reference/boot/templates.test.ts compares them with Ironic's own, under Jinja2 itself. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadBootTemplates } from '../../boot/boot-templates';
import type { ServedBoot } from '../../model/records';

type TemplateOptions = Parameters<typeof loadBootTemplates>[0];
let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'boot-templates-'))));
afterAll(() => rmSync(folder, { recursive: true }));

const TOKEN = '0123456789abcdef0123456789abcdef';
const URL = 'http://10.0.0.1:8080';
const boot = (changes: Partial<ServedBoot> = {}): ServedBoot => ({
  node_uuid: '1be26c0b-03f2-4d2e-ae87-c02d7f33c123',
  token: TOKEN,
  macs: ['52:54:00:00:00:01'],
  method: 'ipxe',
  purpose: 'ramdisk',
  kernel_args: 'selinux=0 troubleshoot=0 text nofb said="by the row"',
  files: { kernel: '/k', ramdisk: '/r' },
  ...changes,
});
const OPTIONS: TemplateOptions = {
  'pxe.ipxe_config_template': null,
  'pxe.pxe_config_template': null,
  'pxe.uefi_pxe_config_template': null,
  'pxe.pxe_config_template_by_arch': {},
  'pxe.ipxe_boot_script': null,
  'pxe.initial_grub_template': null,
  'pxe.ipxe_fallback_script': null,
  'pxe.ipxe_timeout': 7,
  'pxe.tftp_server': '10.0.0.1',
};
type Name = Exclude<keyof TemplateOptions, 'pxe.ipxe_timeout' | 'pxe.pxe_config_template_by_arch' | 'pxe.tftp_server'>;
const fileWith = (text: string): string => {
  const path = join(folder, `template-${Math.random()}`);
  writeFileSync(path, text);
  return path;
};
const templates = (given: Partial<Record<Name, string>>, more: Partial<TemplateOptions> = {}, cpu?: string) =>
  loadBootTemplates(
    { ...OPTIONS, ...Object.fromEntries(Object.entries(given).map(([name, text]) => [name, fileWith(text)])), ...more },
    async () => cpu,
  );
const ipxe = async (text: string, record = boot()): Promise<string | undefined> =>
  (await templates({ 'pxe.ipxe_config_template': text })).ipxe(record, URL);

it('without templates, the scripts of the server are used', async () => {
  const none = await templates({});
  expect([none.ipxe(boot(), URL), await none.pxe('grub', boot()), none.ipxeStart(URL), none.grubStart()]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

it.each([
  ['{{ pxe_options.deployment_aki_path }}', `${URL}/boot/${TOKEN}/kernel`],
  ['{{ pxe_options.deployment_ari_path }} {{ pxe_options.initrd_filename }}', `${URL}/boot/${TOKEN}/ramdisk ramdisk`],
  ['{{ pxe_options.pxe_append_params }}', 'nofb said="by the row"'],
  ['{% if pxe_options.ipxe_timeout > 0 %}--timeout {{ pxe_options.ipxe_timeout }} {% endif %}x', '--timeout 7000 x'],
  ['{{ pxe_options.linux_cmd|default("linux", true) }}', 'linux'],
  ['[{{ pxe_options.unknown }}]', '[]'],
  ['a\n{%- if true %}\nb\n{%- endif %}\n', 'a\nb'],
  ['{% for item in ["x", "y"] %}{{ loop.index }}{{ item }}{% endfor %}', '1x2y'],
  ['{# a comment #}x', 'x'],
  ['{% set a = 1 %}{{ a + 1 }}', '2'],
  ['#!ipxe\ngoto deploy\n:deploy\n', '#!ipxe\ngoto deploy\n:deploy'],
])('evaluates %j', async (text, expected) => {
  expect(await ipxe(text)).toBe(expected);
});

it('selects the label of the purpose, as Ironic does', async () => {
  const text = '#!ipxe\ngoto deploy\n:deploy\nboot\n  goto deploy\n';
  expect(await ipxe(text, boot({ purpose: 'disk' }))).toBe('#!ipxe\ngoto boot_whole_disk\n:deploy\nboot\n  goto deploy');
  expect(await ipxe(text, boot({ purpose: 'instance' }))).toBe('#!ipxe\ngoto boot_ramdisk\n:deploy\nboot\n  goto deploy');
  expect(await ipxe('{{ pxe_options.boot_iso_url }}', boot({ purpose: 'instance', files: { boot_iso: '/i' } }))).toBe(
    `${URL}/boot/${TOKEN}/boot_iso`,
  );
  const pxe = await templates({ 'pxe.pxe_config_template': 'default deploy\n', 'pxe.uefi_pxe_config_template': 'set default=deploy\n' });
  expect(await pxe.pxe('pxelinux', boot({ purpose: 'instance' }))).toBe('default boot_ramdisk');
  expect(await pxe.pxe('grub', boot({ purpose: 'instance' }))).toBe('set default=boot_ramdisk');
});
it('leaves volumes to the server, and the disk to it with PXELINUX and GRUB', async () => {
  expect(await ipxe('x', boot({ purpose: 'volume' }))).toBeUndefined();
  const pxe = await templates({ 'pxe.pxe_config_template': 'x' });
  expect(await pxe.pxe('pxelinux', boot({ purpose: 'disk' }))).toBeUndefined();
});
it('writes kernel arguments in the syntax of each boot loader', async () => {
  const record = boot({ kernel_args: 'selinux=0 troubleshoot=0 text a="b c" || shell' });
  const text = '{{ pxe_options.pxe_append_params }}';
  const all = await templates({ 'pxe.ipxe_config_template': text, 'pxe.uefi_pxe_config_template': text });
  expect(all.ipxe(record, URL)).toBe('a="b c" shell');
  expect(await all.pxe('grub', record)).toBe("'a=b c' '||' 'shell'");
});
it('does not evaluate what the arguments of a node contain', async () => {
  const record = boot({ kernel_args: 'x={{ 7 * 7 }}' });
  expect(await ipxe('{{ pxe_options.pxe_append_params }}', record)).toBe('x={{ 7 * 7 }}');
});
it('uses the template of the architecture of the node', async () => {
  const byArch = { 'pxe.pxe_config_template_by_arch': { aarch64: fileWith('arm {{ pxe_options.deployment_aki_path }}') } };
  const usual = { 'pxe.uefi_pxe_config_template': 'usual' };
  expect(await (await templates(usual, byArch, 'aarch64')).pxe('grub', boot())).toBe(`arm /boot/${TOKEN}/kernel`);
  expect(await (await templates(usual, byArch, 'x86_64')).pxe('grub', boot())).toBe('usual');
  expect(await (await templates(usual, byArch)).pxe('grub', boot())).toBe('usual');
});
it('renders the first scripts of all machines', async () => {
  const first = await templates(
    {
      'pxe.ipxe_boot_script':
        'chain {{ ipxe_for_mac_uri }}${mac:hexhyp}{% if ipxe_fallback_script %} || chain {{ ipxe_fallback_script }}{% endif %}',
      'pxe.initial_grub_template': 'source {{ tftp_root }}/$net_default_mac.conf',
    },
    { 'pxe.ipxe_fallback_script': 'inspector.ipxe' },
  );
  expect(first.ipxeStart(URL)).toBe(`chain ${URL}/ipxe/\${mac:hexhyp} || chain inspector.ipxe`);
  expect(first.grubStart()).toBe('source /$net_default_mac.conf');
});

it.each([
  ['an unknown tag', '{% include "x" %}'],
  ['an open tag', '{% if true %}'],
  ['access to the program', '{{ "".constructor.constructor("return process")() }}'],
  ['a range', '{% for i in range(1000000000) %}{{ i }}{% endfor %}'],
  ['endless recursion', '{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}'],
  ['too much output', `{% set a = "${'a'.repeat(1000)}" %}${'{{ a }}'.repeat(100)}`],
  ['too many bytes', 'a'.repeat(65_537)],
])('a template with %s stops the start', async (_, text) => {
  await expect(ipxe(text)).rejects.toThrow(/^\[pxe\]ipxe_config_template = \S+: ./);
});
it('a missing file stops the start', async () => {
  await expect(templates({}, { 'pxe.ipxe_config_template': '/nonexistent/template' })).rejects.toThrow(
    /^\[pxe\]ipxe_config_template = \/nonexistent\/template: ENOENT/,
  );
});
it.each(['{{ "".constructor }}', '{{ pxe_options.constructor }}', '{{ pxe_options.__proto__ }}'])(
  'a template sees nothing of the program: %s',
  async (text) => {
    expect(await ipxe(text).catch(() => '')).toBe('');
  },
);
