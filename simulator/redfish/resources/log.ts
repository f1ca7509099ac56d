/** LogService (DSP2046): a machine's event log. */
import { MAX_LOG_ENTRIES, clearLog, logEntries, type LogEntry } from '../../hardware/event-log';
import { refuseAction } from '../protocol/checks';
import {
  ROOT,
  collection,
  collectionRoute,
  dateTime,
  link,
  resource,
  type Route,
  type ResourceBody,
  type SystemContext,
} from '../protocol/routes';

const PATH = '/Systems/{system}/LogServices';
const CLEAR = 'LogService.ClearLog';
const show = (path: string, { id, at, text, about }: LogEntry): ResourceBody =>
  resource(path, 'LogEntry', id, `Log entry ${id}`, {
    EntryType: 'Event',
    Severity: about?.severity ?? 'OK',
    Created: dateTime(at),
    Message: text,
    ...(about && { MessageId: about.message, Links: { OriginOfCondition: { '@odata.id': about.origin } } }),
  });

export const LOG_ROUTES: readonly Route<SystemContext>[] = [
  collectionRoute(PATH, 'LogService', () => ['SEL']),
  {
    path: `${PATH}/SEL`,
    get: ({ path, service }) =>
      resource(path, 'LogService', 'SEL', 'System event log', {
        ServiceEnabled: true,
        LogEntryType: 'Event',
        MaxNumberOfRecords: MAX_LOG_ENTRIES,
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
    // This collection contains whole members instead of links (OData.AutoExpand in its schema).
    get: (at) => {
      const entries = logEntries(at.system.hardware);
      const members = entries.map((entry) => show(`${at.path}/${entry.id}`, entry));
      return { ...collection(at.path, 'LogEntry', []), 'Members@odata.count': members.length, Members: members };
    },
  },
  {
    path: `${PATH}/SEL/Entries/{entry}`,
    get: (at) => {
      const found = logEntries(at.system.hardware).find(({ id }) => id === at.values[1]);
      return found && show(at.path, found);
    },
  },
  {
    path: `${PATH}/SEL/Actions/${CLEAR}`,
    post: ({ system: { hardware } }, body) => {
      const refused = refuseAction(CLEAR, body, { LogEntriesETag: () => undefined });
      if (!refused) clearLog(hardware);
      return refused;
    },
  },
];
