/** The Redfish client's exports for drivers. */
export { createRedfishPool, type RedfishPool } from './client';
export { RedfishError, hasMessage, isStatus, messagesOf, unlessStatus } from './errors';
export { patchKept, unkeptError, type Unkept } from './kept';
export { linkKey, linkOf, listOf, member, numberOf, textOf, textsOf } from './json';
export {
  actionOf,
  allowableValues,
  collection,
  linkedCollection,
  memberPaths,
  patchResource,
  readLinked,
  readResource,
  type RequestDetails,
  type SendRedfishRequest,
  type RedfishResource,
} from './resources';
export { followTask, isUnseen, readTask, startedTask } from './tasks';
export { rootPath, type RedfishAnswer, type RedfishMethod, type RedfishTarget, type RedfishUpload } from './transport';
