/** Habits with writes: those that answer success and keep nothing, and the forms of errors. */
import { isObject } from '../../../model/json';
import type { Around, Habit } from '../protocol/habits';
import type { ResourceBody, ServiceAnswer } from '../protocol/routes';
import { BIOS_SETTINGS, INSERT, RESET, SYSTEM, bootOf, instead } from './change';

type Messages = readonly ResourceBody[];
/** Gives errors another form. */
const errorsAs =
  (form: (error: ResourceBody, messages: Messages) => ResourceBody): Around =>
  async (asked, next) => {
    const answer = await next(asked);
    const error = answer.body?.['error'];
    if (!isObject(error)) return answer;
    return { ...answer, body: form(error, (error['@Message.ExtendedInfo'] ?? []) as Messages) };
  };
const DONE: ServiceAnswer = { status: 200, body: {} };
const KEPT: ServiceAnswer = { status: 204 };

export const WRITE_HABITS = {
  'boot-not-kept': {
    about: 'A PATCH of the boot settings gets 200, and changes nothing.',
    source: 'bmc-toolbox/bmclib pull request 459 (Supermicro AS-1015CS-TNR-EU)',
    around: instead('PATCH', SYSTEM, DONE, (sent) => Object.keys(bootOf(sent)).length > 0),
  },
  'bios-not-kept': {
    about: 'A PATCH of the BIOS settings gets 204, and changes nothing.',
    source: 'xcat2/confluent pull request 274',
    around: instead('PATCH', BIOS_SETTINGS, KEPT),
  },
  'media-not-kept': {
    about: 'The insertion of a medium gets 204, and changes nothing.',
    source: 'openstack/ironic doc/source/admin/drivers/idrac.rst; dell/iDRAC-Redfish-Scripting 236',
    around: instead('POST', INSERT, KEPT),
  },
  'power-on-not-kept': {
    about: 'The first On gets 204, and the machine stays off.',
    source: 'redhat-performance/jetlag 245 (Dell R650, firmware 5.10.10.05)',
    around: instead('POST', RESET, KEPT, (sent, { count }) => sent['ResetType'] === 'On' && count('on') === 1),
  },
  'errors-as-object': {
    about: 'The ExtendedInfo of an error is an object, and no list.',
    source: 'openbmc/bmcweb redfish-core/lib; stmcginnis/gofish',
    around: errorsAs((error, [first = {}]) => ({ error: { ...error, '@Message.ExtendedInfo': first } })),
  },
  'errors-at-top': {
    about: 'The ExtendedInfo of an error is at the top of the body, without "error".',
    source: 'openbmc/bmcweb redfish-core/lib; stmcginnis/gofish',
    around: errorsAs((_, messages) => ({ '@Message.ExtendedInfo': messages })),
  },
  'errors-beside-property': {
    about: 'The ExtendedInfo of an error is beside the property that it is about.',
    source: 'openbmc/bmcweb redfish-core/lib; stmcginnis/gofish',
    around: errorsAs((_, messages) => {
      const args = (messages[0]?.['MessageArgs'] ?? []) as readonly string[];
      return { [`${args.find((arg) => /^[A-Za-z]+$/.test(arg)) ?? 'Property'}@Message.ExtendedInfo`]: messages };
    }),
  },
} as const satisfies Readonly<Record<string, Habit>>;
