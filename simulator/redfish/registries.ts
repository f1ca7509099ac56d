/** Registries: of messages (Base) and of the BIOS's attributes, each a MessageRegistryFile that says where its file is. */
import { BIOS_REGISTRY, biosRegistry } from './bios';
import { BASE_REGISTRY, MESSAGES, type Message } from './messages';
import { ROOT, collectionRow, resource, type Row, type Shown } from './rows';

const placeholders = (text: string): readonly string[] => [...new Set(text.match(/%\d/g) ?? [])];
const messageEntry = ({ text, severity }: Message): Shown => ({
  Description: text,
  Message: text,
  MessageSeverity: severity,
  Severity: severity,
  NumberOfArgs: placeholders(text).length,
  ParamTypes: placeholders(text).map(() => 'string'),
  Resolution: 'Correct the request and send it again.',
});
const baseRegistry = (): Shown => ({
  '@odata.type': '#MessageRegistry.v1_4_0.MessageRegistry',
  Id: `${BASE_REGISTRY}.0`,
  Name: 'Base messages of this service',
  Language: 'en',
  RegistryPrefix: 'Base',
  RegistryVersion: '1.8.0',
  OwningEntity: 'Bloomery',
  Messages: Object.fromEntries(Object.entries(MESSAGES).map(([id, message]) => [id, messageEntry(message)])),
});

interface Registry {
  readonly id: string;
  /** As resources name it. */
  readonly registry: string;
  readonly name: string;
  readonly file: () => Shown;
}
const REGISTRIES: readonly Registry[] = [
  { id: 'Base', registry: BASE_REGISTRY, name: 'Base messages', file: baseRegistry },
  { id: 'BiosAttributeRegistry', registry: BIOS_REGISTRY, name: 'BIOS attributes', file: biosRegistry },
];
const named = (id: string | undefined): Registry | undefined => REGISTRIES.find((one) => one.id === id);

export const REGISTRY_ROWS: readonly Row[] = [
  collectionRow('/Registries', 'MessageRegistryFile', () => REGISTRIES.map(({ id }) => id)),
  {
    path: '/Registries/{registry}',
    get: ({ path, values }) => {
      const found = named(values[0]);
      return (
        found &&
        resource(path, 'MessageRegistryFile.v1_1_0.MessageRegistryFile', found.id, found.name, {
          Languages: ['en'],
          Registry: found.registry,
          Location: [{ Language: 'en', Uri: `${ROOT}${path}/${found.id}.json` }],
        })
      );
    },
  },
  { path: '/Registries/{registry}/{file}', get: ({ values: [id, file] }) => (file === `${id!}.json` ? named(id)?.file() : undefined) },
];
