/** Habits with firmware files that are sent to the service. */
import type { Around, Asked, Habit } from '../protocol/habits';
import { refuse } from '../protocol/messages';
import { ROOT, type ResourceBody, type ServiceAnswer } from '../protocol/routes';
import { pushedUpdate } from '../resources/update';
import { isLoggedIn, problem, sentBody, shows, together, without } from './change';

const SERVICE = `${ROOT}/UpdateService`;
const UPLOAD = `${SERVICE}/upload`;
/** The parts of a form, by their names. The last one may be longer. */
function partsOf(type: string, head: Buffer): Readonly<Record<string, string>> {
  const [, boundary] = /^multipart\/form-data; boundary=([\w-]{1,70})$/.exec(type) ?? [];
  if (boundary === undefined) return {};
  const parts = head.toString('latin1').split(`--${boundary}`).slice(1);
  return Object.fromEntries(
    parts.flatMap((part) => {
      const [, name, content] = /^\r\nContent-Disposition: form-data; name="(\w+)".*?\r\n\r\n(.*)$/s.exec(part) ?? [];
      return name === undefined ? [] : [[name, content!.replace(/\r\n$/, '')]];
    }),
  );
}
const jsonOf = (text: string | undefined): unknown => {
  try {
    return JSON.parse(text ?? '') as unknown;
  } catch {
    return undefined;
  }
};
/** Takes files at UPLOAD. @param check refuses a form */
const takesFiles =
  (isForm: boolean, check: (parts: Readonly<Record<string, string>>) => ServiceAnswer | undefined = () => undefined): Around =>
  async (asked, next, context) => {
    if (asked.method !== 'POST' || asked.path !== UPLOAD || !isLoggedIn(context, asked)) return next(asked);
    const { head } = await asked.file();
    const parts = isForm ? partsOf(String(asked.headers['content-type']), head) : {};
    const refused = isForm && jsonOf(parts['UpdateParameters']) === undefined ? refuse('UnrecognizedRequestBody') : check(parts);
    return refused ?? pushedUpdate(context.service, context.system, isForm ? Buffer.from(parts['UpdateFile'] ?? '', 'latin1') : head);
  };
const withoutFetch = (more: ResourceBody): Around =>
  together(
    shows('UpdateService', (body) => ({ ...without(body, 'Actions'), ...more })),
    async (asked, next) => (asked.path.endsWith('.SimpleUpdate') ? refuse('ResourceMissingAtURI', asked.path) : next(asked)),
  );
const lacks = (name: string): ServiceAnswer =>
  problem(400, 'Base.1.8.ActionParameterMissing', `The update requires ${name} in OemParameters.`);
const isClaim = (asked: Asked): boolean => asked.method === 'PATCH' && asked.path === SERVICE;

export const UPDATE_HABITS = {
  'update-by-multipart': {
    about: 'There is no SimpleUpdate: firmware is sent as a form (MultipartHttpPushUri).',
    source: 'openbmc/bmcweb redfish-core/lib/update_service.hpp',
    around: together(withoutFetch({ MultipartHttpPushUri: UPLOAD }), takesFiles(true)),
  },
  'update-by-multipart-ami': {
    about: 'Firmware is sent as a form, whose OemParameters have an ImageType.',
    source: 'xcat2/confluent aiohmi/redfish/oem/ami/megarac.py; NVIDIA/nv-redfish pull request 230',
    around: together(
      withoutFetch({ MultipartHttpPushUri: UPLOAD }),
      shows('ServiceRoot', (body) => ({ ...body, Oem: { Ami: {} } })),
      takesFiles(true, ({ OemParameters: oem }) => {
        const type = (jsonOf(oem) as ResourceBody | undefined)?.['ImageType'];
        return type === 'BIOS' || type === 'BMC' ? undefined : lacks('ImageType');
      }),
    ),
  },
  'update-by-push': {
    about: 'There is no SimpleUpdate: firmware is sent to HttpPushUri, after HttpPushUriTargetsBusy was set.',
    source: 'bmc-toolbox/bmclib providers/lenovo/firmware_push.go',
    around: together(
      async (asked, next, { memory }) => {
        if (!isClaim(asked)) return next(asked);
        const { HttpPushUriTargetsBusy: busy } = await sentBody(asked);
        if (typeof busy !== 'boolean') return refuse('PropertyValueTypeError', String(busy), 'HttpPushUriTargetsBusy');
        memory.set('busy', busy);
        return { status: 204 };
      },
      withoutFetch({ HttpPushUri: UPLOAD }),
      shows('UpdateService', (body, context) => ({ ...body, HttpPushUriTargetsBusy: context.memory.get('busy') === true })),
      async (asked, next, context) =>
        asked.path === UPLOAD && isLoggedIn(context, asked) && context.memory.get('busy') !== true
          ? problem(503, 'Base.1.8.ResourceInUse', 'HttpPushUriTargetsBusy must be set before a file is sent.')
          : next(asked),
      takesFiles(false),
    ),
  },
} as const satisfies Readonly<Record<string, Habit>>;
