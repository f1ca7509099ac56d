/** AccountService (DSP2046): the accounts that may log in, and their roles. */
import { hardwarePart } from '../../hardware/hardware';
import { flag, oneOf, refuseNew, refusePatch, text } from '../protocol/checks';
import { refuse } from '../protocol/messages';
import { ROLES, type RoleName } from '../protocol/privileges';
import {
  ROOT,
  bmcOf,
  collectionRoute,
  link,
  resource,
  type ServiceAnswer,
  type RouteContext,
  type Route,
  type Service,
  type ResourceBody,
} from '../protocol/routes';

const PATH = '/AccountService';
const ACCOUNTS = `${PATH}/Accounts`;

export interface Account {
  readonly name: string;
  readonly password: string;
  readonly role: RoleName;
  readonly enabled: boolean;
}
const STORED_ACCOUNTS = hardwarePart<readonly Account[]>('accounts', []);
const MAX_ACCOUNTS = 16;
const PASSWORD_LENGTH = { least: 4, most: 64 } as const;

/** The predefined administrator, and the accounts that clients added. */
export function accountsOf(service: Service): readonly Account[] {
  const accounts = bmcOf(service)?.hardware.get(STORED_ACCOUNTS) ?? [];
  const factory: Account = { name: service.username, password: service.password, role: 'Administrator', enabled: true };
  return accounts.some(({ name }) => name === factory.name) ? accounts : [factory, ...accounts];
}
/** Undefined: the name or the password is wrong, or the account is disabled. */
export const accountFor = (service: Service, name: unknown, password: unknown): Account | undefined =>
  accountsOf(service).find((candidate) => candidate.name === name && candidate.password === password && candidate.enabled);

const storeAccounts = (service: Service, accounts: readonly Account[]): void => bmcOf(service)?.hardware.set(STORED_ACCOUNTS, accounts);
const named = ({ service, values: [name] }: RouteContext): Account | undefined =>
  accountsOf(service).find((candidate) => candidate.name === name);
const show = ({ name, role, enabled }: Account): ResourceBody =>
  resource(`${ACCOUNTS}/${name}`, 'ManagerAccount', name, `Account ${name}`, {
    UserName: name,
    Password: null,
    RoleId: role,
    Enabled: enabled,
    Locked: false,
    AccountTypes: ['Redfish'],
    Links: { Role: link(`${PATH}/Roles/${role}`) },
  });

const USER_NAME = /^[\w.-]{1,32}$/;
const CHECKS = {
  Password: (value: unknown, name: string) =>
    typeof value !== 'string'
      ? (['PropertyValueTypeError', '******', name] as const)
      : value.length < PASSWORD_LENGTH.least || value.length > PASSWORD_LENGTH.most
        ? (['PropertyValueFormatError', '******', name] as const)
        : undefined,
  RoleId: oneOf(Object.keys(ROLES)),
  Enabled: flag,
};
function create({ service }: RouteContext, body: ResourceBody): ServiceAnswer {
  const checks = { ...CHECKS, UserName: text, AccountTypes: () => undefined };
  const refused = refuseNew(body, checks, ['UserName', 'Password', 'RoleId']);
  if (refused) return refused;
  const {
    UserName: name,
    Password,
    RoleId,
    Enabled = true,
  } = body as { UserName: string; Password: string; RoleId: RoleName; Enabled?: boolean };
  if (!USER_NAME.test(name)) return refuse('PropertyValueFormatError', name, 'UserName');
  const accounts = accountsOf(service);
  if (accounts.some((account) => account.name === name)) return refuse('ResourceAlreadyExists', 'ManagerAccount', 'UserName', name);
  if (accounts.length >= MAX_ACCOUNTS) return refuse('CreateLimitReachedForResource');
  const added: Account = { name, password: Password, role: RoleId, enabled: Enabled };
  storeAccounts(service, [...accounts, added]);
  return { status: 201, body: show(added), headers: { location: `${ROOT}${ACCOUNTS}/${name}` } };
}
function patch(at: RouteContext, body: ResourceBody): ServiceAnswer | undefined {
  const found = named(at);
  if (!found) return refuse('ResourceMissingAtURI', at.path);
  const refused = refusePatch(body, CHECKS, show(found));
  if (refused) return refused;
  const { Password, RoleId, Enabled } = body as { Password?: string; RoleId?: RoleName; Enabled?: boolean };
  const changed = { name: found.name, password: Password ?? found.password, role: RoleId ?? found.role, enabled: Enabled ?? found.enabled };
  storeAccounts(
    at.service,
    accountsOf(at.service).map((item) => (item.name === found.name ? changed : item)),
  );
  return undefined;
}
function remove(at: RouteContext): ServiceAnswer | undefined {
  const found = named(at);
  if (!found) return refuse('ResourceMissingAtURI', at.path);
  if (found.name === at.service.username) return refuse('ResourceCannotBeDeleted');
  storeAccounts(
    at.service,
    accountsOf(at.service).filter(({ name }) => name !== found.name),
  );
  for (const [token, session] of at.service.sessions) if (session.user === found.name) at.service.sessions.delete(token);
  return undefined;
}

export const ACCOUNT_ROUTES: readonly Route[] = [
  {
    path: PATH,
    get: () =>
      resource(PATH, 'AccountService', 'AccountService', 'Accounts', {
        ServiceEnabled: true,
        Status: { State: 'Enabled', Health: 'OK' },
        MinPasswordLength: PASSWORD_LENGTH.least,
        MaxPasswordLength: PASSWORD_LENGTH.most,
        Accounts: link(ACCOUNTS),
        Roles: link(`${PATH}/Roles`),
      }),
  },
  {
    ...collectionRoute(ACCOUNTS, 'ManagerAccount', ({ service }) => accountsOf(service).map(({ name }) => name)),
    needs: 'ConfigureUsers',
    post: create,
  },
  {
    path: `${ACCOUNTS}/{account}`,
    needs: 'ConfigureUsers',
    get: (at) => {
      const found = named(at);
      return found && show(found);
    },
    patch,
    delete: remove,
  },
  collectionRoute(`${PATH}/Roles`, 'Role', () => Object.keys(ROLES)),
  {
    path: `${PATH}/Roles/{role}`,
    get: ({ path, values: [id] }) =>
      Object.hasOwn(ROLES, id!)
        ? resource(path, 'Role', id!, `Role ${id!}`, { RoleId: id, IsPredefined: true, AssignedPrivileges: ROLES[id as RoleName] })
        : undefined,
  },
];
