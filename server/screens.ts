/** The port for the screens of nodes: the page with noVNC, and the WebSockets of whoever has the token of a console. */
import type { AuditLog } from '../api/http/audit';
import { createTokenScreens } from '../api/ui/screen';
import { answerScreenPage } from '../api/ui/screen-page';
import type { LocalScreens } from '../conductor/conductor';
import type { StoreContext } from './context';
import type { HttpListener } from './http-listener';

interface ScreenParts {
  readonly listener: HttpListener;
  readonly screens: LocalScreens;
  readonly audit: AuditLog | undefined;
}
export function startScreens(
  { store, options, clock, log, stops, stopping }: StoreContext,
  { listener, screens, audit }: ScreenParts,
): void {
  listener.answer(answerScreenPage());
  listener.upgrade(createTokenScreens({ store, options, clock, log: log.child({ component: 'screens' }), stopping, screens, audit }));
  stops.push(() => listener.close());
}
