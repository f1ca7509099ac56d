/** The firmware of NVIDIA's network cards: the same commands in the same order as ironic-python-agent, and the same errors. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AgentError } from '../../../model/agent/errors';
import { silentLog } from '../../../model/log';
import type { Machine } from '../../../ramdisk-agent/machine';
import { updateImages } from '../../../ramdisk-agent/managers/nvidia-image';
import { updateSettings } from '../../../ramdisk-agent/managers/nvidia-settings';
import { programs } from '../../lab/support/venv';
import { folder } from '../../ramdisk-agent/support';
import { inPython } from '../random-cases';

interface Case {
  readonly name: string;
  readonly step: 'update_nvidia_nic_firmware_image' | 'update_nvidia_nic_firmware_settings';
  readonly argument: unknown;
  readonly answers: Readonly<Record<string, string>>;
}
interface Ran {
  readonly error?: string;
  readonly ran: readonly string[];
}

const place = folder();
const FIRMWARE = join(place, 'fw1.bin');
writeFileSync(FIRMWARE, 'firmware');
const SUM = createHash('sha256').update('firmware').digest('hex');
const image = (more: object = {}) => ({
  url: `file://${FIRMWARE}`,
  checksum: SUM,
  checksumType: 'sha256',
  componentFlavor: 'MT_1',
  version: '24.35.1012',
  ...more,
});

const CARDS =
  '0000:03:00.0 0200: 15b3:1017\n0000:03:00.1 0200: 15b3:1017 (rev 01)\n0000:04:00.0 0207: 15b3:101B\n0000:05:00.0 0c05: 15b3:9999\n';
const query = (version: string, psid: string, running?: string): string =>
  `Image type: FS4\nFW Version:            ${version}\n${running === undefined ? '' : `FW Version(Running):   ${running}\n`}PSID:                  ${psid}\n`;
const CONFIGURATION = `
Device #1:
----------
Device type:    ConnectX5
Configurations:                              Next Boot
         NUM_OF_VFS                          8
         SRIOV_EN                            True(1)
         LINK_TYPE_P1                        ETH(2)
         HOST_CHAINING_DESCRIPTORS           Array[0..7]
`;
const HELP = 'NUM_OF_VFS SRIOV_EN LINK_TYPE_P1 HOST_CHAINING_DESCRIPTORS PF_TOTAL_SF';
const base = (running?: string): Readonly<Record<string, string>> => ({
  'lspci -Dn -d 15b3:': CARDS,
  'mstflint -d 0000:03:00.0 -qq query': query('24.34.1002', 'MT_1', running),
  'mstflint -d 0000:03:00.1 -qq query': query('24.34.1002', 'MT_1', running),
  'mstflint -d 0000:04:00.0 -qq query': query('24.35.1012', 'MT_2'),
  'mstflint -i fw1.bin query': query('24.35.1012', 'MT_1'),
  ...Object.fromEntries(
    ['0000:03:00.0', '0000:03:00.1', '0000:04:00.0'].flatMap((card) => [
      [`mstconfig -d ${card} q`, CONFIGURATION],
      [`mstconfig -d ${card} i`, HELP],
    ]),
  ),
});
const IMAGE = 'update_nvidia_nic_firmware_image';
const SETTINGS = 'update_nvidia_nic_firmware_settings';
const one = (name: string, step: Case['step'], argument: unknown, answers = base()): Case => ({ name, step, argument, answers });
const settings = (more: object) => [{ deviceID: '1017', ...more }];
const CASES: readonly Case[] = [
  one('an image for a card with another version', IMAGE, [image()]),
  one('a card that runs something else than it has is reset first', IMAGE, [image()], base('24.33.1000')),
  one('an image for a model that is not there', IMAGE, [image({ componentFlavor: 'MT_9' })]),
  one('two images for a model', IMAGE, [image(), image()]),
  one('no list', IMAGE, {}),
  one('an image without a checksum', IMAGE, [image({ checksum: '' })]),
  one('an unknown checksum', IMAGE, [image({ checksumType: 'crc' })]),
  one('a wrong checksum', IMAGE, [image({ checksum: '0'.repeat(64) })]),
  one('an image of another model', IMAGE, [image()], { ...base(), 'mstflint -i fw1.bin query': query('24.35.1012', 'MT_7') }),
  one('an image of another version', IMAGE, [image()], { ...base(), 'mstflint -i fw1.bin query': query('1.2.3', 'MT_1') }),
  one('a URL of another kind', IMAGE, [image({ url: 'ftp://x/fw1.bin' })]),
  one(
    'settings of the card and of its functions',
    SETTINGS,
    settings({ globalConfig: { NUM_OF_VFS: 127, SRIOV_EN: false }, function1Config: { LINK_TYPE_P1: 'IB' } }),
  ),
  one('settings that the card has', SETTINGS, settings({ globalConfig: { NUM_OF_VFS: 8, LINK_TYPE_P1: 'ETH' } })),
  one(
    'a list in the firmware',
    SETTINGS,
    settings({ globalConfig: { 'HOST_CHAINING_DESCRIPTORS[3]': 5, 'HOST_CHAINING_DESCRIPTORS[1..3]': 6 } }),
  ),
  one('a place that the list does not have', SETTINGS, settings({ globalConfig: { 'HOST_CHAINING_DESCRIPTORS[9]': 5 } })),
  one('a setting that the program does not know', SETTINGS, settings({ globalConfig: { NO_SUCH: 1 } })),
  one('a setting that the firmware does not know', SETTINGS, settings({ globalConfig: { PF_TOTAL_SF: 1 } })),
  one('settings without a device', SETTINGS, [{ globalConfig: {} }]),
  one('two settings for a device', SETTINGS, [...settings({ globalConfig: { NUM_OF_VFS: 1 } }), ...settings({})]),
  one('settings for a device that is not there', SETTINGS, [{ deviceID: '1021', globalConfig: { NUM_OF_VFS: 1 } }]),
  one('a card that needs a reset before its settings', SETTINGS, settings({ globalConfig: { NUM_OF_VFS: 16 } }), base('24.33.1000')),
  one('no list of settings', SETTINGS, 'x'),
];

async function ours({ step, argument, answers }: Case): Promise<Ran> {
  const ran: string[] = [];
  const machine = {
    run: async (program: string, args: readonly string[]) => {
      const line = [program, ...args.map((word) => (word.startsWith(place) ? basename(word) : word))].join(' ');
      ran.push(line);
      return answers[line] ?? '';
    },
    temporary: place,
    log: silentLog,
    fetching: { trust: { insecure: false }, timeoutMs: 1000, signal: new AbortController().signal },
    // Their option, which the lookup sets, is off in this test.
    state: { node: {}, config: { agent_md5_checksum_enable: false } },
  } as unknown as Machine;
  try {
    await (step === IMAGE ? updateImages(machine, { images: argument }) : updateSettings(machine, { settings: argument }));
  } catch (error) {
    if (error instanceof AgentError) return { error: error.type, ran };
    throw error;
  }
  return { ran };
}

let theirs: readonly Ran[];
beforeAll(async () => {
  const python = await programs('agent-functions', ['ironic-python-agent==13.0.0']);
  theirs = await inPython<Ran>(python, join(__dirname, 'nvidia-firmware.py'), CASES, 300_000);
}, 900_000);

/** How often the state of a card is read is not compared, but what changes a card is. */
const changing = (ran: readonly string[]): readonly string[] => ran.filter((line) => / (?:burn|reset|set .*)$/.test(line));
it.each(CASES)('$name', async (row) => {
  const [their, our] = [theirs[CASES.indexOf(row)]!, await ours(row)];
  expect([our.error, changing(our.ran)]).toEqual([their.error, changing(their.ran)]);
});
it('cases change cards', () => expect(theirs.filter(({ ran }) => changing(ran).length > 0).length).toBeGreaterThanOrEqual(5));
