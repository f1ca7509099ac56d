/** The managers (BMCs) of a system, wherever the service names them. */
import {
  isStatus,
  linkKey,
  linkOf,
  linkedCollection,
  listOf,
  member,
  readResource,
  rootPath,
  type RedfishResource,
} from '../../wire/redfish';
import type { SystemView } from './target';

/** More managers of one system are not read. */
const MAX_MANAGERS = 8;

const linksOf = (list: unknown): readonly string[] => listOf(list).flatMap((item) => linkOf(item) ?? []);
/** Links.ManagedBy of the schema. Some services (Huawei, KubeVirt's) have Links.Managers. */
const namedBy = ({ body }: SystemView): readonly string[] => {
  const found = linksOf(member(body, 'Links', 'ManagedBy'));
  return found.length > 0 ? found : linksOf(member(body, 'Links', 'Managers'));
};
/** The service's managers that name the system. The only manager needs no name of it. */
async function ofService(system: SystemView): Promise<readonly RedfishResource[]> {
  const { ask, target, path } = system;
  const managers = (await linkedCollection(ask, await readResource(ask, rootPath(target)), 'Managers')) ?? [];
  const own = linkKey(path);
  const naming = managers.filter(({ body }) =>
    linksOf(member(body, 'Links', 'ManagerForServers')).some((candidate) => linkKey(candidate) === own),
  );
  return naming.length > 0 || managers.length > 1 ? naming : managers;
}

/** The system's managers that the service returns; the first is its BMC. Throws RedfishError. */
export async function managersOf(system: SystemView): Promise<readonly RedfishResource[]> {
  const paths = namedBy(system);
  if (paths.length === 0) return (await ofService(system)).slice(0, MAX_MANAGERS);
  const found: RedfishResource[] = [];
  for (const path of paths.slice(0, MAX_MANAGERS)) {
    try {
      found.push(await readResource(system.ask, path));
    } catch (error) {
      if (!isStatus(error, 404)) throw error;
    }
  }
  return found;
}
