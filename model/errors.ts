/** Faults: expected errors with their HTTP status and message. The messages are Ironic's, because clients match on them. */

/** Name → [HTTP status, message]. The details replace {x}. */
export const FAULTS = {
  // 4xx: bad input
  Invalid: [400, '{message}'],
  InvalidParameterValue: [400, '{message}'],
  MissingParameterValue: [400, '{message}'],
  InvalidImageRef: [400, 'Invalid image href {image_href}.'],
  InvalidUUID: [400, 'Expected a UUID but received {uuid}.'],
  InvalidUuidOrName: [400, 'Expected a logical name or UUID but received {name}.'],
  InvalidMAC: [400, 'Expected a MAC address but received {mac}.'],
  InvalidSwitchID: [400, 'Expected a MAC address or OpenFlow datapath ID but received {switch_id}.'],
  PatchError: [400, "Couldn't apply patch '{patch}'. Reason: {reason}"],
  IncompleteLookup: [400, "At least one of 'addresses' and 'node_uuid' parameters is required"],
  HardwareInspectionFailure: [400, '{message}'],
  InvalidNodeInventory: [400, 'Inventory for node {node} is invalid: {reason}'],
  // An unknown resource in a body is a 400; in a path it is a 404.
  NodeUnknown: [400, 'Node {node} could not be found.'],
  ChassisUnknown: [400, 'Chassis {chassis} could not be found.'],
  PortgroupUnknown: [400, 'Portgroup {portgroup} could not be found.'],
  ChassisNotEmpty: [400, 'Cannot complete the requested action because chassis {chassis} contains nodes.'],
  PortgroupNotEmpty: [400, 'Cannot complete the requested action because portgroup {portgroup} contains ports.'],
  NoFreePhysicalPorts: [400, 'Unable to attach VIF {vif}, not enough free physical ports.'],
  VifNotAttached: [400, 'Unable to detach VIF {vif} from node {node} because it is not attached to it.'],
  NoConductor: [400, 'No valid host was found. Reason: {reason}'],
  InvalidStateRequested: [400, 'The requested action "{action}" can not be performed on node "{node}" while it is in state "{state}".'],
  StepNotAllowed: [400, "{step_type} step '{step}' is not allowed. Disallowed by operator configuration [api]disallow_{step_type}_steps."],
  NodeInMaintenance: [400, "The {op} operation can't be performed on node {node} because it's in maintenance mode."],
  NodeIsRetired: [400, "The {op} operation can't be performed on node {node} because it is retired."],
  UnsupportedDriverExtension: [400, 'Driver {driver} does not support {extension} (disabled or not implemented).'],
  DriverNotFoundInEntrypoint: [400, 'Could not find the following items in the {entrypoint} entrypoint: {names}.'],
  // In Ironic, the status of these two faults is 500.
  InstanceRescueFailure: [400, 'Failed to rescue instance {instance} for node {node}: {reason}'],
  InstanceUnrescueFailure: [400, 'Failed to unrescue instance {instance} for node {node}: {reason}'],
  NoValidHost: [404, 'No valid host was found. Reason: {reason}'],
  StepsNotAuthorized: [403, '{message}'],
  OwnerNotAuthorized: [403, '{message}'],
  NotAuthorized: [403, 'Not authorized.'],
  ImageNotAuthorized: [403, 'Not authorized for image {image_id}.'],
  OperationNotPermitted: [403, 'Operation not permitted.'],
  HTTPForbidden: [403, 'Access was denied to the following resource: {resource}'],
  NodeProtected: [403, 'Node {node} is protected and cannot be undeployed, rebuilt or deleted'],
  InvalidDeployTemplate: [400, 'Deploy template invalid: {err}.'],
  // Ironic has no such limits.
  TooLarge: [413, '{message}'],
  // 404
  // Of resources that Ironic does not have.
  RecordNotFound: [404, '{resource} {ident} could not be found.'],
  ImageNotFound: [404, 'Image {image_id} could not be found.'],
  OciImageTagNotFound: [404, 'Image tag {image_url} could not be found, available tags are {tags}'],
  NodeNotFound: [404, 'Node {node} could not be found.'],
  RunbookNotFound: [404, 'Runbook {runbook} could not be found.'],
  PortNotFound: [404, 'Port {port} could not be found.'],
  ChassisNotFound: [404, 'Chassis {chassis} could not be found.'],
  PortgroupNotFound: [404, 'Portgroup {portgroup} could not be found.'],
  ConductorNotFound: [404, 'Conductor {conductor} could not be found.'],
  RaidNotSupported: [404, 'Driver {driver} does not support raid (disabled or not implemented).'],
  BIOSSettingNotFound: [404, "Node {node} doesn't have a BIOS setting '{name}'"],
  DriverNotFound: [404, 'Could not find the following driver(s) or hardware type(s): {driver_name}.'],
  VolumeConnectorNotFound: [404, 'Volume connector {connector} could not be found.'],
  VolumeTargetNotFound: [404, 'Volume target {target} could not be found.'],
  AllocationNotFound: [404, 'Allocation {allocation} could not be found.'],
  DeployTemplateNotFound: [404, 'Deploy template {template} could not be found.'],
  InspectionRuleNotFound: [404, 'Rule {rule} could not be found.'],
  IntrospectionRuleNotFound: [404, 'Rule {rule} was not found'],
  SubscriptionNotFound: [404, '{message}'],
  NodeHistoryNotFound: [404, 'Node history record {history} could not be found.'],
  NodeInventoryNotFound: [404, 'Node inventory record for node {node} could not be found.'],
  NodeTraitNotFound: [404, "Node {node_id} doesn't have a trait '{trait}'"],
  NotFound: [404, '{message}'],
  MethodNotAllowed: [405, '{message}'],
  NotAcceptable: [406, '{message}'],
  // 409
  // Ironic has no such state.
  NodeOutOfService: [409, 'Node {node} is out of service. Its maintenance ends when it is in service again.'],
  NodeLocked: [409, 'Node {node} is locked by host {host}, please retry after the current operation is completed.'],
  NodeAlreadyExists: [409, 'A node with UUID {uuid} already exists.'],
  DuplicateName: [409, 'A node with name {name} already exists.'],
  InstanceAssociated: [
    409,
    'Instance {instance_uuid} is already associated with a node, it cannot be associated with this other node {node}',
  ],
  NodeAssociated: [409, 'Node {node} is associated with instance {instance}.'],
  MACAlreadyExists: [409, 'A port with MAC address {mac} already exists.'],
  RecordAlreadyExists: [409, '{resource} with {column} {value} already exists.'],
  // Not in Ironic.
  DefaultConfigExists: [409, 'A default config for {scope} already exists.'],
  PortAlreadyExists: [409, 'A port with UUID {uuid} already exists.'],
  PortDuplicateName: [409, 'A port with name {name} already exists.'],
  InvalidState: [409, '{message}'],
  AllocationFailed: [409, 'Failed to process allocation {uuid}: {error}.'],
  Conflict: [409, '{message}'],
  ChassisAlreadyExists: [409, 'A chassis with UUID {uuid} already exists.'],
  VifAlreadyAttached: [409, 'Unable to attach VIF because VIF {vif} is already attached to Ironic {object_type} {object_uuid}'],
  PortgroupAlreadyExists: [409, 'A portgroup with UUID {uuid} already exists.'],
  PortgroupDuplicateName: [409, 'A portgroup with name {name} already exists.'],
  PortgroupMACAlreadyExists: [409, 'A portgroup with MAC address {mac} already exists.'],
  VolumeConnectorAlreadyExists: [409, 'A volume connector with UUID {uuid} already exists.'],
  VolumeConnectorTypeAndIdAlreadyExists: [409, 'A volume connector with type {type} and connector ID {connector_id} already exists.'],
  VolumeTargetAlreadyExists: [409, 'A volume target with UUID {uuid} already exists.'],
  VolumeTargetBootIndexAlreadyExists: [409, "A volume target with boot index '{boot_index}' for the same node already exists."],
  AllocationAlreadyExists: [409, 'An allocation with UUID {uuid} already exists.'],
  AllocationDuplicateName: [409, 'An allocation with name {name} already exists.'],
  DeployTemplateAlreadyExists: [409, 'A deploy template with UUID {uuid} already exists.'],
  DeployTemplateDuplicateName: [409, 'A deploy template with name {name} already exists.'],
  RunbookAlreadyExists: [409, 'A runbook with UUID {uuid} already exists.'],
  RunbookDuplicateName: [409, 'A runbook with name {name} already exists.'],
  IntrospectionRuleAlreadyExists: [409, 'Rule with UUID {uuid} already exists'],
  InspectionRuleAlreadyExists: [409, 'A rule with UUID {uuid} already exists.'],
  PowerStateFailure: [409, 'Failed to set node power state to {pstate}.'],
  ParentNodeUnknown: [400, "Unable to apply the requested parent_node '{parent}'. Requested value was invalid."],
  ParentNodeCycle: [400, 'Node {node} cannot have the parent_node {parent}: the node would be its own ancestor.'],
  NodeHasChildren: [409, 'Node {node} cannot be deleted while it is the parent_node of other nodes. Change or delete these first.'],
  ParentNodeLocked: [
    409,
    'Node {node} parent_node {parent} is presently locked and we are unable to perform any action on it at this time. Please retry after the current operation is completed.',
  ],
  ChildNodeLocked: [
    409,
    'Node {node} child_node {child} is presently locked and we are unable to perform any action on it at this time. Please retry after the current operation is completed.',
  ],
  BootModeNotAllowed: [400, "'{mode}' boot mode is not allowed for {op} operation."],
  // 5xx
  NoFreeConductorWorker: [503, 'Requested action cannot be performed due to lack of free conductor workers.'],
  ConcurrentActionLimit: [
    503,
    'Unable to process request at this time. The concurrent action limit for {task_type} has been reached. Please contact your administrator and try again later.',
  ],
  StorageError: [500, '{message}'],
  TraitBasedNetworkingException: [500, '{message}'],
  TBNAttributeRetrievalException: [500, 'Could not retrieve attribute {attr_name} from passed object'],
  TBNNoTraitsApplicableToNode: [500, 'No Trait Based Networking traits were found which could apply to the node {node}.'],
  TBNNoPortMatchesFound: [500, 'No matching ports were found when planning the networking for node {node} and network {vif_id}'],
  TemporaryFailure: [503, '{message}'],
  UnsupportedHardwareFeature: [
    400,
    'Node {node} hardware does not support feature {feature}, which is required based upon the requested configuration.',
  ],
  DriverOperationError: [500, '{message}'],
  NoFreeIPMITerminalPorts: [503, 'Unable to allocate a free port on host {host} for IPMI terminal, not enough free ports.'],
  ImageUnacceptable: [500, 'Image {image_id} is unacceptable: {reason}'],
  ImageServiceAuthenticationRequired: [
    500,
    'The requested image {image_ref} requires authentication which has not been provided. Unable to proceed.',
  ],
  ImageHostRateLimitFailure: [
    503,
    'The image registry has indicates the rate limit has been exceeded for url {image_ref}. Please try again later or consider using authentication and/or trying again.',
  ],
  InvalidImage: [500, 'The requested image is not valid for use. {reason}'],
  ImageChecksumURLNotSupported: [500, 'Use of remote checksum files is not supported.'],
  GlanceConnectionFailed: [500, 'Connection to glance endpoint {endpoint} failed: {reason}'],
  SwiftOperationError: [500, "Swift operation '{operation}' failed: {error}"],
  InventoryFolderFailure: [500, 'The inventory of node {node} cannot be {verb} in [inventory]directory: {reason}'],
  NetworkError: [500, '{message}'],
  FailedToUpdateMacOnPort: [500, 'Update MAC address on port: {port_id} failed.'],
  FailedToUpdateDHCPOptOnPort: [500, '{message}'],
  FailedToGetSensorData: [500, 'Failed to get sensor data for node {node}. Error: {error}'],
} as const satisfies Record<string, readonly [number, string]>;
export type FaultName = keyof typeof FAULTS;

