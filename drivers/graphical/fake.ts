/** A screen that shows a test picture. */
import { openTestPicture } from '../../wire/rfb/test-picture';
import { graphicalConsole } from './graphical-console';

export const fakeGraphicalConsole = graphicalConsole({
  properties: {},
  screen: async (_, signal) => ({ kind: 'rfb', stream: openTestPicture(signal), password: '' }),
});
