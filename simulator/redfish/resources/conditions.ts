/** The faults `parts` and `stopped` as changes of resources: what the event service sends, and what the log gets. */
import type { Faults } from '../../bmc/faults';
import { logEvent } from '../../hardware/event-log';
import { conditionsOf, healthIn } from '../../hardware/parts';
import { driveName, subsystemsOf } from '../../hardware/volumes';
import { ROOT, dateTime, type ResourceBody, type Service, type System } from '../protocol/routes';

const textsOf = ({ parts = [], stopped = [] }: Faults): readonly string[] => [...parts, ...stopped.map((fan) => `${fan}.failed`)];
const partOf = (text: string): string => text.slice(0, text.lastIndexOf('.'));

/** The resource that shows the part, below the service root. */
function originOf({ name, description }: System, part: string, texts: readonly string[]): string {
  const number = part.replace(/^[A-Za-z]{1,8}/, '') || '1';
  if (part.startsWith('Fan')) return `/Chassis/${name}/Thermal#/Fans/${Number(number) - 1}`;
  if (part.startsWith('PSU')) return `/Chassis/${name}/Power#/PowerSupplies/0`;
  if (part.startsWith('DIMM')) return `/Systems/${name}/Memory/${number}`;
  if (part === 'P12V') return `/Chassis/${name}/Sensors/P12V`;
  if (part.startsWith('CPU'))
    return texts.some((text) => /^CPU\d+\.(?:hot|warm)$/.test(text))
      ? `/Chassis/${name}/Sensors/${part}Temp`
      : `/Systems/${name}/Processors/1`;
  const storage = subsystemsOf(description).find(({ drives }) => drives.some((drive) => driveName(drive) === part));
  return storage ? `/Systems/${name}/Storage/${storage.id}/Drives/${part}` : `/Systems/${name}`;
}
/** Writes the changes into the log. @returns the events */
export function eventsOfChange(service: Service, system: System, before: Faults, after: Faults): readonly ResourceBody[] {
  const [was, is] = [textsOf(before), textsOf(after)];
  const changed = [...is.filter((text) => !was.includes(text)), ...was.filter((text) => !is.includes(text))];
  const now = service.clock.now();
  return [...new Set(changed.map(partOf))].map((part) => {
    const severity = healthIn(conditionsOf(is, part));
    const origin = `${ROOT}${originOf(system, part, changed)}`;
    const message = `ResourceEvent.1.3.ResourceStatusChanged${severity}`;
    const text = `The health of ${part} has changed to ${severity}.`;
    logEvent(system.hardware, now, text, { severity, message, origin });
    return {
      MemberId: '0',
      EventType: 'StatusChange',
      EventId: String(now),
      EventTimestamp: dateTime(now),
      Severity: severity,
      MessageSeverity: severity,
      Message: text,
      MessageId: message,
      MessageArgs: [part, severity],
      OriginOfCondition: { '@odata.id': origin },
    };
  });
}
