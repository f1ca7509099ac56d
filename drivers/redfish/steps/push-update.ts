/** Firmware files that are sent to a service (DSP0266 §12.6.2), for services that fetch none, or not from a URL of the file's scheme. */
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { reasonOf } from '../../../model/errors';
import { newSecret } from '../../../model/masks';
import { withoutUrlCredentials } from '../../../model/urls';
import {
  RedfishError,
  actionOf,
  member,
  numberOf,
  patchResource,
  readResource,
  textOf,
  type RedfishAnswer,
  type RedfishResource,
  type RedfishUpload,
} from '../../../wire/redfish';
import { withoutEndSlashes } from '../../../wire/urls';
import { openUrl } from '../../common/images';
import { urlForBmc, withoutTokens } from '../../common/media';
import type { Task } from '../../interfaces';
import { quirksIn, type Row } from '../quirks';
import type { SystemView } from '../target';

interface PushQuirks {
  /** Names of a component in OemParameters.ImageType, without which the service takes no file; in the order of preference. */
  readonly imageTypes?: Readonly<Record<string, readonly string[]>>;
}
const ROWS: readonly Row<PushQuirks>[] = [
  {
    maker: 'ami',
    quirks: { imageTypes: { bios: ['BIOS'], bmc: ['BMC', 'HPM'] } },
    source: 'xcat2/confluent aiohmi/redfish/oem/ami/megarac.py, NVIDIA/nv-redfish pull request 230',
  },
];

interface FirmwareFile {
  /** As BMCs get it. */
  readonly url: string;
  readonly component: string | undefined;
  /** The systems to update, of a service that has several. */
  readonly targets: readonly string[];
}
/** Milliseconds for sending a file: BMCs are slow. */
const SENDING_MS = 1_800_000;

/** The URL by which this server reads what its boot service serves for BMCs. */
function ownUrl(task: Task, url: string): string {
  const base = `${urlForBmc(task)}/boot/`;
  return url.startsWith(base) ? `${withoutEndSlashes(task.options['deploy.http_url'])}/boot/${url.slice(base.length)}` : url;
}
/** The file, which is read while it is sent. @param around what stands before and after it */
async function uploadOf(
  task: Task,
  url: string,
  type: string,
  [before, after]: readonly [string, string],
): Promise<{ readonly upload: RedfishUpload; readonly fileSize: number; readonly close: () => void }> {
  const open = (): ReturnType<typeof openUrl> =>
    openUrl(ownUrl(task, url), task).catch((error: unknown) => {
      task.signal.throwIfAborted();
      const why = withoutUrlCredentials(withoutTokens(reasonOf(error)));
      throw new RedfishError('protocol', `the firmware file cannot be read: ${why}`);
    });
  const first = await open();
  let unused: typeof first | undefined = first;
  const size = Buffer.byteLength(before) + first.size + Buffer.byteLength(after);
  const upload: RedfishUpload = {
    type,
    size,
    open: async () => {
      const source = unused ?? (await open());
      unused = undefined;
      return Readable.from(
        (async function* () {
          if (before !== '') yield Buffer.from(before);
          yield* source.body as AsyncIterable<Uint8Array>;
          if (after !== '') yield Buffer.from(after);
        })(),
        { objectMode: false },
      );
    },
  };
  return { upload, fileSize: first.size, close: () => void unused?.body.destroy() };
}

/** Reserves the service's updates while the file is sent, where it has a property for that (Lenovo demands it). */
async function reserved<T>({ ask }: SystemView, service: RedfishResource, work: () => Promise<T>): Promise<T> {
  const busy = member(service.body, 'HttpPushUriTargetsBusy');
  if (typeof busy !== 'boolean') return work();
  if (busy)
    throw new RedfishError('protocol', `another client has reserved the updates of ${service.path} (HttpPushUriTargetsBusy is true)`);
  const set = async (value: boolean): Promise<unknown> =>
    patchResource(ask, await readResource(ask, service.path), { HttpPushUriTargetsBusy: value });
  await set(true);
  try {
    return await work();
  } finally {
    // Some services free it themselves, and do not answer while they begin.
    await set(false).catch((error: unknown) => {
      if (!(error instanceof RedfishError)) throw error;
    });
  }
}
/** The maker's name of a component, among those that the service lists. */
async function imageType(system: SystemView, service: RedfishResource, names: readonly string[]): Promise<string | undefined> {
  const action = actionOf(service, '#UpdateService.SimpleUpdate');
  const listed = (await action?.allowed(system.ask, 'ImageType')) ?? (await action?.allowed(system.ask, 'UpdateComponent'));
  return names.find((name) => listed === undefined || listed.includes(name));
}

/** Sends a file to the service. @returns undefined: it takes none. Throws RedfishError. */
export async function pushUpdate(
  task: Task,
  system: SystemView,
  service: RedfishResource,
  { url, component, targets }: FirmwareFile,
): Promise<RedfishAnswer | undefined> {
  const [multipart, plain] = ['MultipartHttpPushUri', 'HttpPushUri'].map((name) => textOf(member(service.body, name)));
  const place = multipart ?? plain;
  if (place === undefined) return undefined;
  const { imageTypes } = await quirksIn(ROWS, task, system);
  const names = component === undefined ? undefined : imageTypes?.[component];
  const type = names && (await imageType(system, service, names));
  const boundary = `bloomery-${newSecret(task.random)}`;
  const part = (name: string, more: string, content: string): string =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\nContent-Type: ${content}\r\n\r\n`;
  const json = (name: string, body: object): string => `${part(name, '', 'application/json')}${JSON.stringify(body)}\r\n`;
  const fileName =
    basename(new URL(url).pathname)
      .replace(/[^\w.-]/g, '_')
      .slice(-120) || 'firmware.bin';
  const before =
    json('UpdateParameters', { Targets: targets }) +
    (type === undefined ? '' : json('OemParameters', { ImageType: type })) +
    part('UpdateFile', `; filename="${fileName}"`, 'application/octet-stream');
  const { upload, fileSize, close } = await (multipart === undefined
    ? uploadOf(task, url, 'application/octet-stream', ['', ''])
    : uploadOf(task, url, `multipart/form-data; boundary=${boundary}`, [before, `\r\n--${boundary}--\r\n`]));
  try {
    const most = numberOf(member(service.body, 'MaxImageSizeBytes'));
    if (most !== undefined && fileSize > most)
      throw new RedfishError(
        'protocol',
        `the firmware file has ${fileSize} bytes, and ${service.path} takes ${most} at most (MaxImageSizeBytes)`,
      );
    return await reserved(system, service, () => system.ask('POST', place, { upload, timeoutMs: SENDING_MS }));
  } finally {
    close();
  }
}
