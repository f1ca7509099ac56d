/** The service root and the collections of machines (DSP2046 ServiceRoot). */
import { PRODUCT } from '../../hardware/description';
import { bmcOf, collectionRoute, link, resource, type Route } from '../protocol/routes';

const names = ({ service }: Parameters<NonNullable<Route['get']>>[0]): readonly string[] => [...service.systems.keys()];

export const ROOT_ROUTES: readonly Route[] = [
  {
    path: '',
    get: ({ service }) =>
      resource('/', 'ServiceRoot', 'RootService', 'Simulated Redfish service', {
        RedfishVersion: '1.8.0',
        UUID: 'b100e000-0000-4000-8000-000000000000',
        Product: bmcOf(service)?.description.product ?? PRODUCT,
        Systems: link('/Systems'),
        Chassis: link('/Chassis'),
        Managers: link('/Managers'),
        Registries: link('/Registries'),
        Tasks: link('/TaskService'),
        UpdateService: link('/UpdateService'),
        AccountService: link('/AccountService'),
        EventService: link('/EventService'),
        JsonSchemas: link('/JsonSchemas'),
        SessionService: link('/SessionService'),
        Links: { Sessions: link('/SessionService/Sessions') },
      }),
  },
  collectionRoute('/Systems', 'ComputerSystem', names),
  collectionRoute('/Chassis', 'Chassis', names),
  collectionRoute('/Managers', 'Manager', names),
];
