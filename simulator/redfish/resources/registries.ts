/** Registries of messages and of BIOS attributes: each is a MessageRegistryFile, which names the URI of the registry itself. */
import { BIOS_REGISTRY, biosRegistry } from './bios';
import { BASE_REGISTRY, MESSAGES, UPDATE_MESSAGES, UPDATE_REGISTRY, type Message } from '../protocol/messages';
import { ROOT, collectionRoute, resource, type Route, type ResourceBody } from '../protocol/routes';

const placeholders = (text: string): readonly string[] => [...new Set(text.match(/%\d/g) ?? [])];
const messageEntry = ({ text, severity }: Message): ResourceBody => ({
  Description: text,
  Message: text,
  MessageSeverity: severity,
  Severity: severity,
  NumberOfArgs: placeholders(text).length,
  ParamTypes: placeholders(text).map(() => 'string'),
  Resolution: 'Correct the request and send it again.',
});
/** @param registry such as Base.1.8 */
const messageRegistry = (registry: string, messages: Readonly<Record<string, Message>>) => (): ResourceBody => ({
  '@odata.type': '#MessageRegistry.v1_4_0.MessageRegistry',
  Id: `${registry}.0`,
  Name: `${registry} messages of this service`,
  Language: 'en',
  RegistryPrefix: registry.split('.')[0],
  RegistryVersion: `${registry.split('.').slice(1).join('.')}.0`,
  OwningEntity: 'Bloomery',
  Messages: Object.fromEntries(Object.entries(messages).map(([id, message]) => [id, messageEntry(message)])),
});

interface Registry {
  readonly id: string;
  /** The registry's name in other resources, such as Base.1.8. */
  readonly registry: string;
  readonly name: string;
  readonly file: () => ResourceBody;
}
const REGISTRIES: readonly Registry[] = [
  { id: 'Base', registry: BASE_REGISTRY, name: 'Base messages', file: messageRegistry(BASE_REGISTRY, MESSAGES) },
  { id: 'Update', registry: UPDATE_REGISTRY, name: 'Update messages', file: messageRegistry(UPDATE_REGISTRY, UPDATE_MESSAGES) },
  { id: 'BiosAttributeRegistry', registry: BIOS_REGISTRY, name: 'BIOS attributes', file: biosRegistry },
];
const named = (id: string | undefined): Registry | undefined => REGISTRIES.find((registry) => registry.id === id);

export const REGISTRY_ROUTES: readonly Route[] = [
  collectionRoute('/Registries', 'MessageRegistryFile', () => REGISTRIES.map(({ id }) => id)),
  {
    path: '/Registries/{registry}',
    get: ({ path, values }) => {
      const found = named(values[0]);
      return (
        found &&
        resource(path, 'MessageRegistryFile', found.id, found.name, {
          Languages: ['en'],
          Registry: found.registry,
          Location: [{ Language: 'en', Uri: `${ROOT}${path}/${found.id}.json` }],
        })
      );
    },
  },
  { path: '/Registries/{registry}/{file}', get: ({ values: [id, file] }) => (file === `${id!}.json` ? named(id)?.file() : undefined) },
];
