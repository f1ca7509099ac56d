/** The screens of nodes: their port with noVNC's page, for whoever has the token of a console. And consoles for other processes, of both kinds. */
import type { AuditLog } from '../api/http/audit';
import { createRelayedConsoles } from '../api/ui/console';
import { createRelayedScreens, createTokenScreens } from '../api/ui/screen';
import { answerScreenPage } from '../api/ui/screen-page';
import type { ScreenPlaces } from '../conductor/conductor';
import type { RunningConductor } from '../conductor/index';
import { createStreamRouter } from '../conductor/rpc/router';
import type { Consoles } from '../drivers/consoles';
import type { Screens } from '../drivers/screens';
import type { StoreContext } from './context';
import type { HttpListener } from './http-listener';
import type { Rpc } from './rpc';

interface ScreenParts {
  /** Absent: [vnc]enabled is false, or this process has no conductor. */
  readonly listener: HttpListener | undefined;
  readonly viewers: Screens;
  /** The serial consoles of this process. */
  readonly consoles: Consoles;
  readonly conductor: RunningConductor | undefined;
  readonly rpc: Rpc | undefined;
  readonly audit: AuditLog | undefined;
}
/** Undefined: this process shows no screens. */
export function startScreens(
  context: StoreContext,
  { listener, viewers, consoles, conductor, rpc, audit }: ScreenParts,
): ScreenPlaces | undefined {
  const { store, options, clock, stops, stopping } = context;
  const log = context.log.child({ component: 'screens' });
  const local = options['vnc.enabled'] && conductor ? { enter: viewers.enter, open: conductor.openScreen } : undefined;
  const connect = rpc && createStreamRouter({ store, clock, log, options, here: conductor, client: rpc.client });
  if (!local && !connect) return undefined;
  const places = { local, connect };
  const parts = { store, options, clock, log, stopping };
  if (listener) {
    listener.answer(answerScreenPage());
    listener.upgrade(createTokenScreens({ ...parts, screens: places, audit }));
    stops.push(() => listener.close());
  }
  // The other process has the user, and writes the audit log.
  const toScreens = createRelayedScreens({ ...parts, screens: { local } });
  const toConsoles = conductor && createRelayedConsoles({ ...parts, conductor, localConsole: (uuid) => consoles.portOf(uuid) });
  rpc?.server?.stream((...given) => {
    if (!toConsoles?.(...given)) toScreens(...given);
  });
  return places;
}
