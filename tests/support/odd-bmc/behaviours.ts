/** Odd behaviours of real BMCs, by name. Each row changes one thing of an otherwise correct service. */
import type { OddBehaviour, OddMemory, OddReply, OddRequest } from './odd-bmc';

type Body = Readonly<Record<string, unknown>>;
/** Applies `change` to every object in a JSON value, the innermost first. */
function everywhere(value: unknown, change: (one: Body) => Body): unknown {
  if (Array.isArray(value)) return value.map((item) => everywhere(item, change));
  if (typeof value !== 'object' || value === null) return value;
  return change(Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, everywhere(entry, change)])));
}
const everyBody = (change: (one: Body, asked: OddRequest) => Body): OddBehaviour => ({
  answer: (reply, asked) => ({ ...reply, body: everywhere(reply.body, (value) => change(value, asked)) }),
});
/** Changes the bodies of successful GETs of a path. */
const shows = (path: RegExp, change: (body: Body, memory: OddMemory) => Body): OddBehaviour => ({
  answer: (reply, { method, path: at }, memory) =>
    method === 'GET' && reply.status === 200 && path.test(at) ? { ...reply, body: change(reply.body as Body, memory) } : reply,
});
const refusal = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): OddReply => ({
  status,
  body,
  headers: { 'content-type': 'application/json', ...headers },
});
const plain = (status: number, id: string, message: string): OddReply =>
  refusal(status, { error: { code: id, message, '@Message.ExtendedInfo': [{ MessageId: id, Message: message }] } });
const without = (body: Body, ...names: readonly string[]): Body =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));

const SYSTEM = /\/Systems\/[^/]+$/;
const DRIVE = /\/VirtualMedia\/[^/]+$/;
const INSERT = /VirtualMedia\.InsertMedia$/;
const EJECT = /VirtualMedia\.EjectMedia$/;

/** Each session is good for four requests. */
const SESSION_REQUESTS = 4;
const sessionsEnd = (reply: OddReply): OddBehaviour => ({
  instead: ({ headers, path }, { count }) => {
    const token = headers['x-auth-token'];
    return token === undefined || path.includes('/Sessions/') || count(String(token)) <= SESSION_REQUESTS ? undefined : reply;
  },
});
/** Refuses an insertion without TransferProtocolType, in some form. */
const demandsProtocol = (body: unknown): OddBehaviour => ({
  instead: ({ path, body: sent }) =>
    INSERT.test(path) && (sent as Body | undefined)?.['TransferProtocolType'] === undefined ? refusal(400, body) : undefined,
});
/** The first two requests of each kind that change something are refused, and some reads too. */
const busyAtFirst = (reply: OddReply, methods: RegExp = /^(?:POST|PATCH|DELETE)$/): OddBehaviour => ({
  instead: ({ method, path, headers }, { count }) =>
    headers['x-auth-token'] !== undefined && methods.test(method) && !path.includes('/Sessions') && count(`${method} ${path}`) <= 2
      ? reply
      : undefined,
});
/** Ejects, answers an error, and shows the old medium in the next two reads. */
const staleEjection = (status: number): OddBehaviour => ({
  answer: (reply, { method, path }, { counts, count }) => {
    if (EJECT.test(path)) {
      counts.set('stale', 0);
      return plain(status, 'Base.1.8.GeneralError', 'The medium cannot be ejected.');
    }
    if (method !== 'GET' || !DRIVE.test(path) || !path.includes('/Cd') || !counts.has('stale') || count('stale') > 2) return reply;
    return { ...reply, body: { ...(reply.body as Body), Inserted: true, Image: 'http://old.example/stale.iso' } };
  },
});

