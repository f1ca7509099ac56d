/** Step update_nvidia_nic_firmware_image: writes firmware to the network cards of a model that have another version. */
import { createHash } from 'node:crypto';
import { copyFile, mkdtemp, open as openFile, rm } from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import { basename, join } from 'node:path';
import { AgentError } from '../../model/agent/errors';
import { isObject } from '../../model/json';
import type { JsonObject } from '../../model/records';
import type { Machine } from '../machine';
import { open } from '../system/http';
import type { Run } from '../system/run';
import { type Card, cardOf, checkTools, findCards, firmwareFacts, queryCard, resetCard, toolOf } from './nvidia-devices';

interface FirmwareImage {
  readonly url: string;
  readonly checksum: string;
  readonly checksumType: string;
  readonly componentFlavor: string;
  readonly version: string;
}
const MEMBERS = ['url', 'checksum', 'checksumType', 'componentFlavor', 'version'] as const;
const [MAX_IMAGES, MAX_TEXT] = [100, 2000];
/** Bytes. */
const MAX_FIRMWARE = 512 * 2 ** 20;

function imagesIn(given: unknown, md5Allowed: boolean): readonly FirmwareImage[] {
  if (!Array.isArray(given) || given.length > MAX_IMAGES)
    throw new AgentError('InvalidFirmwareImageConfig', `The images must be a list of images, ${JSON.stringify(given)?.slice(0, 300)}`);
  const algorithms = ['sha256', 'sha512', ...(md5Allowed ? ['md5'] : [])];
  for (const image of given as readonly unknown[]) {
    const isWhole =
      isObject(image) && MEMBERS.every((name) => typeof image[name] === 'string' && image[name] !== '' && image[name].length <= MAX_TEXT);
    if (!isWhole)
      throw new AgentError(
        'InvalidFirmwareImageConfig',
        `Invalid parameters for image ${JSON.stringify(image).slice(0, 300)},please provide the following parameters url, checksum, checksumType, componentFlavor, version`,
      );
    const { checksumType: type, url } = image as unknown as FirmwareImage;
    if (!algorithms.includes(type))
      throw new AgentError(
        'InvalidFirmwareImageConfig',
        `Checksum algorithm ${type} is not supported for image ${url}. Supported algorithms are: sha256, sha512`,
      );
  }
  return given as readonly FirmwareImage[];
}

/** Model → its image. */
function imagesFor(cards: readonly Card[], images: readonly FirmwareImage[]): ReadonlyMap<string, FirmwareImage> {
  const found = new Map<string, FirmwareImage>();
  for (const image of images) {
    if (!cards.some(({ psid }) => psid === image.componentFlavor)) continue;
    if (found.has(image.componentFlavor))
      throw new AgentError('DuplicateComponentFlavor', `Duplicate componentFlavor ${image.componentFlavor}`);
    found.set(image.componentFlavor, image);
  }
  return found;
}

async function fetchFirmware({ fetching }: Machine, url: string, file: string): Promise<void> {
  const scheme = URL.canParse(url) ? new URL(url).protocol : '';
  if (scheme === 'file:') return copyFile(new URL(url), file);
  if (scheme !== 'http:' && scheme !== 'https:')
    throw new AgentError(
      'InvalidURLScheme',
      `Firmware URL scheme ${scheme.replace(':', '')} is not supported.The supported firmware URL schemes are(http://, https://, file://)`,
    );
  const { answer } = await open({ ...fetching, method: 'GET', url });
  if (answer.statusCode !== 200) {
    answer.destroy();
    throw new AgentError('ImageDownloadError', `Received status code ${answer.statusCode} from ${url}, expected 200`);
  }
  const target = await openFile(file, 'w');
  let size = 0;
  try {
    for await (const part of answer as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > MAX_FIRMWARE) throw new AgentError('ImageDownloadError', `${url} has more than ${MAX_FIRMWARE} bytes`);
      await target.writeFile(part);
    }
  } finally {
    await target.close();
  }
}
async function checksumOf(file: string, algorithm: string): Promise<string> {
  const hash = createHash(algorithm);
  for await (const part of createReadStream(file) as AsyncIterable<Buffer>) hash.update(part);
  return hash.digest('hex');
}
/** Throws if the file is not what the image says. */
async function checkFirmware(tool: Run, file: string, image: FirmwareImage): Promise<void> {
  const found = await checksumOf(file, image.checksumType);
  if (found !== image.checksum.toLowerCase())
    throw new AgentError('MismatchChecksumError', `Mismatch provided checksum ${image.checksum} for image ${image.url}`);
  const { psid, version } = firmwareFacts(await tool('mstflint', ['-i', file, 'query']));
  if (psid !== image.componentFlavor)
    throw new AgentError(
      'MismatchComponentFlavor',
      `The provided psid ${image.componentFlavor} does not match the image psid ${psid ?? 'None'}`,
    );
  if (version !== image.version)
    throw new AgentError(
      'MismatchFWVersion',
      `The provided firmware version ${image.version} does not match image firmware version ${version ?? 'None'}`,
    );
}

/** @returns the cards that got firmware @throws AgentError, before a card is written to, for a list that is wrong */
export async function updateImages(machine: Machine, { images: given }: JsonObject): Promise<JsonObject> {
  const images = imagesIn(given, machine.state.config['agent_md5_checksum_enable'] !== false);
  const tool = toolOf(machine);
  await checkTools(tool);
  const cards = await findCards(tool);
  const wanted = imagesFor(cards, images);
  const seen = new Set<string>();
  const updated: JsonObject[] = [];
  for (const card of cards) {
    const image = wanted.get(card.psid ?? '');
    if (!image || seen.has(cardOf(card))) continue;
    seen.add(cardOf(card));
    const folder = await mkdtemp(join(machine.temporary, 'firmware-'));
    try {
      const file = join(folder, basename(new URL(image.url).pathname) || 'firmware');
      await fetchFirmware(machine, image.url, file);
      await checkFirmware(tool, file, image);
      const { version, running } = await queryCard(tool, card.address);
      machine.log.info(`Card ${card.address} has firmware ${version}, the image ${image.version}`);
      if (version === image.version) continue;
      if (running !== undefined) await resetCard(tool, card.address);
      await tool('mstflint', ['-d', card.address, '-i', file, '-y', 'burn']);
      updated.push({ card: card.address, from: version, to: image.version });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  return { updated };
}