/** An expected error. The API responds to any other error with 500, because it is a defect. */
export class Fault extends Error {
  readonly status: number;
  constructor(
    override readonly name: FaultName,
    readonly details: Readonly<Record<string, string>> = {},
    options?: ErrorOptions,
  ) {
    const [status, text] = FAULTS[name];
    super(
      text.replace(/\{(\w+)\}/g, (_, key: string) => details[key] ?? ''),
      options,
    );
    this.status = status;
  }
}

const withMessage = (name: 'Invalid' | 'InvalidParameterValue' | 'Conflict') => {
  return (message: string, cause?: unknown): Fault => new Fault(name, { message }, cause === undefined ? {} : { cause });
};
/** A request that makes no sense as a whole. */
export const invalid = withMessage('Invalid');
/** A value that cannot be used. */
export const invalidParameter = withMessage('InvalidParameterValue');
/** The state does not allow it. */
export const conflict = withMessage('Conflict');
/** This version of the API does not have it. */
export const notAcceptable = (message = 'Request not acceptable.'): Fault => new Fault('NotAcceptable', { message });
export const notFound = (message = 'Resource could not be found.'): Fault => new Fault('NotFound', { message });

/** The message of an error, for `last_error` and the log. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** What is looked for; undefined if it does not exist (status 404). */
export const ifFound = <Found>(search: Promise<Found>): Promise<Found | undefined> =>
  search.catch((error: unknown) => {
    if (error instanceof Fault && error.status === 404) return undefined;
    throw error;
  });
