/** SecureBoot (DSP2046) and its databases of keys. Whether it is in force is decided when the machine starts. */
import { change, type HardwareState } from '../../hardware/hardware';
import { flag, oneOf, refuseAction, refuseNew, refusePatch, text } from '../protocol/checks';
import { refuse } from '../protocol/messages';
import { ROOT, collection, collectionRow, link, resource, type Row, type Shown, type SystemAt } from '../protocol/routes';

const PATH = '/Systems/{system}/SecureBoot';
const DATABASES = ['PK', 'KEK', 'db', 'dbx'] as const;
type Database = (typeof DATABASES)[number];
const RESETS = ['ResetAllKeysToDefault', 'DeleteAllKeys', 'DeletePK'];
const RESET_KEYS = 'SecureBoot.ResetKeys';
const RESET_DATABASE = 'SecureBootDatabase.ResetKeys';
const MAX_CERTIFICATES = 32;

export interface SecureBootState {
  readonly enabled?: boolean;
  /** In force since the last start. */
  readonly inForce?: boolean;
  /** PEM, of the databases that are not as they left the factory. */
  readonly keys?: { readonly [database in Database]?: readonly string[] };
}
const FACTORY: Readonly<Record<Database, readonly string[]>> = {
  PK: ['Platform key of the factory'],
  KEK: ['Key exchange key of the factory'],
  db: ['Signatures that the factory allows'],
  dbx: [],
};
const NO_KEYS = { PK: [], KEK: [], db: [], dbx: [] } as const;

const keysIn = (state: SecureBootState | undefined, database: Database): readonly string[] => state?.keys?.[database] ?? FACTORY[database];
const hasPlatformKey = (state: SecureBootState | undefined): boolean => keysIn(state, 'PK').length > 0;
/** What a start of the firmware makes of it: nothing is enforced without a platform key. */
export const secureBootAtStart = ({ secureBoot }: HardwareState): SecureBootState | undefined => {
  const inForce = secureBoot?.enabled === true && hasPlatformKey(secureBoot);
  return inForce === (secureBoot?.inForce ?? false) ? secureBoot : { ...secureBoot, inForce };
};

const stateOf = ({ system }: SystemAt): SecureBootState => system.hardware.state.secureBoot ?? {};
const set = ({ system }: SystemAt, changes: SecureBootState): void =>
  change(system.hardware, { secureBoot: { ...system.hardware.state.secureBoot, ...changes } });

function show(at: SystemAt): Shown {
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
const databaseOf = ({ values: [, id] }: SystemAt): Database | undefined => DATABASES.find((one) => one === id);
function showDatabase(at: SystemAt): Shown | undefined {
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
function certificate(at: SystemAt): Shown | undefined {
  const database = databaseOf(at);
  const found = database && keysIn(stateOf(at), database)[Number(at.values[2]) - 1];
  return found === undefined
    ? undefined
    : resource(at.path, 'Certificate', at.values[2]!, `Certificate ${at.values[2]!}`, { CertificateString: found, CertificateType: 'PEM' });
}

export const SECURE_BOOT_ROWS: readonly Row<SystemAt>[] = [
  {
    path: PATH,
    get: show,
    patch: (at, body) => {
      const refused = refusePatch(body, { SecureBootEnable: flag }, show(at));
      if (!refused) set(at, { enabled: body['SecureBootEnable'] as boolean });
      return refused;
    },
  },
  {
    path: `${PATH}/Actions/${RESET_KEYS}`,
    post: (at, body) => {
      const refused = refuseAction(RESET_KEYS, body, { ResetKeysType: oneOf(RESETS) }, ['ResetKeysType']);
      if (refused) return refused;
      const type = body['ResetKeysType'];
      set(at, { keys: type === 'DeleteAllKeys' ? NO_KEYS : type === 'DeletePK' ? { ...stateOf(at).keys, PK: [] } : {} });
      return undefined;
    },
  },
  collectionRow(`${PATH}/SecureBootDatabases`, 'SecureBootDatabase', () => DATABASES),
  { path: `${PATH}/SecureBootDatabases/{database}`, get: showDatabase },
  {
    path: `${PATH}/SecureBootDatabases/{database}/Actions/${RESET_DATABASE}`,
    post: (at, body) => {
      const database = databaseOf(at);
      if (!database) return refuse('ResourceMissingAtURI', at.path);
      const refused = refuseAction(RESET_DATABASE, body, { ResetKeysType: oneOf(RESETS.slice(0, 2)) }, ['ResetKeysType']);
      const keys = body['ResetKeysType'] === 'DeleteAllKeys' ? [] : FACTORY[database];
      if (!refused) set(at, { keys: { ...stateOf(at).keys, [database]: keys } });
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
      set(at, { keys: { ...stateOf(at).keys, [database]: [...keys, body['CertificateString'] as string] } });
      return { status: 201, headers: { location: `${ROOT}${at.path}/${keys.length + 1}` } };
    },
  },
  { path: `${PATH}/SecureBootDatabases/{database}/Certificates/{certificate}`, get: certificate },
];
