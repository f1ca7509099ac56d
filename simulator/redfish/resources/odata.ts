/** OData's service document and metadata document (DSP0266 §8.4), and JsonSchemas. */
import { ROOT, collectionRoute, resource, type ServiceAnswer, type Route } from '../protocol/routes';
import { SCHEMAS, VERSIONS, typeName, type ResourceType } from '../protocol/versions';

const TYPES = Object.keys(VERSIONS) as readonly ResourceType[];
/** Resource types that have no collection type. */
const SINGLE: readonly string[] = [
  'AccountService',
  'Bios',
  'EventService',
  'ManagerNetworkProtocol',
  'Power',
  'PowerSubsystem',
  'PowerSupplyMetrics',
  'SecureBoot',
  'ServiceRoot',
  'SessionService',
  'TaskService',
  'Thermal',
  'ThermalMetrics',
  'ThermalSubsystem',
  'UpdateService',
];
const EXTRA = ['Message', 'Settings', 'Resource', 'AttributeRegistry', 'MessageRegistry', 'IPAddresses', 'Event', 'Redundancy'];

const reference = (file: string, namespaces: readonly string[]): string =>
  `<edmx:Reference Uri="${SCHEMAS}/${file}_v1.xml">${namespaces.map((namespace) => `<edmx:Include Namespace="${namespace}"/>`).join('')}</edmx:Reference>`;
function metadata(): string {
  const references = [
    ...TYPES.map((type) => reference(type, [type, typeName(type).slice(1, -type.length - 1)])),
    ...TYPES.filter((type) => !SINGLE.includes(type)).map((type) => reference(`${type}Collection`, [`${type}Collection`])),
    ...EXTRA.map((type) => reference(type, [type])),
    reference('RedfishExtensions', ['RedfishExtensions.v1_0_0']).replace(
      'RedfishExtensions.v1_0_0"',
      'RedfishExtensions.v1_0_0" Alias="Redfish"',
    ),
  ];
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">',
    ...references,
    '<edmx:DataServices><Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="Service">',
    `<EntityContainer Name="Service" Extends="${typeName('ServiceRoot').slice(1, -'.ServiceRoot'.length)}.ServiceContainer"/>`,
    '</Schema></edmx:DataServices></edmx:Edmx>',
    '',
  ].join('\n');
}
const SETS = ['AccountService', 'Chassis', 'EventService', 'JsonSchemas', 'Managers', 'Registries', 'SessionService', 'Systems'];
const serviceDocument = (): ServiceAnswer => ({
  status: 200,
  body: {
    '@odata.context': `${ROOT}/$metadata`,
    value: [
      { name: 'Service', kind: 'Singleton', url: `${ROOT}/` },
      ...[...SETS, 'TaskService', 'UpdateService'].map((name) => ({ name, kind: 'Singleton', url: `${ROOT}/${name}` })),
      { name: 'Sessions', kind: 'Singleton', url: `${ROOT}/SessionService/Sessions` },
    ],
  },
});

export const ODATA_ROUTES: readonly Route[] = [
  { path: '/odata', public: true, answer: serviceDocument },
  {
    path: '/$metadata',
    public: true,
    answer: () => ({ status: 200, text: metadata(), headers: { 'content-type': 'application/xml;charset=utf-8' } }),
  },
  collectionRoute('/JsonSchemas', 'JsonSchemaFile', () => TYPES),
  {
    path: '/JsonSchemas/{schema}',
    get: ({ path, values: [id] }) => {
      const type = TYPES.find((candidate) => candidate === id);
      const versioned = type && typeName(type).slice(1, -type.length - 1);
      return (
        type &&
        resource(path, 'JsonSchemaFile', type, `Schema of ${type}`, {
          Languages: ['en'],
          Schema: typeName(type),
          Location: [{ Language: 'en', PublicationUri: `${SCHEMAS}/${versioned}.json` }],
        })
      );
    },
  },
];