/** Forms of HTTP that strict readers refuse. */
const head = (change: (lines: readonly string[]) => string): OddBehaviour => ({
  bytes: ({ status, headers, body }) => {
    const content = body === undefined ? '' : JSON.stringify(body);
    const lines = [
      `HTTP/1.1 ${status} Status`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      `Content-Length: ${Buffer.byteLength(content)}`,
      'Connection: close',
    ];
    return `${change(lines)}${content}`;
  },
});
const crlf = (lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`;

const RESETS: readonly string[] = ['ForceOn', 'ForceOff', 'GracefulShutdown', 'PowerCycle'];
const emptyCpu = { Id: 'CPU0', ProcessorType: 'CPU', Status: { State: 'Absent' } };
const withoutProcessorFields = (...names: readonly string[]): OddBehaviour =>
  shows(/\/Processors\/[^/]+$/, (body) => without(body, ...names));

export const BEHAVIOURS: Readonly<Record<string, OddBehaviour>> = {
  'nothing odd': {},
  // Sessions
  'answers 403 when a session has ended': sessionsEnd(plain(403, 'Base.1.8.InsufficientPrivilege', 'There are insufficient privileges.')),
  'answers 401 with broken chunks when a session has ended': {
    ...sessionsEnd(refusal(401, undefined)),
    bytes: ({ status, headers }, { path }) =>
      status === 401 && !path.endsWith('/Sessions') && headers['www-authenticate'] === undefined
        ? 'HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nbroken\r\n'
        : undefined,
  },
  // Tasks
  'answers 202 without a task to media': {
    answer: (reply, { path }) =>
      INSERT.test(path) || EJECT.test(path) ? (reply.status < 300 ? { status: 202, headers: {} } : reply) : reply,
  },
  'forgets a task when it is over': {
    answer: (reply, { path }) =>
      /\/Task(?:Monitor)?s\//.test(path) && (reply.body as Body | undefined)?.['TaskState'] === 'Completed'
        ? plain(404, 'Base.1.8.ResourceMissingAtURI', 'The resource was not found.')
        : reply,
  },
  // Errors in other forms
  'has its ExtendedInfo as an object': demandsProtocol({
    error: {
      code: 'Base.1.8.GeneralError',
      message: 'See ExtendedInfo.',
      '@Message.ExtendedInfo': { MessageId: 'Base.1.8.ActionParameterMissing', Message: 'TransferProtocolType is missing.' },
    },
  }),
  'has its ExtendedInfo beside a property': demandsProtocol({
    'TransferProtocolType@Message.ExtendedInfo': [{ MessageId: 'Base.1.8.PropertyMissing', Message: 'The property is missing.' }],
  }),
  'has its ExtendedInfo at the top': demandsProtocol({
    '@Message.ExtendedInfo': [{ MessageId: 'Base.1.8.ActionParameterMissing', Message: 'TransferProtocolType is missing.' }],
  }),
  'names a parameter in MessageArgs only': demandsProtocol({
    error: {
      code: 'Base.1.18.ActionParameterMissing',
      message: 'A parameter is missing.',
      '@Message.ExtendedInfo': [{ MessageId: 'Base.1.18.ActionParameterMissing', MessageArgs: ['InsertMedia', 'TransferProtocolType'] }],
    },
  }),
  'names a parameter in RelatedProperties only': demandsProtocol({
    error: {
      code: 'Base.1.8.PropertyMissing',
      '@Message.ExtendedInfo': [{ MessageId: 'Base.1.8.PropertyMissing', RelatedProperties: ['#/TransferProtocolType'] }],
    },
  }),
  // Refusals that pass
  'is not ready at first, as iLO': busyAtFirst(
    refusal(400, {
      error: {
        code: 'iLO.0.10.ExtendedInfo',
        message: 'See @Message.ExtendedInfo for more information.',
        '@Message.ExtendedInfo': [{ MessageId: 'iLO.2.15.InvalidOperationForSystemState' }],
      },
    }),
  ),
  'is not ready at first, as iDRAC': busyAtFirst(plain(500, 'IDRAC.2.8.SYS518', 'iDRAC is currently unable to display any information.')),
  'is busy at first': busyAtFirst(
    plain(503, 'Base.1.8.ServiceTemporarilyUnavailable', 'The service is temporarily unavailable. Retry in 30 seconds.'),
    /./,
  ),
  // Media
  'answers 404 to an ejection, and shows the old medium for a while': staleEjection(404),
  'answers 500 to an ejection, and shows the old medium for a while': staleEjection(500),
  'shows only the possible action of a drive': {
    answer: (reply, { method, path }) => {
      if (method !== 'GET' || !DRIVE.test(path) || reply.status !== 200) return reply;
      const body = reply.body as Body;
      const possible = body['Inserted'] === true ? '#VirtualMedia.EjectMedia' : '#VirtualMedia.InsertMedia';
      return { ...reply, body: { ...body, Actions: { [possible]: (body['Actions'] as Body)[possible] } } };
    },
  },
  // Power
  'shows no power state for a while after each change': {
    answer: (reply, { method, path }, { counts, count }) => {
      if (path.endsWith('ComputerSystem.Reset')) counts.set('reads', 0);
      if (method !== 'GET' || !SYSTEM.test(path) || (counts.has('reads') && count('reads') > 2)) return reply;
      if (!counts.has('reads')) counts.set('reads', 1);
      return { ...reply, body: { ...(reply.body as Body), PowerState: null } };
    },
  },
  // Allowable values
  'lists no allowable values': everyBody((item) =>
    Object.fromEntries(Object.entries(item).map(([name, value]) => [name, name.endsWith('@Redfish.AllowableValues') ? [] : value])),
  ),
  'lists the values of a reset in its ActionInfo': {
    answer: (reply, { method, path }) => {
      if (method !== 'GET' || !SYSTEM.test(path) || reply.status !== 200) return reply;
      const body = reply.body as Body;
      const reset = (body['Actions'] as Record<string, Body>)['#ComputerSystem.Reset']!;
      const action = { target: reset['target'], '@Redfish.ActionInfo': `${path}/ResetActionInfo` };
      return { ...reply, body: { ...body, Actions: { '#ComputerSystem.Reset': action } } };
    },
    instead: ({ path, body }) => {
      if (path.endsWith('/ResetActionInfo')) {
        const parameter = { Name: 'ResetType', Required: true, DataType: 'String', AllowableValues: RESETS };
        return refusal(200, { '@odata.id': path, Parameters: [parameter] });
      }
      const type = path.endsWith('ComputerSystem.Reset') ? (body as Body)['ResetType'] : 'ForceOn';
      return RESETS.includes(type as string)
        ? undefined
        : plain(400, 'Base.1.8.ActionParameterValueNotInList', 'The value is not in the list.');
    },
  },
  // Links
  'names its manager in Links.Managers': shows(SYSTEM, (body) => {
    const { ManagedBy, ...others } = body['Links'] as Body;
    return { ...without(body, 'VirtualMedia'), Links: { ...without(others, 'ManagedBy@odata.count'), Managers: ManagedBy } };
  }),
  'does not name its manager': shows(SYSTEM, (body) => ({
    ...without(body, 'VirtualMedia'),
    Links: without(body['Links'] as Body, 'ManagedBy', 'ManagedBy@odata.count'),
  })),
  'has absolute URLs as links': everyBody((value, { headers }) => {
    const path = value['@odata.id'];
    return typeof path === 'string' && path.startsWith('/') ? { ...value, '@odata.id': `http://${headers.host}${path}` } : value;
  }),
  'has a space in its links': {
    answer: (reply, { method, path }) =>
      method === 'GET' && path.endsWith('/VirtualMedia')
        ? { ...reply, body: JSON.parse(JSON.stringify(reply.body).replace(/\/VirtualMedia\/Cd"/g, '/VirtualMedia/Virtual CD"')) as unknown }
        : reply,
    path: (path) => path.replace('/VirtualMedia/Virtual%20CD', '/VirtualMedia/Cd'),
  },
  // Connections and HTTP
  'drops a connection that is used again': { instead: ({ onConnection }) => (onConnection > 1 ? 'dropped' : undefined) },
  'begins a header line with a space': head(([first, ...rest]) => crlf([first!, ' X-Frame-Options: DENY', ...rest, ' X-More: 1'])),
  'ends its header lines with LF alone': head((lines) => `${lines.join('\n')}\n\n`),
  'has a space before the colon of its headers': head(([first, ...rest]) => crlf([first!, ...rest.map((line) => line.replace(':', ' :'))])),
  // Boot settings
  'refuses a BootSourceOverrideEnabled that is set already': {
    instead: ({ method, path, body }, { bmc }) => {
      const asked =
        method === 'PATCH' && SYSTEM.test(path) ? ((body as Body)['Boot'] as Body | undefined)?.['BootSourceOverrideEnabled'] : undefined;
      const now = bmc.boot.device === 'none' ? 'Disabled' : bmc.boot.persistent ? 'Continuous' : 'Once';
      return asked === now ? plain(400, 'Base.1.8.PropertyNotWritable', 'The property BootSourceOverrideEnabled is read only.') : undefined;
    },
  },
  'refuses every Once, and boots once': {
    instead: ({ method, path, body }) =>
      method === 'PATCH' && SYSTEM.test(path) && ((body as Body)['Boot'] as Body | undefined)?.['BootSourceOverrideEnabled'] === 'Once'
        ? plain(400, 'Base.1.8.PropertyValueNotInList', 'The value Once is not in the list.')
        : undefined,
  },
  'demands If-Match, and shows no ETag': {
    answer: (reply) => ({
      ...reply,
      headers: Object.fromEntries(Object.entries(reply.headers).filter(([name]) => name.toLowerCase() !== 'etag')),
    }),
    instead: ({ method, headers }) =>
      method === 'PATCH' && headers['if-match'] === undefined
        ? plain(428, 'Base.1.8.PreconditionRequired', 'A precondition header is required.')
        : undefined,
  },
  // Inventory
  'has an empty first socket': {
    answer: (reply, { method, path }) =>
      method === 'GET' && path.endsWith('/Processors') && reply.status === 200
        ? { ...reply, body: { ...(reply.body as Body), Members: [emptyCpu, ...((reply.body as Body)['Members'] as unknown[])] } }
        : reply,
  },
  'tells the ProcessorArchitecture alone': withoutProcessorFields('InstructionSet'),
  'tells no architecture': withoutProcessorFields('InstructionSet', 'ProcessorArchitecture'),
  'has no usable network interface': shows(/\/EthernetInterfaces$/, (body) => ({ ...body, Members: [], 'Members@odata.count': 0 })),
};
