/** Why a listener cannot be opened, for the operator. */

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use',
  EACCES:
    'ports below 1024 need root or the capability CAP_NET_BIND_SERVICE (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE), or another port',
  EADDRNOTAVAIL: 'this host does not have the address',
};

/** @param what the purpose of the listener and its options */
export function listenError(error: NodeJS.ErrnoException, where: string, what: string): Error {
  return new Error(`cannot listen on ${where} (${what}): ${REASONS[error.code ?? ''] ?? error.message}`, { cause: error });
}
