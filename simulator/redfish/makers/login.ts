/** Habits with logins, sessions and connections. */
import { accountsOf } from '../resources/accounts';
import { refuse } from '../protocol/messages';
import type { Around, Habit } from '../protocol/habits';
import type { ServiceAnswer } from '../protocol/routes';
import { SESSIONS, instead, isLoggedIn, problem, shows, together, without } from './change';

/** Each session is good for this number of requests. */
const SESSION_REQUESTS = 6;
const sessionsEnd = (answer: ServiceAnswer): Around =>
  instead(/./, /./, answer, (_, { count }, asked) => {
    const token = asked.headers['x-auth-token'];
    return token !== undefined && !asked.path.includes('/Sessions/') && count(`session ${String(token)}`) > SESSION_REQUESTS;
  });
const ACCOUNT = /^\/redfish\/v1\/AccountService\/Accounts\/[^/]+$/;

export const LOGIN_HABITS = {
  'sessions-at-root': {
    about: 'Sessions are at /redfish/v1/Sessions, and the root has no Links to them.',
    source: 'dell/iDRAC-Redfish-Scripting (services below Redfish 1.6)',
    paths: { '/SessionService/Sessions': '/Sessions' },
    around: shows('ServiceRoot', (body) => without(body, 'Links', 'SessionService')),
  },
  'sessions-few': {
    about: 'There are at most 4 sessions: another login gets 503 until one ends.',
    source: 'bmc-toolbox/bmclib providers/lenovo/lenovo.go',
    around: async (asked, next, { service }) =>
      asked.method === 'POST' && SESSIONS.test(asked.path) && service.sessions.size >= 4
        ? refuse('CreateLimitReachedForResource')
        : next(asked),
  },
  'sessions-end-403': {
    about: `A session ends after ${SESSION_REQUESTS} requests, and then gets 403.`,
    source: 'bmc-toolbox/bmclib providers/supermicro; openstack/sushy connector.py',
    around: sessionsEnd(problem(403, 'Base.1.8.InsufficientPrivilege', 'There are insufficient privileges.')),
  },
  'sessions-end-in-page': {
    about: `A session ends after ${SESSION_REQUESTS} requests, and then gets a login page with 200.`,
    source: 'bmc-toolbox/bmclib providers/supermicro',
    around: sessionsEnd({ status: 200, text: '<html>Login</html>', headers: { 'content-type': 'text/html' } }),
  },
  'login-refused-at-times': {
    about: 'Each seventh request gets 401, with a good password too.',
    source: 'NVIDIA/infra-controller crates (HPE)',
    around: instead(/./, /./, refuse('NoValidSession'), (_, { count }) => count('requests') % 7 === 0),
  },
  'password-change-required': {
    about: 'Until the password of the account changes, all requests but the login and the change itself get 403 PasswordChangeRequired.',
    source: 'ansible community.general _redfish_utils.py; NVIDIA/libredfish src/network.rs',
    around: async (asked, next, context) => {
      const { service } = context;
      const factory = accountsOf(service).find(({ name }) => name === service.username);
      const isFree = asked.path === '/redfish/v1' || SESSIONS.test(asked.path) || (asked.method === 'PATCH' && ACCOUNT.test(asked.path));
      if (isFree || factory?.password !== service.password || !isLoggedIn(context, asked)) return next(asked);
      const account = `/redfish/v1/AccountService/Accounts/${service.username}`;
      const refused = problem(
        403,
        'Base.1.8.PasswordChangeRequired',
        `The password provided for this account must be changed before access is granted. PATCH the Password property for this account located at the target URI '${account}' to complete this process.`,
      );
      return refused;
    },
  },
  'connections-drop-at-reuse': {
    about: 'A connection that is used again drops without an answer.',
    source: 'NVIDIA/infra-controller crates/redfish (HPE iLO 6 and older); openstack/sushy connector.py',
    around: async (asked, next) => (asked.onConnection > 1 ? { status: 0, bytes: '' } : next(asked)),
  },
  'root-needs-login': {
    about: 'The service root answers 401 without a login.',
    source: 'DMTF/python-redfish-library 3.2.6',
    around: async (asked, next, context) =>
      asked.path === '/redfish/v1' && !isLoggedIn(context, asked) ? refuse('NoValidSession') : next(asked),
  },
  'only-basic': {
    about: 'There is no session service: only basic authentication works.',
    source: 'DMTF/python-redfish-library 3.3.0',
    around: together(
      shows('ServiceRoot', (body) => without(body, 'Links', 'SessionService')),
      async (asked, next) => (asked.path.includes('/Session') ? refuse('ResourceMissingAtURI', asked.path) : next(asked)),
    ),
  },
  starting: {
    about: 'The first two reads of each resource get 503, as while the BMC starts.',
    source: 'openstack/sushy connector.py; NVIDIA/libredfish src/network.rs',
    around: instead(
      'GET',
      /^\/redfish\/v1\/./,
      problem(503, 'Base.1.8.ServiceTemporarilyUnavailable', 'The service is temporarily unavailable. Retry in 1 seconds.', {
        'retry-after': '1',
      }),
      (_, { count }, { path }) => count(`start ${path}`) <= 2,
    ),
  },
  'try-again-idrac': {
    about: 'The first change of each resource gets 503 with SYS518, which means "try again".',
    source: 'openstack/sushy connector.py',
    around: instead(
      /^(?:POST|PATCH|DELETE)$/,
      /^(?!.*\/Sessions)/,
      problem(503, 'IDRAC.2.8.SYS518', 'iDRAC is not ready. The configuration values cannot be accessed.'),
      (_, { count }, { method, path }) => count(`again ${method} ${path}`) === 1,
    ),
  },
  'try-again-ilo': {
    about: 'The first change of each resource gets 400 with InvalidOperationForSystemState, which means "try again".',
    source: 'openstack/sushy connector.py',
    around: instead(
      /^(?:POST|PATCH|DELETE)$/,
      /^(?!.*\/Sessions)/,
      {
        status: 400,
        body: {
          error: {
            code: 'iLO.0.10.ExtendedInfo',
            message: 'See @Message.ExtendedInfo for more information.',
            '@Message.ExtendedInfo': [{ MessageId: 'iLO.2.15.InvalidOperationForSystemState' }],
          },
        },
      },
      (_, { count }, { method, path }) => count(`again ${method} ${path}`) === 1,
    ),
  },
} as const satisfies Readonly<Record<string, Habit>>;
