/** On whose behalf something is done: who asked, in which request. Plain JSON, so that it travels with a call between processes. */
export interface Origin {
  /** `req-` and a UUID, made by the API for each request; told to the caller as Openstack-Request-Id. */
  readonly requestId: string;
  /** The caller's own id for a chain of requests (X-Openstack-Request-Id), when it gave one that is one. */
  readonly globalRequestId?: string;
  readonly user: string | null;
  readonly project: string | null;
}

/** What oslo.middleware takes for a request id; others are passed over. */
const REQUEST_ID = /^req-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}$/;
export const isRequestId = (text: string): boolean => REQUEST_ID.test(text);

/** As the fields of log lines are named. */
export const originFields = ({ requestId, globalRequestId, user, project }: Origin): object => ({
  request_id: requestId,
  ...(globalRequestId === undefined ? {} : { global_request_id: globalRequestId }),
  ...(user === null ? {} : { user }),
  ...(project === null ? {} : { project }),
});
