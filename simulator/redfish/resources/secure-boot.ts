/** SecureBoot (DSP2046) and its databases of keys. */
import {
  FACTORY_KEYS,
  KEY_DATABASES,
  SECURE_BOOT,
  hasPlatformKey,
  keysIn,
  type KeyDatabase,
  type SecureBootState,
} from '../../hardware/secure-boot';
import { flag, oneOf, refuseAction, refuseNew, refusePatch, text } from '../protocol/checks';
import { refuse } from '../protocol/messages';
import { ROOT, collection, collectionRoute, link, resource, type Route, type ResourceBody, type SystemContext } from '../protocol/routes';

const PATH = '/Systems/{system}/SecureBoot';
const RESETS = ['ResetAllKeysToDefault', 'DeleteAllKeys', 'DeletePK'];
const RESET_KEYS = 'SecureBoot.ResetKeys';
const RESET_DATABASE = 'SecureBootDatabase.ResetKeys';
const MAX_CERTIFICATES = 32;

const NO_KEYS = { PK: [], KEK: [], db: [], dbx: [] } as const;

const stateOf = ({ system }: SystemContext): SecureBootState => system.hardware.get(SECURE_BOOT);
const change = ({ system }: SystemContext, changes: SecureBootState): void =>
  system.hardware.set(SECURE_BOOT, { ...system.hardware.get(SECURE_BOOT), ...changes });

function show(at: SystemContext): ResourceBody {
  const state = stateOf(at);
  return resource(at.path, 'SecureBoot', 'SecureBoot', 'UEFI Secure Boot', {
    SecureBootEnable: state.enabled ?? false,
    SecureBootCurrentBoot: state.inForce ? 'Enabled' : 'Disabled',
    SecureBootMode: hasPlatformKey(state) ? 'UserMode' : 'SetupMode',
    SecureBootDatabases: link(`${at.path}/SecureBootDatabases`),
    Actions: {
      [`#${RESET_KEYS}`]: { target: `${ROOT}${at.path}/Actions/${RESET_KEYS}`, 'ResetKeysType@Redfish.AllowableValues': RESETS },
    },
  });
}
const databaseOf = ({ values: [, id] }: SystemContext): KeyDatabase | undefined => KEY_DATABASES.find((keyDatabase) => keyDatabase === id);
function showDatabase(at: SystemContext): ResourceBody | undefined {
  const database = databaseOf(at);
  return (
    database &&
    resource(at.path, 'SecureBootDatabase', database, `UEFI ${database} database`, {
      DatabaseId: database,
      Certificates: link(`${at.path}/Certificates`),
      Actions: {
        [`#${RESET_DATABASE}`]: {
          target: `${ROOT}${at.path}/Actions/${RESET_DATABASE}`,
          'ResetKeysType@Redfish.AllowableValues': RESETS.slice(0, 2),
        },
      },
    })
  );
}
function certificate(at: SystemContext): ResourceBody | undefined {
  const database = databaseOf(at);
  const found = database && keysIn(stateOf(at), database)[Number(at.values[2]) - 1];
  return found === undefined
    ? undefined
    : resource(at.path, 'Certificate', at.values[2]!, `Certificate ${at.values[2]!}`, { CertificateString: found, CertificateType: 'PEM' });
}

export const SECURE_BOOT_ROUTES: readonly Route<SystemContext>[] = [
  {
    path: PATH,
    get: show,
    patch: (at, body) => {
      const refused = refusePatch(body, { SecureBootEnable: flag }, show(at));
      if (!refused) change(at, { enabled: body['SecureBootEnable'] as boolean });
      return refused;
    },
  },
  {
    path: `${PATH}/Actions/${RESET_KEYS}`,
    post: (at, body) => {
      const refused = refuseAction(RESET_KEYS, body, { ResetKeysType: oneOf(RESETS) }, ['ResetKeysType']);
      if (refused) return refused;
      const type = body['ResetKeysType'];
      change(at, { keys: type === 'DeleteAllKeys' ? NO_KEYS : type === 'DeletePK' ? { ...stateOf(at).keys, PK: [] } : {} });
      return undefined;
    },
  },
  collectionRoute(`${PATH}/SecureBootDatabases`, 'SecureBootDatabase', () => KEY_DATABASES),
  { path: `${PATH}/SecureBootDatabases/{database}`, get: showDatabase },
  {
    path: `${PATH}/SecureBootDatabases/{database}/Actions/${RESET_DATABASE}`,
    post: (at, body) => {
      const database = databaseOf(at);
      if (!database) return refuse('ResourceMissingAtURI', at.path);
      const refused = refuseAction(RESET_DATABASE, body, { ResetKeysType: oneOf(RESETS.slice(0, 2)) }, ['ResetKeysType']);
      const keys = body['ResetKeysType'] === 'DeleteAllKeys' ? [] : FACTORY_KEYS[database];
      if (!refused) change(at, { keys: { ...stateOf(at).keys, [database]: keys } });
      return refused;
    },
  },
  {
    path: `${PATH}/SecureBootDatabases/{database}/Certificates`,
    get: (at) => {
      const database = databaseOf(at);
      const keys = database && keysIn(stateOf(at), database).map((_, index) => String(index + 1));
      return keys && collection(at.path, 'Certificate', keys);
    },
    post: (at, body) => {
      const database = databaseOf(at);
      if (!database) return refuse('ResourceMissingAtURI', at.path);
      const checks = { CertificateString: text, CertificateType: oneOf(['PEM']) };
      const refused = refuseNew(body, checks, ['CertificateString', 'CertificateType']);
      if (refused) return refused;
      const keys = keysIn(stateOf(at), database);
      if (keys.length >= MAX_CERTIFICATES) return refuse('CreateLimitReachedForResource');
      change(at, { keys: { ...stateOf(at).keys, [database]: [...keys, body['CertificateString'] as string] } });
      return { status: 201, headers: { location: `${ROOT}${at.path}/${keys.length + 1}` } };
    },
  },
  { path: `${PATH}/SecureBootDatabases/{database}/Certificates/{certificate}`, get: certificate },
];
