/** The event log of a machine (DSP2046 LogService): what its firmware and its BMC note. */
import { change, type Hardware } from '../../hardware/hardware';
import { refuseAction } from '../protocol/checks';
import { ROOT, collection, collectionRow, dateTime, link, resource, type Row, type Shown, type SystemAt } from '../protocol/routes';

const PATH = '/Systems/{system}/LogServices';
const CLEAR = 'LogService.ClearLog';
/** Entries kept; the oldest go. */
const MOST = 256;

export interface LogState {
  readonly next: number;
  readonly entries: readonly { readonly id: string; readonly at: number; readonly text: string }[];
}
export function note(hardware: Hardware, at: number, text: string): void {
  const { next, entries } = hardware.state.log ?? { next: 1, entries: [] };
  change(hardware, { log: { next: next + 1, entries: [...entries.slice(1 - MOST), { id: String(next), at, text }] } });
}
const entriesOf = ({ system }: SystemAt): LogState['entries'] => system.hardware.state.log?.entries ?? [];

const shown = (path: string, { id, at, text }: LogState['entries'][number]): Shown =>
  resource(path, 'LogEntry', id, `Log entry ${id}`, { EntryType: 'Event', Severity: 'OK', Created: dateTime(at), Message: text });

export const LOG_ROWS: readonly Row<SystemAt>[] = [
  collectionRow(PATH, 'LogService', () => ['SEL']),
  {
    path: `${PATH}/SEL`,
    get: ({ path, service }) =>
      resource(path, 'LogService', 'SEL', 'System event log', {
        ServiceEnabled: true,
        LogEntryType: 'Event',
        MaxNumberOfRecords: MOST,
        OverWritePolicy: 'WrapsWhenFull',
        DateTime: dateTime(service.clock.now()),
        DateTimeLocalOffset: '+00:00',
        Status: { State: 'Enabled', Health: 'OK' },
        Entries: link(`${path}/Entries`),
        Actions: { [`#${CLEAR}`]: { target: `${ROOT}${path}/Actions/${CLEAR}` } },
      }),
  },
  {
    path: `${PATH}/SEL/Entries`,
    // The members of this collection stand in it whole (OData.AutoExpand in its schema).
    get: (at) => {
      const entries = entriesOf(at);
      const members = entries.map((entry) => shown(`${at.path}/${entry.id}`, entry));
      return { ...collection(at.path, 'LogEntry', []), 'Members@odata.count': members.length, Members: members };
    },
  },
  {
    path: `${PATH}/SEL/Entries/{entry}`,
    get: (at) => {
      const found = entriesOf(at).find(({ id }) => id === at.values[1]);
      return found && shown(at.path, found);
    },
  },
  {
    path: `${PATH}/SEL/Actions/${CLEAR}`,
    post: ({ system: { hardware } }, body) => {
      const refused = refuseAction(CLEAR, body, { LogEntriesETag: () => undefined });
      if (!refused) change(hardware, { log: { next: hardware.state.log?.next ?? 1, entries: [] } });
      return refused;
    },
  },
];
