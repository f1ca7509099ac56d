/** What is known of a request when it ends. */
import { originFields, type Origin } from '../../model/origin';

/** What the log, the metrics and the audit log record of a request, as far as it got. */
export interface RequestReport {
  /** The path template in openapi.yaml. */
  route: string;
  origin: Origin;
  roles?: readonly string[];
  /** The caller's token of `bloomery token`. */
  tokenName?: string | undefined;
  /** A user of the server whose password was wrong. */
  claimedUser?: string | undefined;
  operation?: string;
  /** The node's identifier in the request. */
  node?: string;
  nodeUuid?: string;
  /** The parsed body. */
  body?: unknown;
  /** The vendor method. */
  vendorMethod?: unknown;
  /** The URL of a new resource. */
  created?: string | undefined;
  /** The status of the response, also if the client did not wait for it. Absent: no response was made. */
  status?: number;
}
export const reportFields = ({ origin, node }: RequestReport): object => ({
  ...originFields(origin),
  ...(node === undefined ? {} : { node }),
});
